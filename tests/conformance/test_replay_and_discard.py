"""Dead letters: back to the queue they came from with a clean slate, or given up for good."""

import contextlib

import pytest
from tests.conformance.helpers import (
    bodies,
    counts,
    dead_letter,
    events,
    events_of,
    one,
    refused,
    state_of,
)

from postroom import Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField, MessageNotFound, PostroomError, ScopeNotFound, WrongState


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    return room


async def test_a_replayed_dead_letter_is_back_in_its_queue_with_a_clean_slate(jobs: Room) -> None:
    dead = await dead_letter(jobs, "jobs", {"n": 1}, labels={"a": 1})
    assert await jobs.replay(dead) == [dead]
    back = await jobs.get(dead)
    assert (back.state, back.queue, back.origin_queue) == (State.PENDING, "jobs", None)
    assert (back.attempts, back.finished_at) == (0, None)
    assert await counts(jobs, "_dead_letter") == {}
    again = await one(jobs, "jobs")
    assert (again.id, again.body, again.labels, again.attempts) == (dead, {"n": 1}, {"a": 1}, 1)
    assert events_of(jobs, dead)[-2:] == ["replayed", "claimed"]


async def test_a_replayed_dead_letter_goes_to_the_end_of_its_queue(jobs: Room, clock: ManualClock) -> None:
    dead = await dead_letter(jobs, "jobs", "dead")
    clock.advance(1)
    await jobs.publish("jobs", "younger")
    clock.advance(1)
    await jobs.replay(dead)
    clock.advance(1)
    await jobs.publish("jobs", "youngest")
    assert await bodies(jobs, "jobs") == ["younger", "dead", "youngest"]


async def test_a_new_priority_in_a_fifo_queue_does_not_move_a_replayed_message(
    jobs: Room, clock: ManualClock
) -> None:
    dead = await dead_letter(jobs, "jobs", "dead")
    clock.advance(1)
    await jobs.publish("jobs", "younger")
    clock.advance(1)
    await jobs.replay(dead)
    await jobs.reprioritise(dead, score=600)
    assert await bodies(jobs, "jobs") == ["younger", "dead"]


async def test_a_replayed_message_may_fail_and_be_replayed_again(jobs: Room) -> None:
    dead = await dead_letter(jobs, "jobs")
    for _ in range(3):
        await jobs.replay(dead)
        await jobs.fail(await one(jobs, "jobs"), "still broken", retry=False)
    message = await jobs.get(dead)
    assert (message.state, message.origin_queue, message.attempts) == (State.DEAD, "jobs", 1)


async def test_all_dead_letters_of_a_scope_are_replayed_to_where_each_came_from(jobs: Room) -> None:
    await jobs.create_queue("mail")
    await jobs.create_scope("other")
    await jobs.create_queue("other/jobs")
    dead = [await dead_letter(jobs, queue, queue) for queue in ("jobs", "mail", "jobs")]
    elsewhere = await dead_letter(jobs, "other/jobs")
    assert await jobs.replay(scope="default") == dead
    assert await bodies(jobs, "jobs") == ["jobs", "jobs"]
    assert await bodies(jobs, "mail") == ["mail"]
    assert await state_of(jobs, elsewhere) is State.DEAD


async def test_a_limit_takes_the_oldest_dead_letters(jobs: Room) -> None:
    dead = [await dead_letter(jobs, "jobs", n) for n in range(4)]
    assert await jobs.replay(scope="default", limit=2) == dead[:2]
    assert await jobs.discard(scope="default", limit=1) == dead[2:3]
    assert await counts(jobs, "_dead_letter") == {"dead": 1, "cancelled": 1}


