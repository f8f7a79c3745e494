"""Claim: the next messages in order, each for one holder, for a while."""

import asyncio
import math
from typing import Any

import pytest
from tests.conformance.helpers import bodies, counts, events_of, one, refused, state_of
from tests.conftest import OpenRoom

from postroom import Limits, Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import ClaimLost, InvalidField, QueueNotFound, ScopeNotFound
from postroom.kernel.states import Change


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", visibility_timeout_s=30, max_retries=3)
    return room


async def test_a_claim_hands_out_the_whole_message_with_lease_and_token(
    jobs: Room, clock: ManualClock
) -> None:
    receipt = await jobs.publish("jobs", {"n": 1}, labels={"a": 1})
    clock.advance(5)
    message = await one(jobs, "jobs", worker="w1")
    assert (message.id, message.body, message.labels) == (receipt.id, {"n": 1}, {"a": 1})
    assert message.state is State.CLAIMED
    assert message.attempts == 1, "the answer shows the raised number"
    assert message.claimed_by == "w1"
    assert message.claimed_at == clock.now()
    assert message.claim_expires_at == clock.now() + 30 * SECOND
    assert message.claim_token


async def test_only_the_holder_is_told_the_token(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    held = await one(jobs, "jobs")
    assert held.claim_token is not None
    seen = await jobs.get(receipt.id)
    assert seen.claim_token is None
    assert seen.claimed_by == "tester"
    [listed] = (await jobs.messages(queue="jobs")).messages
    assert listed.claim_token is None
    assert held.claim_token not in repr((seen, listed))
    assert not any(held.claim_token in event.data for event in [e async for e in jobs.events()])


async def test_nothing_to_claim_is_an_empty_list(jobs: Room) -> None:
    assert await jobs.claim("jobs") == []
    await jobs.publish("jobs", 1)
    await one(jobs, "jobs")
    assert await jobs.claim("jobs", limit=None) == []


async def test_a_batch_takes_up_to_its_limit_in_order(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(5))
    assert await bodies(jobs, "jobs", limit=2) == [0, 1]
    assert await bodies(jobs, "jobs", limit=10) == [2, 3, 4]


async def test_without_a_limit_everything_waiting_is_taken(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(120))
    assert await bodies(jobs, "jobs", limit=None) == list(range(120))


async def test_every_claim_of_a_message_has_a_token_of_its_own(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(3))
    tokens: set[tuple[str, str | None]] = set()
    for _ in range(5):
        for message in await jobs.claim("jobs", limit=None):
            tokens.add((message.id, message.claim_token))
            await jobs.release(message)
    assert len(tokens) == 15


async def test_two_claimers_at_once_never_get_the_same_message(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(100))
    shares = await asyncio.gather(*(jobs.claim("jobs", limit=7) for _ in range(20)))
    taken = [message.id for share in shares for message in share]
    assert len(taken) == len(set(taken)) == 100


async def test_claims_of_one_moment_over_the_same_queues_share_without_overlap(
    room: Room, clock: ManualClock
) -> None:
    for name in ("a", "b"):
        await room.create_queue(name)
        await room.publish(name, "expired", ttl=1)
        await room.publish_many(name, [f"{name}{n}" for n in range(10)])
    clock.advance(1)
    shares = await asyncio.gather(
        room.claim("a", "b", limit=3),
        room.claim("b", "a", limit=3),
        room.claim("a", limit=None),
        room.claim("a", "b", limit=3),
        room.claim("b", "a", limit=None),
        room.claim("b"),
    )
    taken = [message.body for share in shares for message in share]
    assert sorted(taken) == sorted(f"{name}{n}" for name in ("a", "b") for n in range(10))
    assert [message.body for message in shares[0]] == ["a0", "a1", "a2"]
    assert [message.body for message in shares[1]] == ["b0", "b1", "b2"]


async def test_claims_of_one_moment_together_respect_the_concurrency_limit(jobs: Room) -> None:
    await jobs.update_queue("jobs", concurrency=3)
    await jobs.publish_many("jobs", range(10))
    shares = await asyncio.gather(*(jobs.claim("jobs", limit=2) for _ in range(5)))
    assert [len(share) for share in shares] == [2, 1, 0, 0, 0]


async def test_what_is_published_and_claimed_in_one_moment_is_found(jobs: Room) -> None:
    claimed, *_ = await asyncio.gather(
        jobs.claim("jobs", limit=None), jobs.publish("jobs", 1), jobs.publish("jobs", 2)
    )
    assert [message.body for message in claimed] in ([], [1, 2])


async def test_a_claimed_message_is_not_handed_out_again_within_its_lease(
    jobs: Room, clock: ManualClock
) -> None:
    await jobs.publish("jobs", 1)
    await one(jobs, "jobs")
    clock.advance(29.999)
    assert await jobs.claim("jobs") == []


async def test_after_the_lease_the_message_is_handed_out_again_and_the_attempt_counts(
    jobs: Room, clock: ManualClock
) -> None:
    receipt = await jobs.publish("jobs", 1)
    first = await one(jobs, "jobs", worker="dead one")
    clock.advance(30)
    second = await one(jobs, "jobs", worker="w2")
    assert second.attempts == 2
    assert second.claim_token != first.claim_token
    assert second.failure_kind == "lease_expired"
    assert "dead one" in (second.failure_reason or "")
    assert events_of(jobs, receipt.id) == ["published", "claimed", "lease_expired", "claimed"]


async def test_a_message_that_kills_its_workers_ends_as_a_dead_letter(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1)
    for attempt in (1, 2, 3):
        assert (await one(jobs, "jobs")).attempts == attempt
        clock.advance(31)
    assert await jobs.claim("jobs") == []
    message = await jobs.get(receipt.id)
    assert message.state is State.DEAD
    assert message.failure_kind == "lease_expired"
    assert message.queue == "_dead_letter"


async def test_a_late_holder_that_was_not_replaced_may_finish(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1)
    message = await one(jobs, "jobs")
    clock.advance(3600)
    await jobs.complete(message)
    assert await state_of(jobs, receipt.id) is State.COMPLETED


async def test_the_lease_can_be_chosen_per_claim(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", 1)
    message = await one(jobs, "jobs", lease=0.5)
    assert message.claim_expires_at == clock.now() + SECOND // 2
    clock.advance(0.5)
    assert (await one(jobs, "jobs")).attempts == 2


async def test_several_queues_are_served_in_the_order_named(room: Room) -> None:
    for name in ("low", "high"):
        await room.create_queue(name)
        await room.publish_many(name, [f"{name}-1", f"{name}-2"])
    assert await bodies(room, "high", "low", limit=3) == ["high-1", "high-2", "low-1"]
    assert await bodies(room, "high", "low", limit=3) == ["low-2"]


async def test_a_queue_named_twice_hands_out_nothing_twice(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(3))
    assert await bodies(jobs, "jobs", "jobs", limit=None) == [0, 1, 2]


async def test_claiming_nowhere_is_refused(jobs: Room) -> None:
    async with refused(jobs, QueueNotFound, "nowhere"):
        await jobs.claim("nowhere")
    async with refused(jobs, ScopeNotFound, "office"):
        await jobs.claim("office/jobs")
    async with refused(jobs, InvalidField, "queues"):
        await jobs.claim()
    await jobs.publish("jobs", 1)
    async with refused(jobs, QueueNotFound):
        await jobs.claim("jobs", "nowhere", limit=2)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("limit", 0),
        ("limit", -1),
        ("limit", 10_001),
        ("limit", 1.5),
        ("lease", 0),
        ("lease", -1),
        ("lease", math.nan),
        ("lease", math.inf),
        ("lease", 86_401),
        ("worker", "w" * 513),
        ("subscription", "s"),
    ],
)
async def test_a_claim_out_of_bounds_is_refused(jobs: Room, option: str, value: Any) -> None:
    await jobs.publish("jobs", 1)
    async with refused(jobs, InvalidField, option):
        await jobs.claim("jobs", **{option: value})


