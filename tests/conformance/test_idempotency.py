"""Idempotent publish: the same key makes one message, however often and however it has gone on since."""

import asyncio
from typing import Any

import pytest
from tests.conformance.helpers import bodies, counts, dead_letter, one, refused, unchanged

from postroom import NewMessage, Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import IdempotencyConflict


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    return room


async def test_the_same_key_and_body_make_one_message(jobs: Room) -> None:
    first = await jobs.publish("jobs", {"a": 1, "b": [2]}, key="k")
    async with unchanged(jobs):
        again = await jobs.publish("jobs", {"b": [2], "a": 1}, key="k")
    assert (first.created, again.created) == (True, False)
    assert again.id == first.id
    assert again.state is State.PENDING


DIFFERENT: list[tuple[Any, Any]] = [
    ({"n": 1}, {"n": 2}),
    ({"n": 1}, {"n": "1"}),
    ({"n": 1}, {"n": 1, "m": None}),
    (None, False),
    ([], {}),
    ("a", "b"),
]


@pytest.mark.parametrize(("body", "other"), DIFFERENT, ids=repr)
async def test_the_same_key_with_another_body_is_a_conflict(jobs: Room, body: Any, other: Any) -> None:
    first = await jobs.publish("jobs", body, key="k")
    async with refused(jobs, IdempotencyConflict, "k", first.id):
        await jobs.publish("jobs", other, key="k")


@pytest.mark.parametrize(("body", "other"), [(1, True), ({"paid": 0}, {"paid": False}), ([[1]], [[True]])])
async def test_a_number_and_a_truth_are_different_bodies(jobs: Room, body: Any, other: Any) -> None:
    first = await jobs.publish("jobs", body, key="k")
    async with refused(jobs, IdempotencyConflict, first.id):
        await jobs.publish("jobs", other, key="k")


async def test_another_content_type_is_another_body(jobs: Room) -> None:
    await jobs.publish("jobs", "text", key="k", content_type="text/plain")
    async with refused(jobs, IdempotencyConflict):
        await jobs.publish("jobs", "text", key="k", content_type="text/html")
    async with refused(jobs, IdempotencyConflict):
        await jobs.publish("jobs", "text", key="k")


async def test_a_key_belongs_to_its_queue(jobs: Room) -> None:
    await jobs.create_queue("other")
    assert (await jobs.publish("jobs", 1, key="k")).created
    assert (await jobs.publish("other", 2, key="k")).created


async def test_a_key_is_remembered_in_every_state(jobs: Room, clock: ManualClock) -> None:
    first = await jobs.publish("jobs", 1, key="k")
    for expected in (State.CLAIMED, State.DEAD, State.PENDING, State.COMPLETED):
        if expected is State.CLAIMED:
            await one(jobs, "jobs")
        elif expected is State.DEAD:
            await jobs.kill(first.id, "guard")
        elif expected is State.PENDING:
            await jobs.replay(first.id)
        else:
            await jobs.complete(await one(jobs, "jobs"))
        again = await jobs.publish("jobs", 1, key="k")
        assert (again.id, again.created, again.state) == (first.id, False, expected)
    clock.advance(3601)
    await jobs.housekeep("message_archiver")
    again = await jobs.publish("jobs", 1, key="k")
    assert (again.id, again.created, again.state) == (first.id, False, State.COMPLETED)
    async with refused(jobs, IdempotencyConflict):
        await jobs.publish("jobs", 2, key="k")


async def test_a_key_is_free_again_when_its_message_was_pruned(jobs: Room, clock: ManualClock) -> None:
    await jobs.update_queue("jobs", retention_s=0)
    await jobs.publish("jobs", 1, key="k")
    await jobs.complete(await one(jobs, "jobs"))
    clock.advance(3601)
    await jobs.housekeep("message_archiver")
    clock.advance(1)
    assert await jobs.housekeep("pruner") == 1
    assert (await jobs.publish("jobs", 2, key="k")).created


async def test_a_key_twice_in_one_batch_makes_one_message(jobs: Room) -> None:
    batch = [NewMessage(body=1, idempotency_key="k"), NewMessage(body=1, idempotency_key="k")]
    first, second = await jobs.publish_many("jobs", batch)
    assert first.id == second.id
    assert (first.created, second.created) == (True, False)
    assert await counts(jobs, "jobs") == {"pending": 1}


async def test_a_conflict_inside_a_batch_refuses_the_whole_batch(jobs: Room) -> None:
    batch = [NewMessage(body=n, idempotency_key="k") for n in (1, 2)]
    async with refused(jobs, IdempotencyConflict):
        await jobs.publish_many("jobs", batch)


async def test_concurrent_publishers_with_one_key_make_one_message(jobs: Room) -> None:
    receipts = await asyncio.gather(*(jobs.publish("jobs", 1, key="k") for _ in range(20)))
    assert len({receipt.id for receipt in receipts}) == 1
    assert sum(receipt.created for receipt in receipts) == 1
    assert await bodies(jobs, "jobs") == [1]


async def test_concurrent_publishers_with_one_key_and_other_bodies_make_one_message(jobs: Room) -> None:
    outcomes = await asyncio.gather(
        *(jobs.publish("jobs", n, key="k") for n in range(5)), return_exceptions=True
    )
    assert sum(isinstance(outcome, IdempotencyConflict) for outcome in outcomes) == 4
    assert len(await bodies(jobs, "jobs")) == 1


async def test_a_repeated_publish_is_answered_although_the_queue_is_full(room: Room) -> None:
    await room.create_queue("jobs", max_depth=1)
    first = await room.publish("jobs", 1, key="k")
    assert (await room.publish("jobs", 1, key="k")).id == first.id


async def test_a_repeated_publish_is_answered_although_its_deadline_has_passed(
    jobs: Room, clock: ManualClock
) -> None:
    """The first answer may have been lost; what was accepted must not look refused."""
    deadline = clock.now() + 10 * SECOND
    first = await jobs.publish("jobs", 1, key="k", deadline=deadline)
    clock.advance(11)
    assert (await jobs.publish("jobs", 1, key="k", deadline=deadline)).id == first.id


async def test_a_repeated_broadcast_is_delivered_once(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    await room.subscribe("news", "ann")
    first = await room.publish("news", 1, key="k")
    again = await room.publish("news", 1, key="k")
    assert again.id == first.id
    assert await bodies(room, "news", subscription="ann") == [1]


async def test_a_dead_letter_keeps_its_key_in_the_queue_it_came_from(jobs: Room) -> None:
    dead = await dead_letter(jobs, "jobs", 1, key="k")
    again = await jobs.publish("jobs", 1, key="k")
    assert (again.id, again.state) == (dead, State.DEAD)
    assert (await jobs.publish("_dead_letter", "other", key="k")).created
