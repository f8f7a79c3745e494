"""Two offices on one database, as two processes have them: what one must know of the other, it knows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.errors import StoreFailed
from postroom.office.lanes import provider_places
from postroom.office.lanes.provider_places import ProviderPlaces
from tests.acceptance.office import Gate, Staffed, opened, until
from tests.conftest import postgres_url

AGENTS = {name: {"name": name, "provider": "puppet", "model": ""} for name in ("lead", "coder")}


@pytest.fixture
async def rooms(tmp_path: Path) -> AsyncIterator[list[postroom.Room]]:
    url = postgres_url(tmp_path)
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(postroom.open(url, actor=name, housekeeping=False))
            for name in ("one", "two")
        ]


def open_office(room: postroom.Room, folder: Path, gate: Gate, **options: Any) -> Any:
    puppets = {"puppet": gate.puppet}
    return opened(room, folder, puppets=puppets, agents=AGENTS, teams={}, **options)


async def test_a_provider_is_asked_no_more_at_once_than_all_processes_together_may(
    rooms: list[postroom.Room], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_places, "LOOK_S", 0.01)
    gate = Gate()
    limits = {"turns_per_provider": {"puppet": 1}, "lease_s": 60}
    async with AsyncExitStack() as stack:
        desks: list[Staffed] = [
            await stack.enter_async_context(open_office(room, tmp_path, gate, limits=limits))
            for room in rooms
        ]
        for number, agent in enumerate(AGENTS):
            await desks[number].write(f"@{agent} hello", sender_id=f"person {number}")
        await gate.begun()
        gate.open.set()
        await desks[0].replies(2)
        assert gate.puppet.most_working == 1


async def test_a_place_is_renewed_and_a_store_that_is_away_ends_no_turn(
    rooms: list[postroom.Room], caplog: pytest.LogCaptureFixture
) -> None:
    one, two = (ProviderPlaces(room, "claude", 1, 0.2) for room in rooms)
    assert one.locked()
    async with one:
        waiting = asyncio.create_task(two.__aenter__())
        run, failures = rooms[0].run, []

        def fail(command: Any) -> Any:
            failures.append(command)
            raise StoreFailed(path="the store", reason="it is away")

        rooms[0].run = fail
        # Its lease ends meanwhile, so that another may have it; the turn here goes on.
        await waiting
        assert failures
        rooms[0].run = run
    await two.__aexit__(None, None, None)
    assert "was not renewed" in caplog.text


async def test_who_waits_for_a_place_can_be_stopped(rooms: list[postroom.Room]) -> None:
    one, two = (ProviderPlaces(room, "claude", 1, 60) for room in rooms)
    async with one:
        waiting = asyncio.create_task(two.__aenter__())
        await until(two._own.locked)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not two._own.locked()


async def test_a_turn_is_interrupted_and_cancelled_from_another_process(
    rooms: list[postroom.Room], tmp_path: Path
) -> None:
    gate = Gate()
    limits = {"lease_s": 3600}
    async with (
        open_office(rooms[0], tmp_path, gate, limits=limits) as worker,
        open_office(rooms[1], tmp_path, Gate(), limits=limits, start=False) as channel,
    ):
        await channel.write("@lead hello")
        await gate.begun()
        channel.office.interrupt("web", "somebody else")
        channel.office.interrupt("web", "ann")
        await gate.begun(2)
        # Its provider takes nothing into a turn, so the turn begins again.
        channel.office.steer("web", "ann")
        await gate.begun(3)
        [mail] = (await worker.room.messages(queue="office/inbox/lead")).messages
        await channel.office.cancel(mail.id)
        await gate.over()
        assert len(gate.puppet.asked) == 3