async def test_claim_batches_are_bounded(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(claim_batch=3)) as room:
        await room.create_queue("jobs")
        await room.publish_many("jobs", range(5))
        assert await bodies(room, "jobs", limit=None) == [0, 1, 2]


async def test_no_more_are_handed_out_than_the_queue_allows_at_once(jobs: Room) -> None:
    await jobs.update_queue("jobs", concurrency=2)
    await jobs.publish_many("jobs", range(5))
    first, _second = await jobs.claim("jobs", limit=5)
    assert await jobs.claim("jobs") == []
    await jobs.complete(first)
    assert await bodies(jobs, "jobs", limit=5) == [2]
    await jobs.update_queue("jobs", concurrency=None)
    assert await bodies(jobs, "jobs", limit=5) == [3, 4]


async def test_a_lower_limit_than_claims_are_out_hands_out_nothing(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(5))
    await jobs.claim("jobs", limit=3)
    await jobs.update_queue("jobs", concurrency=1)
    assert await jobs.claim("jobs", limit=5) == []


@pytest.mark.parametrize(
    ("state", "handed_out"), [("active", 1), ("draining", 1), ("paused", 0), ("archived", 0)]
)
async def test_what_is_closed_hands_out_nothing_and_says_no_error(
    room: Room, state: str, handed_out: int
) -> None:
    await room.create_scope("office")
    await room.create_queue("office/jobs")
    await room.create_queue("jobs")
    for path in ("jobs", "office/jobs"):
        await room.publish(path, 1)
    await room.set_queue_state("jobs", state)
    await room.set_scope_state("office", state)
    assert len(await room.claim("jobs")) == handed_out
    assert len(await room.claim("office/jobs")) == handed_out


