"""An agent that leaves can come back: nothing of it is lost, and nothing of others is touched."""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import ManualClock
from postroom.office.agents import (
    AgentExists,
    AgentNotFound,
    BackupFailed,
    BackupNotFound,
    BackupUnusable,
    LeadsTeams,
    Staff,
    backups,
)
from postroom.office.workspaces import WorkspaceRefused
from postroom.settings import SettingsFile


@pytest.fixture
def file(tmp_path: Path) -> SettingsFile:
    file = SettingsFile(tmp_path / "home/settings.json")
    file.replace({"workspace": {"path": str(tmp_path / "work")}})
    return file


@pytest.fixture
def staff(file: SettingsFile, tmp_path: Path, clock: ManualClock) -> Staff:
    staff = Staff(file, tmp_path / "home", clock=clock)
    for agent in ("lead", "coder", "reviewer"):
        staff.add_agent(agent, {"name": agent.title(), "provider": "script"})
    staff.put_team("dev", {"agents": ["lead", "coder", "reviewer"]})
    staff.put_team("qa", {"agents": ["reviewer", "coder"]})
    return staff


def test_a_removed_agent_comes_back_as_it_was(staff: Staff, file: SettingsFile, tmp_path: Path) -> None:
    file.merge({"default_agent": "coder"})
    staff.change_agent("coder", {"heartbeat": {"interval": 5}})
    staff.workspace("coder").write("memory/a.md", "remembered")
    (tmp_path / "work/coder/pipe").touch()
    before = file.document()
    removed = staff.remove_agent("coder")
    assert (removed.workspace, removed.left) == ("moved", ("dev", "qa"))
    assert "coder" not in staff.agents()
    assert staff.team("dev").agents == ("lead", "reviewer")
    assert "default_agent" not in file.document()
    assert not (tmp_path / "work/coder").exists()
    (backup,) = staff.backups()
    assert (backup.name, backup.agent, backup.has_workspace) == (removed.backup, "coder", True)
    entry = tmp_path / "home/backups/agents" / backup.name / "agent.json"
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert stat.S_IMODE(entry.parent.stat().st_mode) == 0o700

    view = staff.restore_agent("coder")
    assert view.teams == ("dev", "qa")
    after = file.document()
    for document in (before, after):
        for team in document["teams"].values():
            team["agents"].sort()
    assert after == before
    assert (tmp_path / "work/coder/memory/a.md").read_text() == "remembered"
    assert staff.backups() == [backup]
    with pytest.raises(AgentExists):
        staff.restore_agent(backup.name)


def test_a_leader_is_not_removed(staff: Staff, file: SettingsFile, tmp_path: Path) -> None:
    before = file.path.read_bytes()
    with pytest.raises(LeadsTeams, match="@reviewer leads #qa"):
        staff.remove_agent("reviewer")
    assert file.path.read_bytes() == before
    assert staff.backups() == []
    assert (tmp_path / "work/reviewer/AGENTS.md").exists()
    staff.put_team("qa", {"leader_agent": "coder"})
    assert staff.remove_agent("reviewer").workspace == "moved"


def test_a_folder_a_person_named_is_not_taken_away(staff: Staff, tmp_path: Path) -> None:
    project = tmp_path / "project"
    staff.change_agent("coder", {"working_directory": str(project)})
    staff.prompt("coder")
    removed = staff.remove_agent("coder")
    assert (removed.workspace, removed.why) == (
        "kept",
        "it lies outside the folder of the agents, so it is yours",
    )
    assert (project / "AGENTS.md").exists()
    assert staff.restore_agent("coder").working_directory == str(project)


def test_a_folder_others_work_in_is_not_taken_away(staff: Staff, file: SettingsFile, tmp_path: Path) -> None:
    staff.add_agent("inner", {"working_directory": "coder/inner"})
    assert "@inner works in it too" in staff.remove_agent("coder").why
    assert (tmp_path / "work/coder/inner/AGENTS.md").exists()


