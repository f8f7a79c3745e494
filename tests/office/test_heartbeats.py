"""Agents are asked from time to time: each time once, and never while the last question is open."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import OpenRoom
from tests.office.schedules.desk import Unchallenged, furnish, mail

from postroom import Room
from postroom.clock import SECOND, ManualClock
from postroom.office import heartbeats, queues
from postroom.office.heartbeats import LOOK_S, QUESTION, Heartbeats, HeartbeatState, pulses, question
from postroom.office.workspaces import Workspace
from postroom.settings.model import parse

MINUTE = 60 * SECOND


def an_asker(room: Room, clock: ManualClock, *agents: str, every: int = MINUTE) -> Heartbeats:
    found = [HeartbeatState(agent, every, lambda: "How are things?") for agent in agents or ("coder",)]
    return Heartbeats(room, lambda: found, clock)


async def answer(room: Room, agent: str = "coder") -> None:
    for message in await room.claim(queues.inbox(agent), limit=None):
        await room.complete(message)


async def test_an_agent_is_asked_after_each_interval(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    asker = an_asker(room, clock)
    assert await asker.round() == 60
    assert await mail(room) == [], "not at once"
    for count in range(1, 4):
        clock.advance(60)
        await asker.round()
        await asker.round()
        assert len(await mail(room)) == count
        await answer(room)
    letter = (await mail(room))[0]
    assert (letter.body["text"], letter.agent) == ("How are things?", "coder")
    assert (letter.channel, letter.sender) == ("heartbeat", "System")
    assert letter.channel in queues.SILENT, "nobody waits for the answer"
    assert await asker.last_sent() == {"coder": clock.now()}


async def test_an_agent_that_has_not_answered_is_not_asked_again(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    asker = an_asker(room, clock)
    await asker.round()
    for _ in range(10):
        clock.advance(60)
        assert await asker.round() == 60
    assert len(await mail(room)) == 1
    [letter] = await room.claim(queues.inbox("coder"), lease=3600)
    clock.advance(60)
    await asker.round()
    assert len(await mail(room)) == 1, "it is being worked on"
    await room.complete(letter)
    clock.advance(60)
    await asker.round()
    assert len(await mail(room)) == 2


async def test_a_question_that_died_does_not_silence_an_agent(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    asker = an_asker(room, clock)
    await asker.round()
    clock.advance(60)
    await asker.round()
    [letter] = await room.claim(queues.inbox("coder"))
    await room.fail(letter, "broken", retry=False)
    clock.advance(60)
    await asker.round()
    assert len(await mail(room)) == 1, "the dead one lies among the dead letters"
    assert (await room.counts(queues.inbox("coder"))).pending == 1


async def test_a_long_sleep_is_one_question(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    asker = an_asker(room, clock)
    await asker.round()
    clock.advance(7 * 24 * 3600 + 20)
    assert await asker.round() == 40, "the next comes when it would have come"
    await asker.round()
    assert len(await mail(room)) == 1


async def test_of_many_processes_one_asks(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    askers = [an_asker(room, clock, "coder", "lead") for _ in range(4)]
    for asker in askers:
        asker._leader = Unchallenged(room, "heartbeats", clock)
        await asker.round()
    for count in range(1, 6):
        clock.advance(60)
        await asyncio.gather(*(asker.round() for asker in askers))
        for agent in ("coder", "lead"):
            assert len(await mail(room, agent)) == count
            await answer(room, agent)


@pytest.mark.needs("reopen")
async def test_a_restart_neither_forgets_nor_repeats(open_room: OpenRoom, clock: ManualClock) -> None:
    for count in (0, 1, 1, 2):
        async with open_room() as room:
            await furnish(room)
            await an_asker(room, clock).round()
            assert len(await mail(room)) == count
            await answer(room)
        clock.advance(60 if count != 1 else 30)


async def test_a_clock_put_back_neither_floods_nor_silences(room: Room, clock: ManualClock) -> None:
    await furnish(room)
    asker = an_asker(room, clock)
    clock.advance(365 * 86_400)
    await asker.round()
    clock.advance(-365 * 86_400)
    await asker.round()
    for _ in range(5):
        clock.advance(60)
        await asker.round()
        await answer(room)
    assert len(await mail(room)) == 5


async def test_a_missing_inbox_holds_nobody_up(
    room: Room, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    await furnish(room)
    asker = an_asker(room, clock, "ghost", "coder")
    await asker.round()
    clock.advance(60)
    assert await asker.round() == LOOK_S
    assert len(await mail(room)) == 1
    assert "@ghost" in caplog.text


def interval(document: dict[str, Any]) -> dict[str, float]:
    settings = parse({"workspace": {"path": "/nowhere"}, **document})
    return {pulse.agent: pulse.every / SECOND for pulse in pulses(settings)}


def test_settings_say_who_is_asked_and_how_often() -> None:
    agents: dict[str, Any] = {
        "usual": {},
        "own": {"heartbeat": {"interval": 120}},
        "off": {"heartbeat": {"enabled": False, "interval": 120}},
        "never": {"heartbeat": {"interval": 0}},
        "hasty": {"heartbeat": {"interval": 0.5}},
    }
    assert interval({"agents": agents}) == {"usual": 3600, "own": 120, "hasty": 10}
    assert interval({"agents": agents, "monitoring": {"heartbeat_interval": 0}}) == {"own": 120, "hasty": 10}


def test_an_agents_own_file_says_what_is_asked(tmp_path: Path) -> None:
    own = Workspace("coder", tmp_path / "coder", tmp_path)
    file = own.root / "heartbeat.md"
    assert question(own) == QUESTION
    own.root.mkdir()
    file.write_text("  \n")
    assert question(own) == QUESTION
    file.write_bytes(b"Any \xff news?\n")
    assert question(own) == "Any \ufffd news?"
    file.write_text("x" * (heartbeats.FILE_BYTES + 5))
    assert len(question(own)) == heartbeats.FILE_BYTES
    file.unlink()
    file.mkdir()
    assert question(own) == QUESTION


def test_a_link_to_a_file_elsewhere_is_not_asked(tmp_path: Path) -> None:
    own = Workspace("coder", tmp_path / "coder", tmp_path)
    own.root.mkdir()
    (tmp_path / "secret").write_text("the house token")
    (own.root / "heartbeat.md").symlink_to(tmp_path / "secret")
    assert question(own) == QUESTION
