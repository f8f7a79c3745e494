"""Who follows the ledger gets every event in order; with a name, from where it had come to, at least once."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from postroom import Room
from postroom.clock import ManualClock
from postroom.errors import EventsPruned, PositionMoved, StoreFull
from postroom.kernel import commands as c
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.model import NewMessage
from postroom.runtime import ledger_reader as readers
from postroom.runtime.ledger_reader import LedgerReader
from tests.acceptance.office import until
from tests.conftest import OpenRoom

NEVER_S = 3600.0


async def fill(room: Room, count: int) -> None:
    await room.create_queue("work", exist_ok=True)
    await room.publish_many("work", list(range(count)))


async def kept(room: Room, name: str = "mine") -> int | None:
    return {each.name: each.seq for each in await room.positions()}.get(name)


async def read_all(reader: LedgerReader) -> list[int]:
    async with aclosing(reader.events(follow=False)) as events:
        return [event.seq async for event in events]


async def test_without_a_name_it_begins_where_it_is_told_and_nothing_is_kept(room: Room) -> None:
    await fill(room, 5)
    head = (await room.head()).seq
    assert await read_all(room.ledger_reader(after=0)) == list(range(1, head + 1))
    assert await read_all(room.ledger_reader(after=3)) == list(range(4, head + 1))
    assert await read_all(room.ledger_reader()) == []
    assert await room.positions() == []


async def test_a_new_name_begins_now_and_holds_the_pruner_from_the_beginning(room: Room) -> None:
    await fill(room, 5)
    head = (await room.head()).seq
    assert await read_all(room.ledger_reader("mine")) == []
    [position] = await room.positions()
    assert (position.seq, position.hold) == (head, True)


async def test_a_name_goes_on_where_it_had_come_to(room: Room) -> None:
    reader = room.ledger_reader("mine", after=0, save_s=NEVER_S)
    await fill(room, 5)
    first = await read_all(reader)
    await reader.save()
    await fill(room, 5)
    second = await read_all(room.ledger_reader("mine", after=0))
    assert first + second == list(range(1, (await room.head()).seq + 1))


async def test_an_event_counts_as_handled_only_when_the_next_is_asked_for(room: Room) -> None:
    await fill(room, 5)
    reader = room.ledger_reader("mine", after=0)
    async with aclosing(reader.events()) as events:
        async for event in events:
            if event.seq == 3:
                break
    assert reader.position == 2
    await reader.save()
    assert (await read_all(room.ledger_reader("mine")))[0] == 3, "the third comes again"


async def test_pages_are_read_only_when_they_are_asked_for(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "EVENTS_AT_ONCE", 4)
    await fill(room, 20)
    asked: list[int] = []
    read = room.read_events

    async def watched(after: int, limit: int) -> Any:
        asked.append(after)
        return await read(after, limit)

    monkeypatch.setattr(room, "read_events", watched)
    async with aclosing(room.ledger_reader(after=0).pages()) as pages:
        assert len(await anext(pages)) == 4
        assert asked == [0], "whoever takes long keeps nothing in memory"
        assert (await anext(pages))[0].seq == 5
        assert asked == [0, 4]


async def test_who_follows_is_woken_by_a_commit(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "POLL_S", NEVER_S)
    seen: list[int] = []
    async with following(room.ledger_reader(after=0), seen):
        for _ in range(10):
            await fill(room, 2)
            head = (await room.head()).seq
            await until(lambda head=head: seen and seen[-1] == head)
    assert seen == list(range(1, (await room.head()).seq + 1))


async def test_readers_at_one_place_share_a_look_but_never_one_from_before_a_commit(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(room, 1)
    head = (await room.head()).seq
    looked: list[int] = []
    may_look = threading.Event()
    look = room._queries.events

    def held(after: int, limit: int) -> Any:
        found = look(after, limit)
        looked.append(after)
        may_look.wait(60)
        return found

    monkeypatch.setattr(room._queries, "events", held)
    early = [asyncio.create_task(room.read_events(head, 10)) for _ in range(3)]
    await until(lambda: looked == [head])
    await room.publish("work", "new")
    late = asyncio.create_task(room.read_events(head, 10))
    await until(lambda: looked == [head, head])
    early[0].cancel()
    may_look.set()
    assert [await each for each in early[1:]] == [[], []], "one who leaves takes nothing from the others"
    assert [event.type for event in await late] == ["message.published"]


async def test_a_position_is_kept_for_several_events_together(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(readers, "_now", lambda: now[0])
    await fill(room, 1)
    reader = room.ledger_reader("mine", save_s=10)
    opened = await reader.open()
    await fill(room, 3)
    now[0] = 100
    await reader.advance(opened + 1)
    assert await kept(room) == opened, "the first event after a rest does not save for itself alone"
    now[0] = 110
    await reader.advance(opened + 2)
    assert await kept(room) == opened + 2


async def test_the_position_is_kept_when_nothing_more_happens(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "POLL_S", NEVER_S)
    seen: list[int] = []
    async with following(room.ledger_reader("mine", after=0, save_s=0.01), seen):
        await fill(room, 5)
        head = (await room.head()).seq

        async def is_kept() -> bool:
            return await kept(room) == head

        await until(is_kept)


async def test_the_position_is_kept_after_so_many_events(room: Room) -> None:
    await fill(room, 20)
    reader = room.ledger_reader("mine", after=0, save_s=NEVER_S, save_events=10)
    async with aclosing(reader.events()) as events:
        async for event in events:
            if event.seq == 15:
                break
    assert await kept(room) == 10


async def test_nothing_is_kept_before_what_must_come_first_is_done(room: Room) -> None:
    await fill(room, 20)
    ready, tried = False, 0

    async def before_save() -> bool:
        nonlocal tried
        tried += 1
        return ready

    reader = room.ledger_reader("mine", after=0, save_s=NEVER_S, save_events=1, before_save=before_save)
    await read_all(reader)
    assert await kept(room) is None
    assert tried == 1, "after a failure it is tried again when it is time, not with every event"
    ready = True
    await reader.save()
    assert await kept(room) == (await room.head()).seq


async def test_what_follows_from_events_is_committed_with_the_position_or_not_at_all(room: Room) -> None:
    await fill(room, 3)
    reader = room.ledger_reader("mine", after=0)
    await reader.open()
    copy = c.Publish(queue="copies", messages=[NewMessage(body="seen")])
    with pytest.raises(Exception, match="copies"):
        await reader.commit(3, [copy])
    assert (await kept(room), reader.position) == (0, 0)
    await room.create_queue("copies")
    await reader.commit(3, [copy])
    assert (await kept(room), reader.position) == (3, 3)
    assert (await room.counts("copies")).pending == 1


async def test_two_readers_of_one_name_never_move_the_position_back(room: Room) -> None:
    """As when a process slept through its leadership, and another reads by now."""
    await fill(room, 10)
    await room.create_queue("copies")
    asleep, awake = (room.ledger_reader("mine", after=0, save_s=NEVER_S) for _ in range(2))
    await asleep.open()
    await awake.open()
    await awake.commit(8, ())
    copy = c.Publish(queue="copies", messages=[NewMessage(body="again")])
    with pytest.raises(PositionMoved):
        await asleep.commit(4, [copy])
    await asleep.advance(4)
    with pytest.raises(PositionMoved, match="stands at event 8"):
        await asleep.save()
    assert await kept(room) == 8
    assert (await room.counts("copies")).pending == 0, "what another has dealt with is not done again"
    assert await asleep.open() == 8


async def test_a_position_that_was_saved_while_its_reader_was_cancelled_is_known_to_it(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(room, 5)
    reader = room.ledger_reader("mine", after=0, save_s=NEVER_S)
    await reader.open()
    run, asked, answered = room.run, asyncio.Event(), asyncio.Event()

    async def slow(command: c.Command) -> Any:
        outcome = await run(command)
        asked.set()
        await answered.wait()
        return outcome

    monkeypatch.setattr(room, "run", slow)
    await reader.advance(3)
    saving = asyncio.create_task(reader.save())
    await asked.wait()
    saving.cancel()
    answered.set()
    await asyncio.wait([saving])
    assert saving.cancelled()
    await reader.advance(4)
    await reader.save()  # not refused as if another had moved it
    assert await kept(room) == 4


async def test_a_store_that_failed_is_asked_again_from_the_same_event(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(room, 3)
    reader = room.ledger_reader("mine", after=0)
    read = room.read_events

    async def failing(after: int, limit: int) -> Any:
        raise StoreFull(path="room.db")

    monkeypatch.setattr(room, "read_events", failing)
    with pytest.raises(StoreFull):
        await read_all(reader)
    monkeypatch.setattr(room, "read_events", read)
    assert (await read_all(reader))[0] == 1


async def test_a_name_whose_events_were_pruned_goes_on_with_what_is_left(
    open_room: OpenRoom, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_room(retention=Retention(ledger_s=0)) as room:
        await fill(room, 5)
        reader = room.ledger_reader("mine", after=2)
        await reader.open()
        await reader.save(hold=False)
        clock.advance(10)
        await room.housekeep("pruner")
        await fill(room, 1)
        first = (await read_all(room.ledger_reader(after=0)))[0]
        assert first > 3
        assert (await read_all(reader))[0] == first
        assert "mine missed events" in caplog.text
        with pytest.raises(EventsPruned):
            await read_all(room.ledger_reader(after=2))


@asynccontextmanager
async def following(reader: LedgerReader, seen: list[int]) -> AsyncIterator[None]:
    async def follow() -> None:
        async with aclosing(reader.events()) as events:
            async for event in events:
                seen.append(event.seq)

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
