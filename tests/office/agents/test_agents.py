"""Agents are added, shown and changed by whole, locked writes; what is refused has changed nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postroom.errors import InvalidField, PostroomError
from postroom.office.agents import AgentExists, AgentNotFound, Staff
from postroom.office.turns.prompts import PromptFileRefused
from postroom.office.workspaces import WorkspaceRefused
from postroom.settings import InvalidSettings, SettingsBroken, SettingsFile


@pytest.fixture
def file(tmp_path: Path) -> SettingsFile:
    file = SettingsFile(tmp_path / "home/settings.json")
    file.replace({"workspace": {"path": str(tmp_path / "work")}})
    return file


@pytest.fixture
def staff(file: SettingsFile, tmp_path: Path) -> Staff:
    return Staff(file, tmp_path / "home")


def test_a_new_agent_is_in_the_settings_and_has_its_workspace(staff: Staff, file: SettingsFile) -> None:
    view = staff.add_agent("coder", {"name": "Code Bot", "provider": "anthropic", "model": "opus"})
    assert view == staff.agent("coder")
    assert (view.name, view.provider, view.model, view.problems) == ("Code Bot", "anthropic", "opus", ())
    assert file.document()["agents"] == {
        "coder": {"name": "Code Bot", "provider": "anthropic", "model": "opus"}
    }
    assert (Path(view.working_directory) / "AGENTS.md").read_text().startswith("# Code Bot (@coder)")
    assert "# Code Bot (@coder)" in staff.prompt("coder").text


def test_what_is_shown_is_what_holds_in_the_end(staff: Staff, file: SettingsFile) -> None:
    file.merge(
        {
            "models": {"provider": "openai", "openai": {"model": "gpt-x", "api_key": "sk-secret"}},
            "sessions": {"scope": "thread"},
            "budgets": {"agent_daily_usd": 7},
            "monitoring": {"heartbeat_interval": 600},
            "agents": {
                "Coder": {
                    "session": "sender",
                    "heartbeat": {"enabled": False},
                    "system_prompt": "Be brief.",
                    "api_key": "sk-secret",
                    "fallbacks": [{"provider": "script"}],
                    "budget": {"turn_usd": 1},
                },
                "plain": {},
            },
            "teams": {"dev": {"agents": ["plain", "Coder"], "leader_agent": "plain"}},
        }
    )
    coder, plain = staff.agents().values()
    assert (coder.id, coder.provider, coder.model, coder.session) == ("coder", "openai", "gpt-x", "sender")
    assert (coder.heartbeat_s, coder.has_system_prompt, coder.fallbacks) == (0, True, ("script",))
    assert coder.budget == {"turn_usd": 1, "daily_usd": 7}
    assert coder.settings["api_key"] == "********"
    assert "sk-secret" not in repr(coder)
    assert coder.working_directory.endswith("/work/Coder")
    assert (plain.session, plain.heartbeat_s, plain.teams, plain.leads) == ("thread", 600, ("dev",), ("dev",))
    assert (plain.default, coder.default) == (False, True)
    assert staff.agent("CODER") == coder


def test_a_change_keeps_all_it_does_not_name(staff: Staff, file: SettingsFile) -> None:
    fields = {"name": "Bot", "provider": "script", "heartbeat": {"enabled": False, "interval": 60}}
    file.merge({"agents": {"coder": {**fields, "mood": "good"}}, "colour": "red"})
    staff.change_agent("coder", {"model": "x", "heartbeat": {"interval": 90}})
    assert file.document()["agents"]["coder"] == {
        **fields,
        "mood": "good",
        "model": "x",
        "heartbeat": {"enabled": False, "interval": 90},
    }
    staff.change_agent("coder", {"model": None, "heartbeat": None, "mood": "better"})
    assert file.document()["agents"]["coder"] == {"name": "Bot", "provider": "script", "mood": "better"}
    view, added = staff.put_agent("coder", {"name": "New", "provider": "script", "model": "y"})
    assert (added, view.settings["mood"]) == (False, "better")
    assert staff.put_agent("other", {"name": "Other"})[1]
    assert file.document()["colour"] == "red"


def test_an_entry_with_capitals_keeps_its_key_and_its_folder(staff: Staff, file: SettingsFile) -> None:
    file.merge({"agents": {"Coder": {"name": "Bot"}}})
    view = staff.change_agent("coder", {"model": "x"})
    assert file.document()["agents"] == {"Coder": {"name": "Bot", "model": "x"}}
    assert view.working_directory.endswith("/Coder")
    with pytest.raises(AgentExists):
        staff.add_agent("coder", {})


def test_the_agent_of_a_room_without_agents_can_be_changed(staff: Staff, file: SettingsFile) -> None:
    assert not staff.agent("tinyagi").configured
    view = staff.change_agent("tinyagi", {"model": "opus"})
    assert (view.configured, view.model, view.provider) == (True, "opus", "anthropic")
    assert file.document()["agents"]["tinyagi"]["name"] == "TinyAGI Agent"


@pytest.mark.parametrize(
    "agent",
    ["..", ".", "", "a/b", "../../etc", "a\0", "a.b", "Coder", "-a", "x" * 64, "ä", "a b", "default", "user",
     "system", "dev"],
)  # fmt: skip
def test_an_id_with_tricks_or_a_meaning_is_refused(
    staff: Staff, file: SettingsFile, tmp_path: Path, agent: str
) -> None:
    staff.add_agent("first")
    staff.put_team("dev", {"agents": ["first"]})
    before, there = file.document(), sorted(tmp_path.rglob("*"))
    for change in (staff.add_agent, staff.put_agent):
        with pytest.raises(InvalidField):
            change(agent, {"name": "x"})
    for change in (staff.agent, staff.workspace, staff.prompt, staff.remove_agent):
        with pytest.raises((InvalidField, AgentNotFound)):
            change(agent)
    assert file.document() == before
    assert sorted(tmp_path.rglob("*")) == there


@pytest.mark.parametrize("agent", [None, 3, ["a"]])
def test_an_id_that_is_no_text_is_refused(staff: Staff, agent: Any) -> None:
    for change in (staff.agent, staff.add_agent, staff.remove_agent, staff.team, staff.remove_team):
        with pytest.raises(PostroomError):
            change(agent)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"modle": "x"}, InvalidField),
        ({"provider": "gpt"}, InvalidField),
        ({"provider": "custom:none"}, InvalidField),
        ({"fallbacks": [{"provider": "nobody"}]}, InvalidField),
        ({"name": 3}, InvalidSettings),
        ({"name": "two\nlines"}, InvalidField),
        ({"turn_timeout_s": -1}, InvalidSettings),
        ({"working_directory": "../x"}, InvalidSettings),
        ({"working_directory": "."}, WorkspaceRefused),
        ({"working_directory": "/etc/agent"}, WorkspaceRefused),
        ({"working_directory": "/usr"}, WorkspaceRefused),
        ({"working_directory": "/var"}, WorkspaceRefused),
        ({"working_directory": "/"}, WorkspaceRefused),
        ({"working_directory": "HOME"}, WorkspaceRefused),
        ({"working_directory": "HOME/plugins/x"}, WorkspaceRefused),
        ({"working_directory": "HOME/backups"}, WorkspaceRefused),
        ({"working_directory": "first"}, WorkspaceRefused),
        ({"prompt_file": "/etc/passwd"}, PromptFileRefused),
        ({"prompt_file": "missing.md"}, PromptFileRefused),
    ],
)
def test_a_wrong_field_is_named_and_nothing_changes(
    staff: Staff, file: SettingsFile, tmp_path: Path, fields: dict[str, Any], error: type[PostroomError]
) -> None:
    staff.add_agent("first")
    staff.add_agent("coder", {"name": "Bot"})
    if isinstance(place := fields.get("working_directory"), str):
        fields = {"working_directory": place.replace("HOME", str(tmp_path / "home"))}
    before = file.path.read_bytes()
    with pytest.raises(error):
        staff.change_agent("coder", fields)
    with pytest.raises(error):
        staff.add_agent("new", fields)
    assert file.path.read_bytes() == before
    assert not (tmp_path / "work/new").exists()


def test_adding_twice_and_changing_nobody_are_told(staff: Staff) -> None:
    staff.add_agent("coder")
    with pytest.raises(AgentExists, match="coder"):
        staff.add_agent("coder")
    with pytest.raises(AgentNotFound, match="nobody"):
        staff.change_agent("nobody", {"name": "x"})


def test_a_link_in_the_place_of_the_workspace_refuses_the_agent(staff: Staff, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work/coder").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorkspaceRefused):
        staff.add_agent("coder")
    assert "coder" not in staff.agents()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_odd_entry_is_shown_with_its_problem(staff: Staff, file: SettingsFile, tmp_path: Path) -> None:
    agents = {"coder": {"provider": "gpt", "prompt_file": "/etc/passwd"}, "lead": {}}
    teams = {"dev": {"agents": ["coder", "ghost"], "leader_agent": "ghost"}}
    file.merge({"agents": agents, "teams": teams})
    told = " ".join(staff.agent("coder").problems)
    assert '"gpt" is not known' in told
    assert "/etc/passwd" in told
    assert 'there is no agent "ghost"' in " ".join(staff.team("dev").problems)
    # An old oddity does not forbid an unrelated change.
    assert staff.change_agent("coder", {"model": "x"}).model == "x"


def test_a_half_written_file_is_repaired_and_nothing_else_is_lost(
    staff: Staff, file: SettingsFile, tmp_path: Path
) -> None:
    staff.add_agent("coder", {"name": "Bot"})
    whole = file.path.read_text()
    file.path.write_text(whole.rstrip().removesuffix("}").rstrip())
    staff.add_agent("second")
    assert set(staff.agents()) == {"coder", "second"}
    file.path.write_text('["this is no settings file')
    broken = file.path.read_bytes()
    with pytest.raises((SettingsBroken, InvalidSettings)):
        staff.add_agent("third")
    assert file.path.read_bytes() == broken


ADD = """
import sys
from pathlib import Path
from postroom.office.agents import Staff
from postroom.settings import SettingsFile
home, prefix = Path(sys.argv[1]), sys.argv[2]
staff = Staff(SettingsFile(home / "settings.json"), home)
for number in range(15):
    staff.add_agent(f"{prefix}{number}", {"name": prefix})
    staff.put_agent("shared", {"model": f"{prefix}{number}"})
"""


def test_two_processes_that_add_at_once_lose_nothing(staff: Staff, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", ADD, str(tmp_path / "home")]
    running = [subprocess.Popen([*command, prefix], stderr=subprocess.PIPE) for prefix in ("a", "b")]
    for process in running:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error.decode()
    expected = {f"{prefix}{number}" for prefix in ("a", "b") for number in range(15)} | {"shared"}
    assert set(staff.agents()) == expected
    json.loads((tmp_path / "home/settings.json").read_text())
    assert all((tmp_path / "work" / agent / "AGENTS.md").is_file() for agent in expected)


def test_who_forces_it_may_let_an_agent_work_in_a_folder_of_the_system(staff: Staff) -> None:
    staff.add_agent("coder")
    staff.change_agent("coder", {"working_directory": "/usr/agents"}, force=True)
    # What is changed later needs no force again.
    assert staff.change_agent("coder", {"name": "Coder"}).working_directory == "/usr/agents"
