"""An agent works on the host that has its workspace, and nowhere else until it is moved."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.kernel.service_commands import ListProcesses
from postroom.office.agent_hosts import AgentHosts
from postroom.office.heartbeats import Heartbeats, HeartbeatState
from postroom.office.lanes import lane
from postroom.providers.protocol import TurnRequest
from postroom.services.agent_hosts import list_agent_hosts
from postroom.services.waiting_reasons import explain_guards
from tests.acceptance.office import Puppet, Staffed, opened, text
from tests.conftest import MARIADB, POSTGRES, StoreKind

AGENTS = {name: {"name": name, "provider": "puppet", "model": ""} for name in ("lead", "coder")}


@pytest.fixture(params=[POSTGRES, MARIADB], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> StoreKind:
    return request.param


@pytest.fixture
async def rooms(kind: StoreKind, tmp_path: Path) -> AsyncIterator[list[postroom.Room]]:
    url = kind.url(tmp_path)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(postroom.open(url, actor=name, housekeeping=False))
            for name in ("a", "b")
        ]


def open_host(room: postroom.Room, folder: Path, **options: Any) -> Any:
    """A host that answers with where it worked."""

    def act(request: TurnRequest) -> str:
        return f"{room.actor} in {request.workspace.parent.parent.name}"

    options = {"host": room.actor, "limits": {"lease_s": 1}, **options}
    return opened(
        room, folder / room.actor, puppets={"puppet": Puppet(act)}, agents=AGENTS, teams={}, **options
    )


async def ask(desk: Staffed, agent: str, times: int = 1) -> str:
    """The answer that comes to the question."""
    await desk.write(f"@{agent} where are you?")
    replies = await desk.replies(times)
    return text(replies[-1])


async def test_who_first_works_with_an_agent_keeps_it(rooms: list[postroom.Room], tmp_path: Path) -> None:
    """Also while the other host is the only one that is there."""
    a, b = rooms
    async with open_host(a, tmp_path) as desk:
        assert "a in a" in await ask(desk, "coder")
        assert await AgentHosts(a).list_all() == {"coder": "a"}, "nothing is known of who has not worked"
    async with open_host(b, tmp_path) as desk:
        await desk.write("@coder where are you?")
        await desk.write("@lead where are you?")
        replies = await desk.replies(2)
        assert next(text(each) for each in replies if each.agent == "lead").startswith("b in b")
        [waiting] = (await b.messages(queue="office/inbox/coder", state="pending")).messages
        assert not waiting.attempts
    async with open_host(a, tmp_path) as desk:
        replies = await desk.replies(3)
        assert [text(each).split()[0] for each in replies if each.agent == "coder"] == ["a", "a"]


async def test_an_agent_that_is_moved_works_on_the_other_host(
    rooms: list[postroom.Room], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "ELSEWHERE_S", 0.05)
    async with open_host(rooms[0], tmp_path) as one, open_host(rooms[1], tmp_path) as two:
        first = (await ask(one, "coder")).split()[0]
        other = {"a": "b", "b": "a"}[first]
        await AgentHosts(rooms[0]).move("coder", other)
        assert (await ask(two, "coder", 2)).split()[0] == other
        await AgentHosts(rooms[0]).move("coder", first)
        assert (await ask(two, "coder", 3)).split()[0] == first


async def test_of_two_hosts_that_take_an_agent_at_once_one_has_it(rooms: list[postroom.Room]) -> None:
    one, two = (AgentHosts(room, room.actor) for room in rooms)
    taken = await asyncio.gather(*(each.take(f"x{number}") for number in range(20) for each in (one, two)))
    assert [sum(taken[at : at + 2]) for at in range(0, 40, 2)] == [1] * 20
    hosts = await one.list_all()
    assert await one.take("x0") == (hosts["x0"] == "a")
    await one.forget("x0")
    await one.forget("x0")
    assert await two.take("x0")
    assert not await one.is_here("x0")
    assert await AgentHosts(rooms[0]).is_here("x0"), "where there is one folder, everybody may"
    assert await AgentHosts(rooms[0]).take("x0")


async def test_with_a_folder_that_all_see_nothing_is_kept_of_hosts(
    rooms: list[postroom.Room], tmp_path: Path
) -> None:
    await AgentHosts(rooms[0]).move("coder", "a host that is gone")
    shared = {"path": str(tmp_path / "work"), "shared": True}
    async with open_host(rooms[0], tmp_path, host="", workspace=shared) as desk:
        assert (await ask(desk, "coder")).startswith("a")
        assert await AgentHosts(rooms[0]).list_all() == {}


async def test_workspaces_that_are_here_are_this_hosts(rooms: list[postroom.Room], tmp_path: Path) -> None:
    a, b = rooms
    async with open_host(a, tmp_path) as desk:
        await ask(desk, "coder")
        await AgentHosts(a).forget("coder")
    async with open_host(b, tmp_path, start=False) as other:
        await other.office.claim_workspaces()
    assert await AgentHosts(a).list_all() == {}
    async with open_host(a, tmp_path, start=False) as desk:
        await desk.office.claim_workspaces()
    assert await AgentHosts(a).list_all() == {"coder": "a"}


async def test_each_host_asks_its_own_agents_how_things_are(rooms: list[postroom.Room]) -> None:
    for room, agent in zip(rooms, AGENTS, strict=True):
        await AgentHosts(room, room.actor).take(agent)
    pulses = [HeartbeatState(name, 1, lambda: "how are things?") for name in AGENTS]
    for room, asked in zip(rooms, (["lead"], ["coder", "lead"]), strict=True):
        await Heartbeats(room, lambda: pulses, room.clock, host=room.actor).round()
        assert [each.key for each in await room.documents("heartbeat")] == asked


async def test_it_is_told_that_the_host_of_an_agent_is_gone(
    rooms: list[postroom.Room], tmp_path: Path
) -> None:
    a, b = rooms
    async with open_host(b, tmp_path, start=False) as desk:
        sent = await desk.write("@coder where are you?")
        message = await b.get(sent.receipts[0].id)
        assert await list_agent_hosts(b) == {}
        await AgentHosts(a).move("coder", "a")
        [host] = (await list_agent_hosts(b)).values()
        assert host.is_gone
        assert "where no worker runs. Start one there" in host.explain()
        await a.run(ListProcesses(process="1", data={"host": "a", "roles": ["api"]}))
        [host] = (await list_agent_hosts(b)).values()
        assert "last heard of 0 seconds ago" in host.explain()
        assert "postroom agent move coder" in host.explain()
        [told] = await explain_guards(b, message)
        assert "the host a, which is away" in told
        await a.run(ListProcesses(process="2", data={"host": "a", "roles": ["worker"]}))
        [host] = (await list_agent_hosts(b)).values()
        assert (host.is_gone, host.explain(), await explain_guards(b, message)) == (False, "", [])
