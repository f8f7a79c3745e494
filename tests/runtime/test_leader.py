"""Of several processes one leads: it works while its lease stands, and hands over or is taken over from."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from postroom import Room
from postroom.clock import ManualClock
from postroom.errors import StoreClosed, StoreFull
from postroom.kernel import commands as c
from postroom.runtime import leader as leaders
from postroom.runtime.leader import Leader
from tests.acceptance.office import until

# In real time this is how often a leader looks; whether its lease stands tells the clock that the test holds.
LEASE_S = 0.04


class Work:
    """Goes on until it is cancelled; knows how often it began, and whether it is at work."""

    def __init__(self) -> None:
        self.begun = 0
        self.working = False

    async def __call__(self) -> None:
        self.begun += 1
        self.working = True
        try:
            await asyncio.Event().wait()
        finally:
            self.working = False


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "PAUSE_S", 0.01)


def two(room: Room) -> tuple[Leader, Leader]:
    return room.leader("rounds", lease_s=LEASE_S), room.leader("rounds", lease_s=LEASE_S)


async def test_the_first_leads_and_the_second_waits_until_the_lease_is_over(
    room: Room, clock: ManualClock
) -> None:
    one, other = two(room)
    assert await one.lead()
    assert not await other.lead()
    clock.advance(LEASE_S)
    assert not one.leads, "its own clock says so, without asking anybody"
    assert await other.lead()
    assert not await one.lead()


async def test_a_lease_is_renewed_when_half_of_it_is_over_and_not_before(
    room: Room, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = count_commands(room, monkeypatch)
    one, other = two(room)
    for _ in range(8):
        assert await one.lead()
        clock.advance(LEASE_S / 4)
    assert len(asked) == 4
    clock.advance(LEASE_S / 4)
    assert not await other.lead(), "it was renewed in time"
    assert one.term == 1


async def test_a_clock_that_was_put_back_does_not_make_a_lease_last_longer(
    room: Room, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = two(room)
    assert await one.lead()
    clock.advance(-3600)
    asked = count_commands(room, monkeypatch)
    assert not one.leads
    await one.lead()
    assert len(asked) == 1


async def test_each_time_it_is_taken_anew_is_a_term_of_its_own(room: Room, clock: ManualClock) -> None:
    one, other = two(room)
    await one.lead()
    clock.advance(LEASE_S)
    await other.lead()
    clock.advance(LEASE_S)
    await one.lead()
    assert (one.term, other.term) == (2, 1)


async def test_who_resigns_is_followed_at_once(room: Room) -> None:
    one, other = two(room)
    await one.lead()
    await one.resign()
    assert not one.leads
    assert await other.lead()
    await one.resign()
    assert await other.lead(), "one cannot resign for another"


async def test_a_lease_counts_from_the_question_not_from_a_late_answer(
    room: Room, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two(room)
    run = room.run

    async def late(command: c.Command) -> Any:
        granted = await run(command)
        clock.advance(LEASE_S)
        return granted

    monkeypatch.setattr(room, "run", late)
    assert not await one.lead(), "the answer came when the lease was over"
    monkeypatch.undo()
    assert await other.lead()


async def test_work_is_done_by_the_leader_alone_and_goes_on_with_the_next_after_a_stop(room: Room) -> None:
    one, other = two(room)
    first, second = Work(), Work()
    running = asyncio.create_task(one.run(first))
    await until(lambda: first.working)
    following = asyncio.create_task(other.run(second))
    finished: list[bool] = []
    await until_asked(room, other)
    assert not second.begun
    one.stop()
    await running
    finished.append(first.working)
    await until(lambda: second.working)
    assert finished == [False], "it had ended before another began"
    other.stop()
    await following


async def test_work_is_cancelled_when_the_leadership_is_lost_and_begins_again_when_it_is_regained(
    room: Room, clock: ManualClock
) -> None:
    one, other = two(room)
    work, finished = Work(), Finish()
    running = asyncio.create_task(one.run(work, finish=finished))
    await until(lambda: work.working)
    clock.advance(LEASE_S)
    while not await other.lead():  # the first may have renewed its lease in between
        clock.advance(LEASE_S)
    await until(lambda: not work.working)
    assert not finished.calls, "it has nothing to hand over any more"
    begun = work.begun
    await other.resign()
    await until(lambda: work.begun == begun + 1)
    assert one.term == work.begun
    one.stop()
    await running
    assert finished.calls == 1


async def test_work_begins_again_when_the_lease_was_over_for_a_while(room: Room, clock: ManualClock) -> None:
    one, _ = two(room)
    work = Work()
    running = asyncio.create_task(one.run(work))
    await until(lambda: work.working)
    clock.advance(3600)
    await until(lambda: work.begun == 2)
    assert one.term == 2, "another may have led in between"
    one.stop()
    await running


async def test_what_belongs_to_the_end_is_done_before_the_next_may_lead(room: Room) -> None:
    one, other = two(room)
    work, led_meanwhile = Work(), []

    async def finish() -> None:
        led_meanwhile.append(await other.lead())

    running = asyncio.create_task(one.run(work, finish=finish))
    await until(lambda: work.working)
    one.stop()
    await running
    assert led_meanwhile == [False]
    assert await other.lead()


async def test_work_that_fails_begins_again(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    leader, _ = two(room)
    failures: list[Exception] = [StoreFull(path="room.db"), KeyError("unforeseen")]
    work = Work()

    async def failing() -> None:
        if failures:
            raise failures.pop()
        await work()

    running = asyncio.create_task(leader.run(failing))
    await until(lambda: work.working)
    assert "rounds pauses: The disk" in caplog.text
    assert "unforeseen" in caplog.text
    leader.stop()
    await running


async def test_of_several_kinds_of_work_the_first_that_returns_ends_all(room: Room) -> None:
    leader, other = two(room)
    endless = Work()

    async def short() -> None:
        await until(lambda: endless.working)

    await leader.run(endless, short)
    assert not endless.working
    assert await other.lead(), "it has resigned"


async def test_a_store_that_cannot_renew_for_a_moment_does_not_end_the_work(
    room: Room, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, _ = two(room)
    work = Work()
    running = asyncio.create_task(leader.run(work))
    await until(lambda: work.working)
    asked: list[c.Command] = []

    def full(command: c.Command) -> Any:
        asked.append(command)
        raise StoreFull(path="room.db")

    monkeypatch.setattr(room, "run", full)
    clock.advance(LEASE_S * 0.6)
    await until(lambda: len(asked) >= 3)
    assert work.working
    clock.advance(LEASE_S * 0.6)
    await until(lambda: not work.working)
    monkeypatch.undo()
    leader.stop()
    await running


async def test_a_closed_store_ends_the_run(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, _ = two(room)

    def closed(command: c.Command) -> Any:
        raise StoreClosed

    monkeypatch.setattr(room, "run", closed)
    await leader.run(Work())


async def test_rounds_are_made_by_the_leader_and_sooner_when_it_is_woken(room: Room) -> None:
    one, other = two(room)
    made: list[str] = []

    def rounds(name: str) -> Callable[[], Any]:
        async def work() -> float:
            made.append(name)
            return 3600.0

        return work

    running = asyncio.create_task(one.run_rounds(rounds("one")))
    await until(lambda: made)
    assert await other.round(rounds("other")) > 0
    one.wake()
    await until(lambda: len(made) >= 2)
    assert set(made) == {"one"}
    one.stop()
    await running


async def test_the_lead_is_handed_over_also_when_finishing_fails(room: Room) -> None:
    one, other = two(room)
    work = Work()

    async def fails() -> None:
        raise StoreFull(path="db", reason="no space is left")

    running = asyncio.create_task(one.run(work, finish=fails))
    await until(lambda: work.working)
    one.stop()
    await running
    assert await other.lead()


async def test_a_lead_that_was_granted_while_whoever_asked_was_cancelled_is_handed_over(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two(room)
    run, asked, answered = room.run, asyncio.Event(), asyncio.Event()

    async def slow(command: c.Command) -> Any:
        granted = await run(command)
        asked.set()
        await answered.wait()
        return granted

    monkeypatch.setattr(room, "run", slow)
    running = asyncio.create_task(one.run(Work()))
    await asked.wait()
    running.cancel()
    await asyncio.sleep(0)
    running.cancel()  # also whoever insists waits for the store
    answered.set()
    await asyncio.wait([running])
    assert running.cancelled()
    assert await other.lead()


class Finish:
    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self) -> None:
        self.calls += 1


def count_commands(room: Room, monkeypatch: pytest.MonkeyPatch) -> list[c.Command]:
    asked: list[c.Command] = []
    run = room.run

    def counted(command: c.Command) -> Any:
        asked.append(command)
        return run(command)

    monkeypatch.setattr(room, "run", counted)
    return asked


async def until_asked(room: Room, leader: Leader) -> None:
    """Until it has asked for the leadership again and was refused."""
    asked = 0
    run = room.run

    def watched(command: c.Command) -> Any:
        nonlocal asked
        asked += isinstance(command, c.Lead) and command.holder == leader.holder
        return run(command)

    room.run = watched
    await until(lambda: asked >= 2)
    del room.run