async def test_what_was_claimed_can_be_completed_although_its_queue_was_paused(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    message = await one(jobs, "jobs")
    await jobs.set_queue_state("jobs", "paused")
    await jobs.complete(message)
    assert await state_of(jobs, receipt.id) is State.COMPLETED


async def test_a_claim_moves_the_counts_in_the_same_moment(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(3))
    await one(jobs, "jobs")
    assert await counts(jobs, "jobs") == {"pending": 2, "claimed": 1}


async def test_a_claim_whose_caller_gave_up_is_given_back_at_once(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    claiming = asyncio.ensure_future(jobs.claim("jobs"))
    await asyncio.sleep(0)
    claiming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await claiming
    await _given_back(jobs)
    assert await state_of(jobs, receipt.id) is State.PENDING
    assert (await one(jobs, "jobs")).attempts == 1


async def test_a_claim_given_up_in_the_moment_of_its_answer_is_given_back_too(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    claiming = asyncio.ensure_future(jobs.claim("jobs"))
    await asyncio.sleep(0)
    # Runs right behind the commit, before the claimer wakes up with its answer.
    asyncio.get_running_loop().call_soon(claiming.cancel)
    with pytest.raises(asyncio.CancelledError):
        await claiming
    await _given_back(jobs)
    assert await state_of(jobs, receipt.id) is State.PENDING


async def _given_back(room: Room) -> None:
    """The room gives back in the background; several writers may not even have claimed yet."""
    async with asyncio.timeout(60):
        async for event in room.events(follow=True):
            if event.type == Change.RELEASED:
                return


async def test_a_message_that_was_only_read_cannot_be_settled(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    await one(jobs, "jobs")
    seen = await jobs.get(receipt.id)
    async with refused(jobs, ClaimLost, receipt.id):
        await jobs.complete(seen)
