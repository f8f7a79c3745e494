"""Agents and teams are managed by name; what is wrong changes nothing, and what is removed can come back."""

from pathlib import Path

import pytest

from postroom.errors import InvalidField, PostroomError
from postroom.office.agents import AgentExists, AgentNotFound, TeamExists, TeamNotFound
from postroom.services.agents import NoteNotFound
from tests.services.office.conftest import ServedOffice


async def test_a_new_agent_has_its_provider_from_the_first_one(office: ServedOffice) -> None:
    agents = office.services.agents
    made = await agents.add(
        office.owner, "tester", {"name": "Tester", "model": None}, system_prompt="Test everything."
    )
    assert (made.id, made.name, made.provider) == ("tester", "Tester", "script")
    assert "tester" in office.control.office.directory.agents, "it is at work at once"
    assert "Test everything." in (await agents.read_prompt(office.owner, "tester")).content
    with pytest.raises(AgentExists):
        await agents.add(office.owner, "TESTER", {})
    own = await agents.add(office.owner, "other", {"provider": "anthropic", "model": "opus"})
    assert (own.provider, own.model) == ("anthropic", "opus")


async def test_put_adds_or_changes_and_keeps_what_it_does_not_name(office: ServedOffice) -> None:
    agents = office.services.agents
    added = await agents.put(office.owner, "writer", {"name": "Writer", "provider": "script"})
    changed = await agents.put(office.owner, "writer", {"model": "fast"}, system_prompt="Write.")
    assert (added.added, changed.added) == (True, False)
    assert (changed.agent.name, changed.agent.model) == ("Writer", "fast")
    assert (await agents.change(office.owner, "writer", {"name": "Poet"})).name == "Poet"
    assert set(await agents.list_all(office.owner)) >= {"writer", "coder"}
    assert (await agents.get(office.owner, "writer")).name == "Poet"


async def test_a_removed_agent_comes_back_from_its_backup(office: ServedOffice) -> None:
    agents = office.services.agents
    await agents.write_prompt(office.owner, "reviewer", "Be strict.")
    await agents.remove(office.owner, "reviewer")
    assert "reviewer" not in office.control.office.directory.agents
    [backup] = await agents.backups(office.owner)
    assert backup.agent == "reviewer"
    assert (await agents.restore(office.owner, "reviewer")).name == "Reviewer"
    assert "Be strict." in (await agents.read_prompt(office.owner, "reviewer")).content


async def test_of_several_agents_all_are_reset_or_none(office: ServedOffice) -> None:
    agents = office.services.agents
    with pytest.raises(AgentNotFound):
        await agents.reset(office.owner, "coder", "nobody")
    assert await office.room.records("session.reset") == []
    assert await agents.reset(office.owner, "coder", "LEAD") == ("coder", "lead")
    assert len(await office.room.records("session.reset")) == 2


async def test_what_is_in_an_agents_folder(office: ServedOffice) -> None:
    agents = office.services.agents
    await agents.change_heartbeat(office.owner, "coder", content="Anything new?")
    await agents.change_heartbeat(office.owner, "coder", enabled=False, interval=60)
    beat = await agents.read_heartbeat(office.owner, "coder")
    assert (beat.content, beat.enabled, beat.interval) == ("Anything new?", False, 60)
    memory = await agents.read_memory(office.owner, "coder")
    assert memory.folder.endswith("memory")
    assert memory.files == ()
    note = Path(memory.folder) / "harbour.md"
    note.parent.mkdir(exist_ok=True)
    note.write_text("It is closed on Sundays.", "utf-8")
    assert (await agents.read_memory(office.owner, "coder")).files == (("harbour.md", "harbour.md"),)
    assert (await agents.read_note(office.owner, "coder", "harbour.md")).content == "It is closed on Sundays."
    with pytest.raises(NoteNotFound):
        await agents.read_note(office.owner, "coder", "../AGENTS.md")
    assert isinstance(await agents.list_skills(office.owner, "coder"), list)
    assert await agents.find_skills(office.owner, "coder", " ") == {"results": []}
    with pytest.raises(InvalidField):
        await agents.find_skills(office.owner, "coder", "--not-a-word")
    with pytest.raises(InvalidField):
        await agents.install_skill(office.owner, "coder", "--not-a-ref")


async def test_everybody_here_may_know_who_works_in_which_team(office: ServedOffice) -> None:
    found = {each.id: each for each in await office.services.agents.directory(office.agent("reviewer"))}
    assert (found["coder"].name, found["coder"].teams) == ("Coder", ("dev",))
    assert found["reviewer"].teams == ()


async def test_teams_grow_shrink_and_end(office: ServedOffice) -> None:
    teams = office.services.teams
    made = await teams.add(office.owner, "ops", ["reviewer", "coder"], name="Ops")
    assert (made.name, made.leader_agent) == ("Ops", "reviewer")
    with pytest.raises(TeamExists):
        await teams.add(office.owner, "ops", ["coder"])
    with pytest.raises(PostroomError):
        await teams.add(office.owner, "empty", [])
    assert set(await teams.list_all(office.owner)) == {"dev", "ops"}
    assert (await teams.add_member(office.owner, "ops", "lead")).agents == ("reviewer", "coder", "lead")
    left = await teams.remove_member(office.owner, "ops", "reviewer", leader="lead")
    assert (left.agents, left.leader_agent) == (("coder", "lead"), "lead")
    assert (await teams.put(office.owner, "ops", {"name": "Operations"})).name == "Operations"
    assert (await teams.get(office.owner, "ops")).leader_agent == "lead"
    await teams.remove(office.owner, "ops")
    assert "ops" not in office.control.office.directory.teams
    with pytest.raises(TeamNotFound):
        await teams.get(office.owner, "ops")
