"""A workspace is made once and completed for ever, keeps every word of a person, and leads nowhere else."""

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from postroom.errors import BodyTooLarge, InvalidField
from postroom.office.workspaces import Workspace, WorkspaceFileMissing, WorkspaceRefused
from postroom.settings import parse

PARTS = {"POSTROOM": "the manual", "TEAMMATES": "nobody"}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace("coder", tmp_path / "work/coder", tmp_path / "work")


def everything(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def test_a_new_workspace_has_all_its_files(workspace: Workspace) -> None:
    assert workspace.prepare("Code Bot", PARTS) == []
    files = everything(workspace.root)
    named = {"AGENTS.md", "CLAUDE.md", "SOUL.md", "heartbeat.md", "skills", ".claude/skills"}
    assert set(files) == {*named, ".postroom-home"}
    text = files["AGENTS.md"].decode()
    assert text.startswith("# Code Bot (@coder)\n")
    assert "<!-- POSTROOM_START -->\nthe manual\n<!-- POSTROOM_END -->" in text
    assert "<!-- TEAMMATES_START -->\nnobody\n<!-- TEAMMATES_END -->" in text
    for link in ("skills", ".claude/skills"):
        assert (workspace.root / link).resolve() == workspace.root / ".agents/skills"
    assert (workspace.root / "memory").is_dir()
    assert stat.S_IMODE(workspace.root.stat().st_mode) == 0o700


def test_doing_it_again_changes_nothing(workspace: Workspace) -> None:
    workspace.prepare("Code Bot", PARTS)
    before, stamp = everything(workspace.root), (workspace.root / "AGENTS.md").stat().st_mtime_ns
    assert workspace.prepare("Another name", PARTS) == []
    assert everything(workspace.root) == before
    assert (workspace.root / "AGENTS.md").stat().st_mtime_ns == stamp


def test_what_a_person_wrote_is_kept_and_only_our_sections_are_refreshed(workspace: Workspace) -> None:
    workspace.prepare("Code Bot", PARTS)
    file = workspace.root / "AGENTS.md"
    head, tail = b"Mine.\r\n\xff\xfe not UTF-8\r\n", b"\r\nthe end, without a line end"
    section = b"<!-- TEAMMATES_START -->\nold\n<!-- TEAMMATES_END -->"
    file.write_bytes(head + section + tail)
    file.chmod(0o640)
    for other in ("SOUL.md", "heartbeat.md", "CLAUDE.md"):
        (workspace.root / other).write_text("mine")
    workspace.prepare("Code Bot", {**PARTS, "TEAMMATES": "sam"})
    assert file.read_bytes() == head + section.replace(b"old", b"sam") + tail
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert {(workspace.root / name).read_text() for name in ("SOUL.md", "heartbeat.md", "CLAUDE.md")} == {
        "mine"
    }


@pytest.mark.parametrize("content", [b"", b"only mine", b"<!-- TEAMMATES_START --> broken"])
def test_a_file_without_our_sections_stays_as_it_is(workspace: Workspace, content: bytes) -> None:
    workspace.root.mkdir(parents=True)
    (workspace.root / "AGENTS.md").write_bytes(content)
    workspace.prepare("Code Bot", PARTS)
    assert (workspace.root / "AGENTS.md").read_bytes() == content


def test_what_was_deleted_comes_back_and_what_exists_already_is_used(workspace: Workspace) -> None:
    (workspace.root / ".tinyagi").mkdir(parents=True)
    (workspace.root / ".tinyagi/SOUL.md").write_text("old soul")
    (workspace.root / ".claude/skills/own").mkdir(parents=True)
    workspace.prepare("Code Bot", PARTS)
    assert not (workspace.root / "SOUL.md").exists()
    assert not (workspace.root / ".claude/skills").is_symlink()
    (workspace.root / "heartbeat.md").unlink()
    workspace.prepare("Code Bot", PARTS)
    assert (workspace.root / "heartbeat.md").exists()


def test_a_person_who_saves_at_the_same_moment_is_not_overwritten(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.prepare("Code Bot", PARTS)
    file = workspace.root / "AGENTS.md"
    real_read, saved = Workspace.read, []

    def read(self: Workspace, name: str, **options: Any) -> bytes:
        text = real_read(self, name, **options)
        if not saved:
            saved.append(1)
            file.write_bytes(text + b"saved meanwhile\n")
        return text

    monkeypatch.setattr(Workspace, "read", read)
    workspace.prepare("Code Bot", {**PARTS, "TEAMMATES": "sam"})
    text = file.read_text()
    assert text.endswith("saved meanwhile\n")
    assert "<!-- TEAMMATES_START -->\nsam\n" in text


def test_many_may_prepare_it_at_once(workspace: Workspace) -> None:
    problems: list[str] = []

    def prepare() -> None:
        problems.extend(workspace.prepare("Code Bot", PARTS))

    threads = [threading.Thread(target=prepare) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert not list(workspace.root.rglob("*.tmp"))
    assert (workspace.root / "AGENTS.md").read_text().count("the manual") == 1


def test_a_folder_that_is_a_link_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/coder").symlink_to(tmp_path / "outside")
    workspace = Workspace("coder", tmp_path / "work/coder", tmp_path / "work")
    with pytest.raises(WorkspaceRefused, match="a link leads out of"):
        workspace.prepare("Code Bot", PARTS)
    with pytest.raises(WorkspaceRefused):
        workspace.write("AGENTS.md", "x")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_dangling_link_is_no_way_out_either(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/coder").symlink_to(tmp_path / "not-there")
    with pytest.raises(WorkspaceRefused):
        Workspace("coder", tmp_path / "work/coder", tmp_path / "work").prepare("Code Bot", PARTS)
    assert not (tmp_path / "not-there").exists()


def test_files_and_folders_that_lead_out_are_neither_read_nor_written(
    tmp_path: Path, workspace: Workspace
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("token <!-- TEAMMATES_START -->old<!-- TEAMMATES_END -->")
    (tmp_path / "elsewhere").mkdir()
    workspace.root.mkdir(parents=True)
    (workspace.root / "AGENTS.md").symlink_to(secret)
    (workspace.root / "heartbeat.md").symlink_to(tmp_path / "new-file")
    for folder in ("memory", ".agents", ".claude"):
        (workspace.root / folder).symlink_to(tmp_path / "elsewhere")
    problems = workspace.prepare("Code Bot", PARTS)
    assert len(problems) >= 3
    assert all("leads out of it" in problem for problem in problems)
    assert "old" in secret.read_text()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "new-file").exists()
    for name in (
        "AGENTS.md",
        "heartbeat.md",
        "memory/x.md",
        "../secret",
        "/etc/passwd",
        "a/../../secret",
        ".",
        "",
    ):
        with pytest.raises(WorkspaceRefused):
            workspace.read(name)
        with pytest.raises(WorkspaceRefused):
            workspace.write(name, "x")
    assert "old" in secret.read_text()


def test_links_within_the_workspace_are_followed(workspace: Workspace) -> None:
    workspace.prepare("Code Bot", PARTS)
    (workspace.root / "SOUL.md").unlink()
    (workspace.root / "SOUL.md").symlink_to("heartbeat.md")
    workspace.write("SOUL.md", "both")
    assert workspace.read_text("heartbeat.md") == "both"
    assert (workspace.root / "SOUL.md").is_symlink()


def test_pipes_and_folders_are_not_waited_for(workspace: Workspace) -> None:
    workspace.prepare("Code Bot", PARTS)
    os.mkfifo(workspace.root / "pipe")
    for odd in ("pipe", "memory"):
        with pytest.raises(WorkspaceRefused):
            workspace.read(odd)
    with pytest.raises(WorkspaceFileMissing):
        workspace.read("nothing.md")
    assert workspace.read_text("nothing.md") == ""


def test_writing_is_whole_bounded_and_makes_folders(workspace: Workspace) -> None:
    workspace.write("memory/people/ann.md", "Ann")
    assert workspace.read("memory/people/ann.md") == b"Ann"
    with pytest.raises(BodyTooLarge):
        workspace.write("AGENTS.md", "x" * (1024 * 1024 + 1))
    workspace.write("AGENTS.md", "half a pair \ud800")
    assert workspace.read_text("AGENTS.md") == "half a pair ?"
    assert not list(workspace.root.rglob("*.tmp"))


@pytest.mark.parametrize("agent", ["..", ".", "", "a/b", "../x", "A", "a\0b", "a.b", "-a", "x" * 64])
def test_ids_with_tricks_have_no_workspace(tmp_path: Path, agent: str) -> None:
    settings = parse({"workspace": {"path": str(tmp_path / "work")}})
    with pytest.raises(InvalidField):
        Workspace.of(settings, agent)
    assert not (tmp_path / "work").exists()


def of(tmp_path: Path, directory: str) -> Workspace:
    agents = {"coder": {"working_directory": directory}}
    return Workspace.of(parse({"workspace": {"path": str(tmp_path / "work")}, "agents": agents}), "coder")


def test_a_folder_that_holds_all_others_is_refused(tmp_path: Path) -> None:
    for directory in (".", str(tmp_path), "/", str(tmp_path / "work")):
        with pytest.raises(WorkspaceRefused):
            of(tmp_path, directory).prepare("Code Bot", PARTS)
    assert not (tmp_path / "AGENTS.md").exists()


def test_a_folder_a_person_names_may_be_anywhere(tmp_path: Path) -> None:
    workspace = of(tmp_path, str(tmp_path / "project"))
    assert workspace.chosen
    workspace.prepare("Code Bot", PARTS)
    assert (tmp_path / "project/AGENTS.md").exists()
    assert not of(tmp_path, "team/coder").chosen


def test_a_file_in_the_place_of_the_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/coder").write_text("a file")
    with pytest.raises(WorkspaceRefused, match="it is a file"):
        Workspace("coder", tmp_path / "work/coder", tmp_path / "work").prepare("Code Bot", PARTS)


def test_two_homes_never_share_an_agents_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = [tmp_path / name for name in ("one", "two")]
    for home in homes:
        home.mkdir()
        (home / "settings.json").write_text("{}")
    shared = Workspace("coder", tmp_path / "shared" / "coder", tmp_path / "shared")
    monkeypatch.setenv("POSTROOM_HOME", str(homes[0]))
    assert shared.prepare("Coder", {}) == []
    shared.check()
    monkeypatch.setenv("POSTROOM_HOME", str(homes[1]))
    with pytest.raises(WorkspaceRefused, match="belongs to the office in"):
        shared.prepare("Coder", {})
    with pytest.raises(WorkspaceRefused, match="one"):
        shared.write("AGENTS.md", "mine")
    (homes[0] / "settings.json").unlink()
    assert shared.prepare("Coder", {}) == [], "a home that is gone owns nothing"
    monkeypatch.setenv("POSTROOM_HOME", str(homes[0]))
    with pytest.raises(WorkspaceRefused):
        shared.check()