def test_a_workspace_can_be_kept_or_be_missing(staff: Staff, tmp_path: Path) -> None:
    assert staff.remove_agent("coder", keep_workspace=True).workspace == "kept"
    assert (tmp_path / "work/coder/AGENTS.md").exists()
    assert staff.restore_agent("coder").id == "coder"
    staff.add_agent("late")
    for path in sorted((tmp_path / "work/late").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    (tmp_path / "work/late").rmdir()
    assert staff.remove_agent("late").workspace == "none"


def test_a_folder_that_is_there_again_is_not_written_over(staff: Staff, tmp_path: Path) -> None:
    staff.remove_agent("coder")
    (tmp_path / "work/coder").mkdir()
    (tmp_path / "work/coder/new.txt").write_text("mine")
    with pytest.raises(BackupUnusable, match="is there again"):
        staff.restore_agent("coder")
    assert "coder" not in staff.agents()
    assert (tmp_path / "work/coder/new.txt").read_text() == "mine"


def test_the_newest_of_several_backups_comes_back(staff: Staff, clock: ManualClock) -> None:
    names = []
    for number in range(3):
        staff.workspace("coder").write("memory/n.md", str(number))
        names.append(staff.remove_agent("coder").backup)
        if number < 2:
            staff.add_agent("coder")
            clock.advance(number)  # two of them in the same second
    assert len(set(names)) == 3
    staff.restore_agent("coder")
    assert staff.workspace("coder").read_text("memory/n.md") == "2"
    staff.remove_agent("coder")
    staff.restore_agent(names[0])
    assert staff.workspace("coder").read_text("memory/n.md") == "0"


def test_on_another_disk_it_is_copied_whole_before_it_goes(
    staff: Staff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "work/coder"
    os.mkfifo(workspace / "pipe")
    (workspace / "out").symlink_to("/etc")
    real = os.rename

    def rename(source: Any, target: Any) -> None:
        if str(source) == str(workspace):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    removed = staff.remove_agent("coder")
    assert removed.workspace == "moved"
    assert not workspace.exists()
    kept = tmp_path / "home/backups/agents" / removed.backup / "workspace"
    assert os.readlink(kept / "out") == "/etc"
    assert (kept / "AGENTS.md").exists()
    assert not (kept / "pipe").exists()
    staff.restore_agent("coder")
    assert os.readlink(workspace / "out") == "/etc"


def test_without_a_backup_nobody_is_removed(staff: Staff, file: SettingsFile, tmp_path: Path) -> None:
    (tmp_path / "home/backups").write_text("a file in the way")
    before = file.path.read_bytes()
    with pytest.raises(BackupFailed):
        staff.remove_agent("coder")
    assert file.path.read_bytes() == before
    assert (tmp_path / "work/coder/AGENTS.md").exists()


@pytest.mark.parametrize(
    "name", ["..", "../agents", "coder.x", "a/b", "", "nobody", "coder.20270115T080000Z"]
)
def test_names_with_tricks_find_no_backup(staff: Staff, name: str) -> None:
    with pytest.raises(BackupNotFound):
        staff.restore_agent(name)


def test_a_damaged_or_forged_backup_restores_nothing(
    staff: Staff, file: SettingsFile, tmp_path: Path
) -> None:
    removed = staff.remove_agent("coder")
    entry = tmp_path / "home/backups/agents" / removed.backup / "agent.json"
    good, before = entry.read_text(), file.path.read_bytes()
    for change in (
        {"agent": "..", "key": ".."},
        {"key": "other"},
        {"entry": {"working_directory": "../../x"}},
        {"entry": {"working_directory": str(tmp_path / "home/plugins")}},
        {"entry": {"name": 3}},
    ):
        entry.write_text(json.dumps({**json.loads(good), **change}))
        with pytest.raises((BackupUnusable, WorkspaceRefused, Exception)) as error:
            staff.restore_agent(removed.backup)
        assert error.value.__class__.__module__.startswith("postroom.")
    entry.write_text(good[: len(good) // 2])
    with pytest.raises(BackupUnusable, match="damaged"):
        staff.restore_agent(removed.backup)
    assert staff.backups() == []
    assert file.path.read_bytes() == before
    assert not (tmp_path / "home/plugins").exists()


def test_only_what_is_in_the_settings_can_be_removed(staff: Staff) -> None:
    for agent in ("nobody", "tinyagi", ".."):
        with pytest.raises(AgentNotFound):
            staff.remove_agent(agent)


def test_a_removal_that_was_cut_short_can_be_undone(
    staff: Staff, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*args: Any) -> None:
        raise Killed

    staff.workspace("coder").write("memory/a.md", "remembered")
    with monkeypatch.context() as patched:
        patched.setattr(backups, "move_workspace", killed)
        with pytest.raises(Killed):
            staff.remove_agent("coder")
    assert "coder" not in staff.agents()
    assert (tmp_path / "work/coder/memory/a.md").exists()
    assert staff.restore_agent("coder").teams == ("dev", "qa")
    assert staff.workspace("coder").read_text("memory/a.md") == "remembered"
