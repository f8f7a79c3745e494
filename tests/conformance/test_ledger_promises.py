"""The promises about the ledger, after a long and varied history on every store."""

import contextlib

import pytest
from tests.conformance.helpers import events, one, read
from tests.conformance.promises import check_promises
from tests.conftest import OpenRoom

from postroom import Room
from postroom.clock import ManualClock
from postroom.errors import LedgerBroken, PostroomError
from postroom.kernel.ledger import Event, Head, fold, verify
from postroom.kernel.reader import Reader
from postroom.kernel.states import Change


class Diary:
    """Does one thing after the other, and writes down which events each must have made."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.wrong: list[str] = []

    async def expect(self, *types: str) -> None:
        made = [event.type for event in events(self._room, self._seq)]
        if made != [f"message.{name}" if "." not in name else name for name in types]:
            self.wrong.append(f"expected {types}, got {made}")
        await self.start()

    async def start(self) -> None:
        self._seq = (await self._room.head()).seq


async def history(room: Room, clock: ManualClock) -> list[str]:
    """Every kind of change at least once; what made too few or too many events."""
    diary = Diary(room)
    await diary.start()
    await room.create_queue("jobs", ordering="priority", max_retries=2, visibility_timeout_s=10, max_depth=50)
    await diary.expect("queue.created")
    await room.create_queue("news", consumer_mode="broadcast")
    await room.subscribe("news", "ann")
    await diary.expect("queue.created", "subscription.created")
    await room.publish_many("jobs", range(3))
    await diary.expect("published", "published", "published")
    await room.publish("jobs", "delayed", delay=5, key="k")
    await room.publish("jobs", "delayed", delay=5, key="k")
    await diary.expect("published")
    first, second = await room.claim("jobs", limit=2)
    await diary.expect("claimed", "claimed")
    await room.extend(first)
    await room.complete(first, "done")
    await room.complete(first, "done")
    await diary.expect("extended", "completed")
    await room.fail(second, "no", delay=1)
    clock.advance(1)
    second = (await room.claim("jobs"))[0]
    await diary.expect("failed", "ready", "claimed")
    await room.fail(second, "no")
    await diary.expect("dead_lettered")
    await room.replay(second.id)
    await room.reprioritise(second.id, tier="critical")
    await diary.expect("replayed", "reordered")
    held = await one(room, "jobs")
    await room.release(held)
    held = await one(room, "jobs")
    await room.snooze(held, 1)
    await diary.expect("claimed", "released", "claimed", "snoozed")
    held = await one(room, "jobs")
    clock.advance(10)
    await room.housekeep("visibility_timeout_enforcer")
    await diary.expect("claimed", "ready", "ready", "lease_expired")
    await room.kill(held.id, "guard")
    await room.discard(held.id)
    await diary.expect("dead_lettered", "discarded")
    await room.publish("jobs", "short", ttl=1)
    gone = await room.publish("jobs", "unwanted")
    await room.cancel(gone.id)
    clock.advance(1)
    await room.housekeep("expiry_enforcer")
    await diary.expect("published", "published", "cancelled", "expired")
    await room.publish("news", 1)
    await room.complete(await one(room, "news", subscription="ann"))
    await diary.expect("published", "published", "claimed", "completed", "completed")
    await room.unsubscribe("news", "ann")
    await room.publish("news", "to nobody")
    await diary.expect("subscription.deleted", "published")
    await room.update_queue("jobs", ordering="fifo")
    waiting = (await room.counts("jobs")).open
    await diary.expect("queue.updated", *["reordered"] * waiting)
    await room.register_schema("default", "order", {})
    await room.record("turn", "coder", {"tokens": 1})
    async with room.unit() as unit:
        unit.publish("jobs", "in a unit")
        unit.record("turn", "coder", {})
    await diary.expect("schema.registered", "record.turn", "published", "record.turn")
    for refused in (room.publish("nowhere", 1), room.complete(first), room.cancel(gone.id)):
        with contextlib.suppress(PostroomError):
            await refused
    await diary.expect()
    clock.advance(3700)
    await room.housekeep("message_archiver")
    await diary.expect("archive.moved")
    await room.set_queue_state("news", "paused")
    await room.delete_queue("news")
    await diary.expect("queue.state", "queue.deleted")
    return diary.wrong


@pytest.fixture
async def told(room: Room, clock: ManualClock) -> Room:
    await history(room, clock)
    return room


async def test_every_change_made_exactly_one_event(room: Room, clock: ManualClock) -> None:
    assert await history(room, clock) == []
    made = {event.type for event in events(room)}
    by_rules = {Change.ROUTED, Change.TRANSFORMED, Change.HELD}
    wanted = {change.value for change in set(Change) - by_rules}
    assert wanted <= made, "the history knows every kind of change but those of rules, tried in test_rules"


async def test_the_chain_verifies_from_anchor_to_head(told: Room) -> None:
    anchor, head = read(told, lambda reader: (reader.anchor(), reader.head()))
    assert verify(events(told), anchor, head) == head.seq
    assert anchor == Head()


async def test_folding_the_ledger_gives_the_state_of_every_message(told: Room) -> None:
    kept = read(told, lambda reader: reader.folded())
    assert fold(events(told)) == kept
    for message_id, folded in kept.items():
        message = await told.get(message_id)
        assert (message.path, message.state, message.attempts) == (
            folded.place,
            folded.state,
            folded.attempts,
        )


async def test_a_fold_can_go_on_from_where_it_stopped(told: Room) -> None:
    everything = events(told)
    whole = fold(everything)
    for cut in range(0, len(everything), 7):
        assert fold(everything[cut:], fold(everything[:cut])) == whole


async def test_reading_resumes_from_every_position_without_gap_or_repeat(told: Room) -> None:
    everything = [event async for event in told.events()]
    for after in range(len(everything) + 1):
        assert [event async for event in told.events(after)] == everything[after:]


async def test_every_page_of_every_size_carries_the_right_previous_hash(told: Room) -> None:
    def pages(size: int) -> list[Event]:
        def walk(reader: Reader) -> list[Event]:
            found: list[Event] = []
            while page := reader.events(len(found), size):
                found += page
            return found

        return read(told, walk)

    everything = events(told)
    for size in (1, 2, 7, 1000):
        assert pages(size) == everything


async def test_an_event_that_its_state_forbids_breaks_the_fold(told: Room) -> None:
    everything = events(told)
    completed = next(event for event in everything if event.type == "message.completed")
    with pytest.raises(LedgerBroken):
        fold([*everything, completed])


@pytest.mark.needs("reopen")
async def test_the_ledger_goes_on_after_the_room_was_closed_and_opened(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room() as room:
        await history(room, clock)
        before = events(room)
    async with open_room(ids=None) as room:
        assert events(room) == before
        await room.publish("jobs", 1)
        assert events(room)[:-1] == before
        check_promises(room)
