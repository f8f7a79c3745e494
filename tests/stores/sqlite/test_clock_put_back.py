"""A clock that was days ahead and came back: nothing stands still, nothing goes early, it can be cured."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Charge
from postroom.kernel.housekeeping.housekeepers import PRUNER, Retention
from postroom.kernel.states import State
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.runtime import SyncRoom
from postroom.services.message_events import events_of

DAY = 86_400
# No whole second, as real clocks.
START = 1_800_000_000 * SECOND + 123_457
AHEAD = 3 * DAY
KEEP = Retention(archive_after_s=0, archive_s=2 * DAY, ledger_s=2 * DAY, records_s=2 * DAY)

# A process whose clock is ahead, and which dies in the middle of its work.
WRONG = """
import os, sys
import postroom
from postroom.clock import SECOND, ManualClock
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Charge

clock = ManualClock(int(sys.argv[2]))
opened = postroom.open_sync(sys.argv[1], clock=clock, housekeeping=False, actor="wrong")
room = opened.__enter__()
room.publish("jobs", "claimed")
room.claim("jobs", lease=30, worker="elsewhere")
room.publish("jobs", "failed")
[failed] = room.claim("jobs")
room.fail(failed, "try again", delay=60)
room.publish("jobs", "delayed", delay=90)
room.publish("jobs", "short-lived", ttl=120)
room.publish("jobs", "named", delay_until=1_802_000_000 * SECOND)
room.publish("held", "held")
[held] = room.claim("held")
room.run(c.Freeze(account="money", reason="spent"))
room.run(c.Hold(account="money", seconds=3600, message_id=held.id, token=held.claim_token))
room.run(c.Reserve(holder="turn", charges=(Charge("purse", 5),), seconds=600))
room.run(c.Lead(name="office", holder="elsewhere", seconds=15))
room.schedule("hourly", "ticks", every_s=3600)
os._exit(0)
"""


def open_room(path: Path, clock: ManualClock) -> contextlib.AbstractContextManager[SyncRoom]:
    return postroom.open_sync(str(path), clock=clock, housekeeping=False, retention=KEEP, actor="right")


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a store that a process with the wrong clock has used."""
    folder = tmp_path_factory.mktemp("wrong")
    path = folder / "postroom.db"
    with open_room(path, ManualClock(START)) as before:
        for queue in ("jobs", "held", "ticks"):
            before.create_queue(queue, visibility_timeout_s=30)
        before.record("note", "early", {})
    wrong = str(START + AHEAD * SECOND)
    subprocess.run([sys.executable, "-c", WRONG, str(path), wrong], check=True, timeout=300)
    return folder


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START + 10 * SECOND)


@pytest.fixture
def room(left_behind: Path, tmp_path: Path, clock: ManualClock) -> Iterator[SyncRoom]:
    """As it is found by a process with the right clock."""
    shutil.copytree(left_behind, tmp_path, dirs_exist_ok=True)
    with open_room(tmp_path / "postroom.db", clock) as found:
        yield found


def claimed(room: SyncRoom, queue: str = "jobs") -> set[str]:
    found = room.claim(queue, limit=None, worker="right")
    for message in found:
        room.complete(message)
    return {message.body for message in found}


def test_leases_retries_delays_and_leaderships_end_by_the_clocks_pace(
    room: SyncRoom, clock: ManualClock
) -> None:
    assert claimed(room) == {"short-lived"}
    assert not room.run(c.Lead(name="office", holder="right", seconds=15))
    clock.advance(31)
    assert claimed(room) == {"claimed"}, "its lease is over"
    assert room.run(c.Lead(name="office", holder="right", seconds=15))
    clock.advance(60)
    assert claimed(room) == {"failed", "delayed"}
    clock.advance(3600)
    assert claimed(room, "held") == {"held"}
    room.housekeep("queue_scheduler")
    assert room.counts("ticks").pending == 1


def test_nothing_is_deleted_before_it_is_due_by_the_clock(room: SyncRoom, clock: ManualClock) -> None:
    room.publish("jobs", "new")
    first = room.messages().messages[0]
    assert first.created_at > clock.now() + 2 * DAY * SECOND, "the ledger's time is ahead"
    claimed(room)
    room.housekeep("message_archiver")
    before = [event.seq for event in room.events()]
    assert room.housekeep(PRUNER) == 0
    assert [event.seq for event in room.events()] == before
    clock.advance(2 * DAY + 11)
    assert room.housekeep(PRUNER) > 0, "by the clock it is due"


def test_time_is_set_back_and_what_was_counted_from_it_is_counted_anew(
    room: SyncRoom, clock: ManualClock
) -> None:
    done = room.run(c.SetTimeBack(to=clock.now()))
    assert done.ahead == (AHEAD - 10) * SECOND
    counted = (done.leases, done.delays, done.lives, done.schedules, done.leaderships, done.reservations)
    assert counted == (1, 3, 1, 1, 1, 1)
    assert done.ended == 0
    assert room.head().time == clock.now()
    now = room.get(room.publish("jobs", "now").id)
    assert now.created_at == clock.now(), "dated right"
    # Those of the wrong time are before it, in the order in which they came.
    assert [message.body for message in room.claim("jobs", limit=2)] == ["short-lived", "now"]
    assert room.run(c.Lead(name="office", holder="right", seconds=15))
    clock.advance(31)
    assert "claimed" in claimed(room)
    clock.advance(60)
    assert {"failed", "delayed"} <= claimed(room)
    assert room.accounts("purse")["purse"].reserved == 5
    clock.advance(3600)
    assert room.accounts("purse")["purse"].reserved == 0
    room.housekeep("queue_scheduler")
    assert room.counts("ticks").pending == 1
    [named] = [each for each in room.messages(queue="default/jobs").messages if each.body == "named"]
    assert named.visible_at == 1_802_000_000 * SECOND, "a moment that was named stays"
    assert not verify_problems(room)


