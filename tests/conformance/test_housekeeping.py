"""Housekeeping: what must happen although nobody asks for it, and when each last ran."""

import logging

import pytest
from tests.conformance.helpers import (
    bodies,
    counts,
    dead_letter,
    events,
    events_of,
    one,
    read,
    refused,
    state_of,
)
from tests.conformance.promises import all_events
from tests.conftest import OpenRoom

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import InvalidField, MessageNotFound
from postroom.kernel.housekeeping import housekeepers
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.ledger import verify

DAY_S = 24 * 3600


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", visibility_timeout_s=30)
    return room


async def test_the_enforcer_gives_back_claims_whose_lease_ran_out(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish_many("jobs", range(3))
    held = await jobs.claim("jobs", limit=3)
    await jobs.extend(held[2], 100)
    clock.advance(30)
    assert await jobs.housekeep(housekeepers.VISIBILITY) == 2
    assert await counts(jobs, "jobs") == {"pending": 2, "claimed": 1}
    message = await jobs.get(held[0].id)
    assert (message.claimed_by, message.failure_kind, message.attempts) == (None, "lease_expired", 1)


async def test_each_change_is_signed_by_the_housekeeper(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", 1, ttl=1)
    clock.advance(1)
    await jobs.housekeep(housekeepers.EXPIRY)
    assert events(jobs)[-1].actor == housekeepers.EXPIRY


async def test_the_archiver_moves_what_ended_an_hour_ago(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish_many("jobs", range(2))
    for message in await jobs.claim("jobs", limit=2):
        await jobs.complete(message, message.body)
        clock.advance(1800)
    clock.advance(1799)
    assert await jobs.housekeep(housekeepers.ARCHIVER) == 1
    first, second = (await jobs.messages(queue="jobs")).messages
    assert (first.archived, second.archived) == (True, False)
    assert (first.state, first.result, first.body) == (State.COMPLETED, 0, 0)
    clock.advance(1801)
    assert await jobs.housekeep(housekeepers.ARCHIVER) == 1
    assert await jobs.housekeep(housekeepers.ARCHIVER) == 0


async def test_the_archiver_leaves_open_messages_and_recent_dead_letters(
    jobs: Room, clock: ManualClock
) -> None:
    dead = await dead_letter(jobs, "jobs")
    await jobs.publish("jobs", "claimed")
    await one(jobs, "jobs", lease=DAY_S)
    await jobs.publish("jobs", "delayed", delay=10 * DAY_S)
    await jobs.publish("jobs", "pending")
    clock.advance(DAY_S - 1)
    assert await jobs.housekeep(housekeepers.ARCHIVER) == 0
    clock.advance(30 * DAY_S)
    assert await jobs.housekeep(housekeepers.ARCHIVER) == 1
    assert (await jobs.get(dead)).archived
    assert await counts(jobs, "_dead_letter") == {}


async def test_the_archiver_goes_on_until_its_work_is_done(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish_many("jobs", range(2300), ttl=1)
    clock.advance(3602)
    await jobs.housekeep(housekeepers.EXPIRY)
    clock.advance(3600)
    assert await jobs.housekeep(housekeepers.ARCHIVER) == 2300


async def test_archiving_can_be_tuned(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=Retention(archive_after_s=5, dead_after_s=None)) as room:
        await room.create_queue("jobs")
        await dead_letter(room, "jobs")
        await room.publish("jobs", 1)
        await room.complete(await one(room, "jobs"))
        clock.advance(5)
        assert await room.housekeep(housekeepers.ARCHIVER) == 1
        clock.advance(1000 * DAY_S)
        assert await room.housekeep(housekeepers.ARCHIVER) == 0


async def test_the_monitor_warns_only_when_dead_letters_grow(
    jobs: Room, caplog: pytest.LogCaptureFixture
) -> None:
    assert await jobs.housekeep(housekeepers.MONITOR) == 0
    dead = await dead_letter(jobs, "jobs")
    with caplog.at_level(logging.WARNING):
        assert await jobs.housekeep(housekeepers.MONITOR) == 1
    assert any("default" in record.getMessage() for record in caplog.records)
    event = events(jobs)[-1]
    assert (event.type, event.scope, event.details) == (
        "dead_letters.grew",
        "default",
        {"depth": 1, "before": 0},
    )
    assert await jobs.housekeep(housekeepers.MONITOR) == 0
    await jobs.discard(dead)
    assert await jobs.housekeep(housekeepers.MONITOR) == 0
    await dead_letter(jobs, "jobs")
    assert await jobs.housekeep(housekeepers.MONITOR) == 1


async def test_aging_lifts_what_has_waited_long(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", ordering="priority")
    await room.create_queue("plain")
    old = await room.publish("jobs", "old", score=480)
    plain = await room.publish("plain", "plain")
    clock.advance(600)
    await room.publish("jobs", "young", score=500)
    assert [message.body for message in await room.peek("jobs")] == ["young", "old"]
    assert await room.housekeep(housekeepers.AGING) == 1
    assert (await room.get(old.id)).priority_score == 530
    assert (await room.get(plain.id)).priority_score == 500
    assert events_of(room, old.id) == ["published", "reordered"]
    assert await bodies(room, "jobs") == ["old", "young"]


async def test_aging_stops_at_the_top_and_touches_only_what_waits(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", ordering="priority")
    top = await room.publish("jobs", "top", score=980)
    await room.publish("jobs", "claimed", priority="critical")
    held = await one(room, "jobs", lease=DAY_S)
    clock.advance(601)
    assert [await room.housekeep(housekeepers.AGING) for _ in range(3)] == [1, 0, 0]
    message = await room.get(top.id)
    assert (message.priority_tier, message.priority_score) == ("normal", 1000)
    assert (await room.get(held.id)).priority_score == 500


async def test_the_pruner_keeps_everything_unless_told_otherwise(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", 1)
    await jobs.complete(await one(jobs, "jobs"))
    clock.advance(3601)
    await jobs.housekeep(housekeepers.ARCHIVER)
    clock.advance(10_000 * DAY_S)
    assert await jobs.housekeep(housekeepers.PRUNER) == 0


async def _archived(room: Room, clock: ManualClock) -> str:
    receipt = await room.publish("jobs", 1)
    await room.complete(await one(room, "jobs"))
    clock.advance(3601)
    await room.housekeep(housekeepers.ARCHIVER)
    return receipt.id


async def test_the_pruner_drops_archived_messages_after_their_retention(
    jobs: Room, clock: ManualClock
) -> None:
    await jobs.update_queue("jobs", retention_s=2 * 3600)
    gone = await _archived(jobs, clock)
    assert await jobs.housekeep(housekeepers.PRUNER) == 0
    clock.advance(3600)
    assert await jobs.housekeep(housekeepers.PRUNER) == 1
    with pytest.raises(MessageNotFound):
        await jobs.get(gone)
    assert events(jobs)[-1].type == "archive.pruned"


async def test_nothing_is_pruned_that_a_holding_reader_has_not_passed(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room(retention=Retention(ledger_s=1)) as room:
        await room.create_queue("jobs", retention_s=0)
        kept = await _archived(room, clock)
        clock.advance(DAY_S)
        await room.set_position("lake", 3, hold=True)
        await room.set_position("tail", (await room.head()).seq)
        await room.housekeep(housekeepers.PRUNER)
        assert await state_of(room, kept) is State.COMPLETED
        assert read(room, lambda reader: reader.anchor()).seq == 3
        assert read(room, all_events)[0].seq == 4
        await room.set_position("lake", (await room.head()).seq, hold=True)
        await room.housekeep(housekeepers.PRUNER)
        with pytest.raises(MessageNotFound):
            await room.get(kept)


async def test_a_pruned_ledger_still_verifies_and_goes_on(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=Retention(ledger_s=100)) as room:
        await room.create_queue("jobs")
        await room.publish_many("jobs", range(5))
        clock.advance(50)
        await room.publish_many("jobs", range(5))
        before = (await room.head()).seq
        clock.advance(60)
        dropped = await room.housekeep(housekeepers.PRUNER)
        assert 0 < dropped < before
        anchor, head = read(room, lambda reader: (reader.anchor(), reader.head()))
        kept = read(room, all_events)
        assert anchor.seq == dropped
        assert verify(kept, anchor, head) == head.seq - anchor.seq
        assert kept[-1].type == "ledger.pruned"
        await room.publish("jobs", 1)
        assert (await room.head()).seq == head.seq + 1
        assert (await anext(room.events(anchor.seq))).seq == anchor.seq + 1


async def test_the_last_event_is_never_pruned(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(retention=Retention(ledger_s=0)) as room:
        for _ in range(3):
            clock.advance(DAY_S)
            await room.housekeep(housekeepers.PRUNER)
            assert read(room, all_events)


async def test_what_was_seen_is_forgotten_after_a_day(room: Room, clock: ManualClock) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    await room.subscribe("news", "ann")
    await room.check_seen("news", "ann", "old")
    clock.advance(DAY_S / 2)
    await room.check_seen("news", "ann", "young")
    clock.advance(DAY_S / 2 + 1)
    assert await room.housekeep(housekeepers.PRUNER) == 1
    assert not await room.check_seen("news", "ann", "old")
    assert await room.check_seen("news", "ann", "young")


async def test_housekeepers_are_listed_with_their_last_run(jobs: Room, clock: ManualClock) -> None:
    listed = {status.name: status for status in await jobs.housekeepers()}
    assert set(listed) == {keeper.name for keeper in housekeepers.ROSTER}
    assert {status.last_status for status in listed.values()} == {"never run"}
    await jobs.publish_many("jobs", range(2), ttl=1)
    clock.advance(1)
    await jobs.housekeep(housekeepers.EXPIRY)
    status = next(status for status in await jobs.housekeepers() if status.name == housekeepers.EXPIRY)
    assert (status.last_run_at, status.last_status, status.last_error) == (clock.now(), "ok", None)
    assert (status.items_processed, status.total_items, status.runs) == (2, 2, 1)
    await jobs.publish("jobs", 1, ttl=1)
    clock.advance(1)
    await jobs.housekeep(housekeepers.EXPIRY)
    status = next(status for status in await jobs.housekeepers() if status.name == housekeepers.EXPIRY)
    assert (status.items_processed, status.total_items, status.runs) == (1, 3, 2)


async def test_a_housekeeper_that_does_not_exist_is_refused(room: Room) -> None:
    async with refused(room, InvalidField, "nobody"):
        await room.housekeep("nobody")
    assert "nobody" not in {status.name for status in await room.housekeepers()}
