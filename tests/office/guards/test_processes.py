"""Guards over several processes, and over processes that are killed at any moment."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.office.guards.house import Guarded, Paid, guarded, office_of
from tests.office.guards.remote import served

import postroom
from postroom import Message, Room, State
from postroom.office.guards import budgets, pauses
from postroom.office.intake.intake import Incoming
from postroom.providers.script_rules import Script, ScriptRule

QUIET = {"hops": 900, "cycles": 900, "repeats": 900}
RICH = {"conversation_usd": None, "agent_daily_usd": None, "team_daily_usd": None, "daily_usd": None}


async def _child(*args: str, **environment: str) -> asyncio.subprocess.Process:
    root = Path(__file__).parents[3]
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.office.guards.child",
        *args,
        cwd=root,
        env={**os.environ, **environment, "PYTHONPATH": str(root)},
        stdout=asyncio.subprocess.PIPE,
    )


async def _kill(child: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        child.send_signal(signal.SIGKILL)
    await child.wait()


@contextlib.asynccontextmanager
async def _shared(tmp_path: Path) -> AsyncIterator[tuple[Room, Path]]:
    socket = tmp_path / "room.sock"
    async with postroom.open(str(tmp_path / "room.db"), durability="relaxed") as room, served(room, socket):
        yield room, socket


async def test_processes_that_spend_together_never_spend_more_than_there_is(tmp_path: Path) -> None:
    async with _shared(tmp_path) as (room, socket):
        children = [await _child("spend", str(socket), name) for name in ("one", "two", "three")]
        told = [await child.communicate() for child in children]
        got = [int(out) for out, _ in told]
        assert sum(got) == 20
        purse = (await room.accounts("purse"))["purse"]
        assert (purse.spent, purse.reserved) == (20_000_000, 0)


async def test_lanes_in_two_processes_keep_within_one_conversations_limit(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "guards": {**QUIET, "messages": 900},
        "budgets": {**RICH, "conversation_usd": 0.55, "reserve_usd": 0.1, "warn_at": 1},
        "price": 0.1,
    }
    async with _shared(tmp_path) as (room, socket):
        office, _ = office_of(room, tmp_path, **settings)
        await office.furnish()
        # Both begin at once, and each hands on to the other.
        text = "[@lead: go] [@coder: go]"
        await office.take_in(
            Incoming(channel="web", sender="Ann", sender_id="ann", text=text, platform_id="1")
        )
        lanes = [
            await _child("lane", str(socket), agent, OFFICE=json.dumps(settings))
            for agent in ("lead", "coder")
        ]
        try:
            desk = Guarded(room, office, Paid(Script(), None))
            await desk.until(_asked_and_still, within=120)
        finally:
            for lane in lanes:
                await _kill(lane)
        account = await desk.account(budgets.conversation("web:1"))
        assert (account.spent, account.reserved) == (500_000, 0)
        assert len(await room.records("turn")) == 5
        assert len(await desk.notices()) == 1


def _asked_and_still(found: list[Message]) -> bool:
    at_work = [m for m in found if m.state in (State.PENDING, State.CLAIMED) and "outbox" not in m.queue]
    return not at_work and any(m.message_type == "office.notice" for m in found)


async def _until_told(child: asyncio.subprocess.Process, kind: str, times: int = 1) -> None:
    assert child.stdout is not None
    async with asyncio.timeout(120):
        while times:
            line = await child.stdout.readline()
            assert line, "the office ended by itself"
            times -= line.decode().strip() == kind


async def test_a_crash_between_reserving_and_settling_is_paid_by_nobody_and_retried_once(
    tmp_path: Path,
) -> None:
    settings = {"price": 0.1}
    told = {"OFFICE": json.dumps(settings), "SLOW": "600"}
    child = await _child("office", str(tmp_path), WRITE="@lead slow", **told)
    await _until_told(child, "record.turn.started")
    await _kill(child)
    async with guarded(tmp_path, ScriptRule(reply="done"), **settings) as desk:
        talk = budgets.conversation("web:1")
        assert (await desk.account(talk)).reserved == 500_000, "what the dead set aside is still held"
        await desk.quiet()
        account = await desk.account(talk)
        assert account.spent == 100_000
        assert account.reserved == 0, "an agent has one turn at a time, so the other one was dead"
        [mail] = await desk.mail()
        assert (mail.state, mail.attempts) == (State.COMPLETED, 2)
        [turn] = await desk.room.records("turn")
        assert turn.data["outcome"] == "finished"


POINTS = [
    pytest.param("message.published", 1, marks=pytest.mark.slow),
    ("account.reserved", 1),
    pytest.param("record.turn.started", 3, marks=pytest.mark.slow),
    pytest.param("account.settled", 2, marks=pytest.mark.slow),
    pytest.param("message.completed", 4, marks=pytest.mark.slow),
    ("account.frozen", 1),
    pytest.param("message.snoozed", 1, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("kind", "times"), POINTS)
async def test_a_paused_conversation_outlives_a_kill_at_any_point(
    tmp_path: Path, kind: str, times: int
) -> None:
    settings = {
        "guards": {**QUIET, "messages": 4},
        "budgets": RICH,
        "price": 0.1,
    }
    told = {"OFFICE": json.dumps(settings)}
    child = await _child("office", str(tmp_path), WRITE="@lead go", **told)
    await _until_told(child, kind, times)
    await _kill(child)
    child = await _child("office", str(tmp_path), **told)
    await _until_told(child, "message.snoozed")
    await _kill(child)
    async with guarded(tmp_path, ScriptRule(reply="over"), **settings) as desk:
        [waiting] = await desk.held(1)
        assert len(await desk.notices()) == 1
        served_ = [m for m in await desk.mail() if m.state is State.COMPLETED]
        assert len(served_) == 4
        assert await desk.spent("web:1") == 400_000
        assert waiting.attempts <= 1, "the kill may have cost one, the guard none"
        assert len(await pauses.paused_conversations(desk.room)) == 1
        assert await pauses.resume(desk.room, "web:1") == 1
        await desk.quiet()
        replies = [m for m in await desk.all() if m.message_type == "office.reply"]
        assert len(replies) == 5, "no reply is lost or doubled"


async def test_stop_and_pause_all_outlive_a_kill(tmp_path: Path) -> None:
    told = {"OFFICE": json.dumps({}), "SLOW": "600"}
    child = await _child("office", str(tmp_path), WRITE="@lead slow", **told)
    await _until_told(child, "record.turn.started")
    await _kill(child)
    async with postroom.open(str(tmp_path / "room.db")) as room:
        assert await pauses.pause_all(room)
    async with guarded(tmp_path, ScriptRule(reply="done")) as desk:
        await desk.held(1)
        assert desk.paid.turns == 0
        assert await pauses.stop(desk.room, "web:1") == 1
    async with guarded(tmp_path, ScriptRule(reply="done")) as desk:
        assert await pauses.paused(desk.room)
        assert await pauses.resume_all(desk.room) == 0
        [mail] = await desk.mail()
        assert mail.state is State.CANCELLED