def verify_problems(room: SyncRoom) -> list[str]:
    from postroom.terminal.cli.verify import verify

    found = []
    try:
        room.look(verify)
    except postroom.PostroomError as error:
        found.append(str(error))
    return found


def test_what_waits_for_a_budget_still_goes_on_with_its_thaw(room: SyncRoom, clock: ManualClock) -> None:
    room.run(c.SetTimeBack(to=clock.now()))
    assert room.run(c.Thaw(account="money")) == 1
    assert claimed(room, "held") == {"held"}


def test_events_are_found_on_both_sides_of_the_place_where_time_goes_back(
    room: SyncRoom, clock: ManualClock, tmp_path: Path
) -> None:
    [wrong] = [each for each in room.messages(queue="default/jobs").messages if each.body == "short-lived"]
    room.run(c.SetTimeBack(to=clock.now()))
    clock.advance(1)
    assert claimed(room) == {"short-lived"}
    right = room.publish("jobs", "right").id
    clock.advance(1)
    assert claimed(room) == {"right"}
    for message_id in (wrong.id, right):
        message = room.get(message_id)
        types = [event.type for event in room.look(lambda reader, m=message: events_of(reader, m))]
        assert types == ["message.published", "message.claimed", "message.completed"]
    start = room.look(lambda reader: reader.last_before(clock.now()))
    assert [event.type for event in room.events(start)] == ["message.claimed", "message.completed"]
    # The pipeline looks at the file itself: from the earlier place on, up to the later one.
    source = SqliteSource(str(tmp_path / "postroom.db"))
    assert source.seq_before(clock.now(), latest=True) == start
    wrong_time = next(event.seq for event in room.events() if event.time > START + DAY * SECOND)
    assert source.seq_before(clock.now()) == wrong_time - 1


def test_records_after_the_place_are_kept_for_a_reader_that_stands_before_it(
    room: SyncRoom, clock: ManualClock
) -> None:
    """A reader has passed what is older than its event; what came after time went back is not."""
    last = room.head().seq
    room.set_position("lake", last, hold=True)
    room.run(c.SetTimeBack(to=clock.now()))
    clock.advance(1)
    room.record("note", "late", {"n": 1})
    room.record("note", "late", {"n": 2})
    clock.advance(2 * DAY + 60)
    room.housekeep(PRUNER)
    assert [record.key for record in room.records("note")] == ["early", "late", "late"]
    room.set_position("lake", room.head().seq, hold=True)
    room.housekeep(PRUNER)
    assert [record.data for record in room.records("note", "late")] == [{"n": 2}]


def test_records_are_found_on_both_sides_of_the_place_where_time_goes_back(
    tmp_path: Path, clock: ManualClock
) -> None:
    """A new lake that begins with a moment must not pass over records that the wrong clock dated later."""
    path = tmp_path / "postroom.db"
    with open_room(path, clock) as room:
        room.record("note", "before", {})
        clock.advance(AHEAD)
        room.record("note", "wrong", {})
        clock.advance(-AHEAD + 10)
        room.run(c.SetTimeBack(to=clock.now()))
        room.record("note", "right", {})
        source, (before, wrong, right) = SqliteSource(str(path)), [r.id for r in room.records("note")]
        assert before < wrong < right
        assert source.record_before(clock.now() + SECOND) == before, "the wrong clock's is later, so it comes"
        assert source.record_before(clock.now() + SECOND, latest=True) == right
        assert source.record_before(clock.now() + 2 * AHEAD * SECOND) == right
        assert source.record_before(START) == source.record_before(START, latest=True) == before - 1


def test_time_that_is_not_ahead_is_not_set_back(room: SyncRoom, clock: ManualClock) -> None:
    clock.set(START + 4 * DAY * SECOND)
    room.publish("jobs", "on time")
    with pytest.raises(InvalidField, match="needs no setting back"):
        room.run(c.SetTimeBack(to=clock.now()))


def test_messages_that_expired_by_the_wrong_clock_are_counted(tmp_path: Path, clock: ManualClock) -> None:
    with contextlib.ExitStack() as stack:
        room = stack.enter_context(open_room(tmp_path / "postroom.db", clock))
        room.create_queue("jobs")
        lost = room.publish("jobs", "a day", ttl=DAY).id
        room.run(c.Reserve(holder="early", charges=(Charge("purse", 5),), seconds=600))
        clock.advance(AHEAD)
        assert room.claim("jobs") == []
        clock.set(START + 11 * SECOND)
        assert room.run(c.SetTimeBack(to=clock.now())).ended == 1
        assert room.get(lost).state is State.EXPIRED
