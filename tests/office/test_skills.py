"""Skills that come with the room are there and up to date; what somebody changed or added is theirs."""

from pathlib import Path

import pytest

from postroom.office import skills
from postroom.office.memory_index import front_matter
from postroom.office.workspaces import Workspace

PLACE = ".agents/skills/memory/SKILL.md"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace("coder", tmp_path / "work/coder", tmp_path / "work")
    workspace.prepare("Code Bot", {})
    return workspace


def test_each_says_what_it_is_for() -> None:
    assert set(skills.bundled()) == {"memory", "skill-creator"}
    for name, text in skills.bundled().items():
        fields = front_matter(text)
        assert fields["name"] == name
        assert "Use it when" in fields["description"]


def test_they_are_where_every_program_looks(workspace: Workspace) -> None:
    assert skills.refresh(workspace) == []
    for folder in (".agents/skills", ".claude/skills", "skills"):
        assert (workspace.root / folder / "memory/SKILL.md").read_text().startswith("---\nname: memory\n")
    before = (workspace.root / PLACE).stat()
    skills.refresh(workspace)
    assert (workspace.root / PLACE).stat().st_mtime_ns == before.st_mtime_ns


def test_an_older_version_is_replaced_and_a_deleted_one_comes_back(workspace: Workspace) -> None:
    workspace.write(PLACE, skills.sealed("what it said a year ago"))
    skills.refresh(workspace)
    assert workspace.read_text(PLACE) == skills.sealed(skills.bundled()["memory"])
    (workspace.root / PLACE).unlink()
    skills.refresh(workspace)
    assert workspace.read_text(PLACE) == skills.sealed(skills.bundled()["memory"])


@pytest.mark.parametrize("change", ["{} more", "mine", "", "\n{}", "{}\n<!-- postroom sha256:00 -->\n"])
def test_one_that_was_changed_stays_as_it_is(workspace: Workspace, change: str) -> None:
    changed = change.format(skills.sealed("old"))
    workspace.write(PLACE, changed)
    skills.refresh(workspace)
    assert workspace.read_text(PLACE) == changed


def test_skills_of_the_agent_are_not_touched(workspace: Workspace) -> None:
    workspace.write(".agents/skills/own/SKILL.md", "mine")
    skills.refresh(workspace)
    assert workspace.read_text(".agents/skills/own/SKILL.md") == "mine"


def test_a_link_out_of_the_workspace_is_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (workspace.root / ".agents/skills/memory").symlink_to(tmp_path / "elsewhere")
    assert "leads out of it" in " ".join(skills.refresh(workspace))
    assert list((tmp_path / "elsewhere").iterdir()) == []