async def test_a_discarded_dead_letter_is_cancelled_for_good(jobs: Room, clock: ManualClock) -> None:
    dead = await dead_letter(jobs, "jobs")
    clock.advance(5)
    assert await jobs.discard(dead) == [dead]
    message = await jobs.get(dead)
    assert (message.state, message.origin_queue) == (State.CANCELLED, "jobs")
    assert message.failure_reason == "broken", "why it died stays known"
    assert message.finished_at == clock.now()
    assert events_of(jobs, dead)[-1] == "discarded"
    async with refused(jobs, WrongState, "cancelled"):
        await jobs.replay(dead)


async def test_only_dead_letters_can_be_replayed_or_discarded(jobs: Room) -> None:
    pending = await jobs.publish("jobs", 1)
    async with refused(jobs, WrongState, "pending", "replayed"):
        await jobs.replay(pending.id)
    async with refused(jobs, WrongState, "pending", "discarded"):
        await jobs.discard(pending.id)
    await one(jobs, "jobs")
    async with refused(jobs, WrongState, "claimed"):
        await jobs.replay(pending.id)


async def test_what_never_was_cannot_be_replayed(jobs: Room) -> None:
    async with refused(jobs, MessageNotFound, "nobody"):
        await jobs.replay("nobody")
    async with refused(jobs, ScopeNotFound, "nowhere"):
        await jobs.replay(scope="nowhere")
    async with refused(jobs, ScopeNotFound, "nowhere"):
        await jobs.discard(scope="nowhere")


async def test_of_several_ids_all_or_none_are_replayed(jobs: Room) -> None:
    dead = [await dead_letter(jobs, "jobs", n) for n in range(2)]
    pending = await jobs.publish("jobs", 1)
    for wrong, error in ((pending.id, WrongState), ("nobody", MessageNotFound)):
        async with refused(jobs, error):
            await jobs.replay(dead[0], wrong, dead[1])
        async with refused(jobs, error):
            await jobs.discard(dead[0], wrong, dead[1])
    assert await jobs.replay(*dead, dead[0]) == dead, "an id named twice counts once"


async def test_ids_and_a_scope_together_never_touch_other_dead_letters(jobs: Room) -> None:
    meant = await dead_letter(jobs, "jobs", "meant")
    other = await dead_letter(jobs, "jobs", "other")
    with contextlib.suppress(PostroomError):
        await jobs.discard(meant, scope="default")
    assert await state_of(jobs, other) is State.DEAD


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_below_one_is_refused(jobs: Room, limit: int) -> None:
    await dead_letter(jobs, "jobs")
    async with refused(jobs, InvalidField, "limit"):
        await jobs.replay(scope="default", limit=limit)


async def test_what_ran_out_of_time_gets_its_time_anew(jobs: Room, clock: ManualClock) -> None:
    dead = await dead_letter(jobs, "jobs", ttl=100)
    clock.advance(1000)
    await jobs.replay(dead)
    assert (await jobs.get(dead)).expires_at == clock.now() + 100 * SECOND
    assert (await one(jobs, "jobs")).id == dead


async def test_what_has_time_left_keeps_its_end(jobs: Room, clock: ManualClock) -> None:
    dead = await dead_letter(jobs, "jobs", ttl=100)
    end = clock.now() + 100 * SECOND
    clock.advance(10)
    await jobs.replay(dead)
    assert (await jobs.get(dead)).expires_at == end


async def test_every_replay_is_an_event_of_its_own(jobs: Room) -> None:
    dead = [await dead_letter(jobs, "jobs", n) for n in range(3)]
    head = (await jobs.head()).seq
    await jobs.replay(scope="default")
    assert [(event.type, event.message_id) for event in events(jobs, head)] == [
        ("message.replayed", message_id) for message_id in dead
    ]


async def test_an_archived_dead_letter_cannot_be_replayed(jobs: Room, clock: ManualClock) -> None:
    dead = await dead_letter(jobs, "jobs")
    clock.advance(31 * 24 * 3600)
    assert await jobs.housekeep("message_archiver") == 1
    async with refused(jobs, WrongState, "archived"):
        await jobs.replay(dead)
