"""A team has members that exist and a leader among them, whatever is asked for."""

from pathlib import Path
from typing import Any

import pytest

from postroom.errors import InvalidField
from postroom.office.agents import Staff, TeamNotFound
from postroom.settings import SettingsFile


@pytest.fixture
def file(tmp_path: Path) -> SettingsFile:
    file = SettingsFile(tmp_path / "home/settings.json")
    agents = {name: {} for name in ("lead", "coder", "reviewer")}
    file.replace({"workspace": {"path": str(tmp_path / "work")}, "agents": agents})
    return file


@pytest.fixture
def staff(file: SettingsFile, tmp_path: Path) -> Staff:
    return Staff(file, tmp_path / "home")


def test_a_team_is_added_shown_changed_and_removed(staff: Staff, file: SettingsFile) -> None:
    view, added = staff.put_team("dev", {"name": "Dev", "agents": ["Lead", "coder", "coder"]})
    assert added
    assert (view.agents, view.leader_agent, view.problems) == (("lead", "coder"), "lead", ())
    assert staff.teams() == {"dev": view}
    view, added = staff.put_team("DEV", {"agents": ["coder", "reviewer"], "leader_agent": "reviewer"})
    assert not added
    assert (view.name, view.agents, view.leader_agent) == ("Dev", ("coder", "reviewer"), "reviewer")
    assert staff.put_team("dev", {"daily_usd": 5})[0].daily_usd == 5
    assert staff.put_team("qa", {"agents": ["coder"]})[1]
    staff.remove_team("dev")
    assert set(staff.teams()) == {"qa"}
    assert set(staff.agents()) == {"lead", "coder", "reviewer"}
    with pytest.raises(TeamNotFound):
        staff.remove_team("dev")


@pytest.mark.parametrize(
    ("team", "fields"),
    [
        ("dev2", {"agents": []}),
        ("dev2", {}),
        ("dev2", {"agents": "lead"}),
        ("dev2", {"agents": [3]}),
        ("dev2", {"agents": ["lead", "ghost"]}),
        ("dev2", {"agents": ["lead"], "leader_agent": "coder"}),
        ("dev2", {"agents": ["lead"], "leader_agent": 3}),
        ("dev2", {"agents": ["lead"], "leader": "lead"}),
        ("../x", {"agents": ["lead"]}),
        ("default", {"agents": ["lead"]}),
        ("coder", {"agents": ["lead"]}),
    ],
)
def test_a_team_that_could_not_work_is_refused(
    staff: Staff, file: SettingsFile, team: str, fields: dict[str, Any]
) -> None:
    staff.put_team("dev", {"agents": ["lead", "coder"]})
    before = file.path.read_bytes()
    with pytest.raises(InvalidField):
        staff.put_team(team, fields)
    assert file.path.read_bytes() == before


def test_a_change_cannot_take_the_leader_out(staff: Staff, file: SettingsFile) -> None:
    staff.put_team("dev", {"agents": ["lead", "coder"]})
    before = file.path.read_bytes()
    with pytest.raises(InvalidField, match="leader_agent"):
        staff.put_team("dev", {"agents": ["coder"]})
    assert file.path.read_bytes() == before


def test_an_agent_cannot_take_the_id_of_a_team(staff: Staff) -> None:
    staff.put_team("dev", {"agents": ["lead"]})
    with pytest.raises(InvalidField, match="agents and teams need different ids"):
        staff.add_agent("dev")
