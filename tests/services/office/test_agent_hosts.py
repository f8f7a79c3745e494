"""Agents of an office on two hosts, each with workspaces of its own, as one of them sees them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.app.application import build_dependencies
from postroom.app.home import Home
from postroom.app.host_name import name_host
from postroom.app.office_reloader import OfficeReloader
from postroom.clock import SECOND, SystemClock
from postroom.kernel.service_commands import ListProcesses
from postroom.office.agent_hosts import AgentHosts
from postroom.office.agents.views import AgentView
from postroom.office.intake.intake import Incoming
from postroom.runtime import SyncRoom
from postroom.services import callers
from postroom.services.agent_hosts import AgentElsewhere, AgentHost, HostNotFound, OneHostOnly
from postroom.services.needs_you import NeedKind
from postroom.services.office_context import ProcessFacts, ServerFacts
from postroom.services.server import ServerServices
from postroom.settings import SettingsFile
from tests.conftest import postgres_url
from tests.services.office.conftest import ServedOffice, document

OWNER = callers.owner(actor="tester")
WORKER = ProcessFacts(pid=1, roles=("worker",), version="1", started_at=0)


@asynccontextmanager
async def opened(folder: Path, *, works: bool = True, **changes: Any) -> AsyncIterator[ServerServices]:
    """The services of a host `a`, on which a worker runs or not, beside a host that has joined."""
    home = Home(folder / "home")
    home.make()
    file = SettingsFile(home.path / "settings.json")
    file.replace(document(folder, **changes))
    clock = SystemClock()
    async with postroom.open(postgres_url(folder), actor="a", housekeeping=False) as room:
        in_thread = SyncRoom(room._core)
        here, there = [
            await asyncio.to_thread(name_host, Home(path), in_thread) for path in (home.path, folder)
        ]
        assert there == f"{here}-2"
        reloader = OfficeReloader(room, file, home.path, clock, works=False, environment={}, host=here)
        await reloader.open()
        roles = ("worker",) if works else ("api",)
        own = ProcessFacts(pid=1, roles=roles, version="1", started_at=0, host=here)
        server = ServerFacts(host=here, processes=lambda: [own])
        deps = build_dependencies(
            room, reloader, file, home.path, clock, token="a-token-for-tests-0123456789", server=server
        )
        try:
            yield deps.services
        finally:
            await reloader.close(2)


def is_folder(agent: AgentView) -> bool:
    return Path(agent.working_directory).is_dir()


def names(services: ServerServices) -> tuple[str, str]:
    here = services._office.server.host
    return here, f"{here}-2"


async def test_a_folder_that_is_on_another_host_is_not_read_or_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as services:
        agents, (here, there) = services.agents, names(services)
        await agents.write_prompt(OWNER, "coder", "You code.")
        moved = await agents.move(OWNER, "coder", there)
        assert (moved.host, moved.before, moved.folder) == (there, None, None)
        for act in (
            lambda: agents.read_prompt(OWNER, "coder"),
            lambda: agents.write_prompt(OWNER, "coder", "No."),
            lambda: agents.read_memory(OWNER, "coder"),
            lambda: agents.read_note(OWNER, "coder", "x.md"),
            lambda: agents.read_heartbeat(OWNER, "coder"),
            lambda: agents.list_skills(OWNER, "coder"),
            lambda: agents.change_heartbeat(OWNER, "coder", content="?", enabled=False),
        ):
            with pytest.raises(AgentElsewhere, match=there):
                await act()
        await agents.change_heartbeat(OWNER, "coder", enabled=False)
        back = await agents.move(OWNER, "coder")
        assert (back.host, back.before, back.has_folder) == (here, there, False)
        assert (await agents.read_prompt(OWNER, "coder")).content == "You code."
        with pytest.raises(HostNotFound, match=there):
            await agents.move(OWNER, "coder", "nowhere")
        hosts = await agents.list_hosts(OWNER)
        assert {agent: each.host for agent, each in hosts.items()} == {"coder": here}


async def test_a_new_agent_works_where_its_folder_is_made(tmp_path: Path) -> None:
    async with opened(tmp_path) as services:
        made = await services.agents.add(OWNER, "tester", {"provider": "script"}, system_prompt="Test it.")
        assert (Path(made.working_directory) / "AGENTS.md").read_text() == "Test it."
        stored = await services.agents.put(OWNER, "second", {"provider": "script"})
        assert stored.added
        hosts = await services.agents.list_hosts(OWNER)
        assert {each.host for each in hosts.values()} == {names(services)[0]}
        assert set(hosts) == {"tester", "second"}
        assert not (await services.agents.put(OWNER, "second", {"name": "Second"})).added


async def test_where_no_turns_are_taken_no_folder_is_made(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as services:
        made = await services.agents.add(OWNER, "tester", {"provider": "script"}, system_prompt="Test it.")
        stored = await services.agents.put(OWNER, "second", {"provider": "script"})
        assert stored.added
        for each in (made, stored.agent):
            assert not is_folder(each)
        assert made.has_system_prompt
        assert await services.agents.list_hosts(OWNER) == {}


async def test_a_removed_agent_belongs_to_no_host_and_its_folder_elsewhere_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as services:
        agents, (here, there) = services.agents, names(services)
        await agents.add(OWNER, "tester", {"provider": "script"})
        removed = await agents.remove(OWNER, "tester")
        assert removed.workspace == "moved"
        assert await agents.list_hosts(OWNER) == {}
        await agents.move(OWNER, "coder", there)
        removed = await agents.remove(OWNER, "coder")
        assert (removed.workspace, there in removed.why) == ("kept", True)
        restored = await agents.restore(OWNER, "tester")
        assert is_folder(restored)
        assert {key: each.host for key, each in (await agents.list_hosts(OWNER)).items()} == {"tester": here}


async def test_it_needs_you_when_messages_wait_for_a_host_that_is_gone(tmp_path: Path) -> None:
    async with opened(tmp_path) as services:
        room, control = services._office.open_room, await services._office.control()  # type: ignore[attr-defined]
        await services.agents.move(OWNER, "coder", names(services)[1])
        assert [each for each in await services.needs_you.list_all(OWNER) if each.kind is NeedKind.HOST] == []
        sent = await control.office.take_in(Incoming(channel="web", sender="Ann", text="@coder hello"))
        [need] = [each for each in await services.needs_you.list_all(OWNER) if each.kind is NeedKind.HOST]
        assert need.is_blocking
        assert "postroom agent move coder" in need.detail
        story = await services.messages.explain(OWNER, sent.receipts[0].id)
        assert "postroom agent move coder" in story.waits_for
        await room.run(ListProcesses(process="1", data={"host": names(services)[1], "roles": ["worker"]}))
        assert [each for each in await services.needs_you.list_all(OWNER) if each.kind is NeedKind.HOST] == []
        assert (await services.messages.explain(OWNER, sent.receipts[0].id)).waits_for == ""


@pytest.mark.parametrize(
    ("seconds", "told"), [(47, "47 seconds"), (119, "119 seconds"), (180, "3 minutes"), (86_400, "24 hours")]
)
def test_how_long_a_host_is_silent_is_told_in_a_fitting_unit(seconds: int, told: str) -> None:
    gone = AgentHost(agent="coder", host="a", silence=seconds * SECOND, is_gone=True)
    assert f"(it was last heard of {told} ago)" in gone.explain()


async def test_where_all_see_one_folder_nobody_is_moved(tmp_path: Path) -> None:
    async with opened(tmp_path, workspace={"path": str(tmp_path / "work"), "shared": True}) as services:
        with pytest.raises(OneHostOnly, match="one folder"):
            await services.agents.move(OWNER, "coder")
        await AgentHosts(services._office.open_room).move("coder", "elsewhere")  # type: ignore[attr-defined]
        assert await services.agents.list_hosts(OWNER) == {}
        await services.agents.read_prompt(OWNER, "coder")


async def test_on_a_file_there_is_one_host(office: ServedOffice) -> None:
    with pytest.raises(OneHostOnly, match="a file"):
        await office.services.agents.move(office.owner, "coder")
    assert await office.services.agents.list_hosts(office.owner) == {}
    named = office.with_server(ServerFacts(host="was-on-a-server"))
    await named.agents.read_prompt(office.owner, "coder")
    assert await named.agents.list_hosts(office.owner) == {}
