"""A process that surely died with the store open is not waited for; one that may live still is."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conformance.helpers import events_of

import postroom
from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import InvalidField
from postroom.kernel import commands as c

CHILD = """
import sys, time
import postroom
from postroom.kernel import commands as c
opened = postroom.open_sync(sys.argv[1], actor="dead", housekeeping=False)
room = opened.__enter__()
room.create_queue("jobs", max_retries=3)
room.publish_many("jobs", range(5))
room.run(c.Lead(name="lane/coder", holder="dead/1", seconds=3600))
room.run(c.Lead(name="lane/writer", holder="other/1", seconds=3600))
room.claim("jobs", lease=3600, worker="dead/1")
room.claim("jobs", lease=3600)
room.claim("jobs", lease=3600, worker="remote")
room.claim("jobs", lease=3600, worker="deadly")
print("ready", flush=True)
time.sleep(600)
"""


def _work_and_die(url: str) -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGKILL)


def _exit_code(program: str, url: str) -> int:
    return subprocess.run([sys.executable, "-c", program, url], check=False, timeout=240).returncode


async def _led(room: Room, name: str) -> bool:
    return await room.run(c.Lead(name=name, holder="new", seconds=10))


async def test_what_a_killed_owner_had_in_hand_is_free_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'room.db'}"
    _work_and_die(url)
    async with postroom.open(url, actor="new", housekeeping=False) as room:
        counts = await room.counts("jobs")
        assert (counts.pending, counts.claimed) == (3, 2), "remote claims and like names stand"
        first = (await room.messages(queue="default/jobs")).messages[0]
        assert (first.state, first.attempts, first.failure_kind) == (State.PENDING, 1, "lease_expired")
        assert events_of(room, first.id) == ["published", "claimed", "lease_expired"]
        assert await _led(room, "lane/coder")
        assert not await _led(room, "lane/writer")


async def test_work_that_kills_its_process_ends_as_a_dead_letter(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'room.db'}"
    async with postroom.open(url, housekeeping=False) as room:
        await room.create_queue("jobs", max_retries=2)
        poison = await room.publish("jobs", "poison")
    claim = (
        "import postroom, os, sys\n"
        "opened = postroom.open_sync(sys.argv[1], housekeeping=False)\n"
        "room = opened.__enter__()\n"
        "room.claim('jobs', lease=3600)\n"
        "os._exit(9)"
    )
    for _ in range(2):
        assert _exit_code(claim, url) == 9
    async with postroom.open(url, housekeeping=False) as room:
        found = await room.get(poison.id)
        assert (found.state, found.failure_kind) == (State.DEAD, "lease_expired")


async def test_a_room_that_was_closed_leaves_its_claims_to_their_holders(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'room.db'}"
    async with postroom.open(url, actor="me", housekeeping=False) as room:
        await room.create_queue("jobs")
        await room.publish("jobs", 1)
        [held] = await room.claim("jobs", lease=3600)
    async with postroom.open(url, actor="me", housekeeping=False) as room:
        await room.complete(held)


async def test_taking_over_says_so_in_the_ledger_and_counts_the_attempt(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs")
    await room.publish_many("jobs", range(3))
    await room.claim("jobs", limit=3, lease=1000, worker="dead/2")
    assert await room.run(c.TakeOver(dead="dead", limit=2)) == 2
    assert await room.run(c.TakeOver(dead="dead", limit=2)) == 1
    assert (await room.counts("jobs")).pending == 3
    assert [message.attempts for message in await room.claim("jobs", limit=3)] == [2, 2, 2]


@pytest.mark.parametrize("wrong", ["", " ", "x" * 600])
async def test_nobody_takes_over_from_nobody(room: Room, wrong: str) -> None:
    with pytest.raises(InvalidField):
        await room.run(c.TakeOver(dead=wrong))
