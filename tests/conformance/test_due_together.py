"""Messages that come due in one sweep, where the end of one decides what becomes of another."""

from typing import Any

import pytest
from tests.conformance.helpers import counts, events_of
from tests.conformance.test_rules import add_rule

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel.transitions.due import AT_CLAIM

SPEC: dict[str, Any] = {
    "sections": [
        {"type": "context", "title": "Text", "content": "Pay?"},
        {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
    ],
    "timeout_s": 30,
}


async def _held(room: Room, spec: dict[str, Any]) -> tuple[str, str]:
    """The message that waits, with a life of a minute, and the review it waits for, with half of it."""
    for name in ("orders", "review"):
        await room.create_queue(name)
    ask = {"type": "ask_human", "target_queue_id": "review", "spec": spec}
    await add_rule(room, source_queue_id="orders", action=ask)
    waiting = await room.publish("orders", {"text": "pay?"}, ttl=60)
    [review] = (await room.messages(queue="default/review")).messages
    return waiting.id, review.id


async def test_what_a_late_review_lets_go_on_expires_once(room: Room, clock: ManualClock) -> None:
    waiting, review = await _held(room, {**SPEC, "default": {"decision": "approve"}})
    clock.advance(61)
    assert await room.claim("orders") == []
    assert (await room.get(review)).state is State.COMPLETED
    assert (await room.get(waiting)).state is State.EXPIRED
    assert await counts(room, "orders") == {"expired": 1}
    assert events_of(room, waiting)[-2:] == ["ready", "expired"]


async def test_what_a_late_review_has_buried_is_not_expired_too(room: Room, clock: ManualClock) -> None:
    waiting, review = await _held(room, SPEC)
    clock.advance(61)
    assert await room.claim("orders") == []
    assert (await room.get(review)).state is State.EXPIRED
    ended = await room.get(waiting)
    assert (ended.state, ended.failure_kind) == (State.DEAD, "review_timeout")
    assert await counts(room, "orders") == {}
    assert await counts(room, "_dead_letter") == {"dead": 1}


@pytest.mark.parametrize("housekeeper", ["visibility_timeout_enforcer", "expiry_enforcer"])
async def test_housekeepers_keep_the_same_promise(room: Room, clock: ManualClock, housekeeper: str) -> None:
    waiting, _ = await _held(room, SPEC)
    clock.advance(61)
    assert await room.housekeep(housekeeper) > 0
    assert events_of(room, waiting)[-1] == "dead_lettered"


async def test_what_a_claim_drops_on_its_way_is_not_handed_out_to_the_next(
    room: Room, clock: ManualClock
) -> None:
    """A review that is over is met by a claim, and its default needs room in a queue that is claimed too."""
    for name in ("later", "review", "jobs"):
        await room.create_queue(name, overflow_policy="drop_oldest")
    first, second = await room.publish_many("jobs", ["first", "second"])
    await room.update_queue("jobs", max_depth=1)
    # So many come due before it that the sweep before the claims does not come to it.
    await room.publish_many("later", list(range(AT_CLAIM)), delay=10)
    spec = {**SPEC, "default": {"decision": "approve"}, "on_decision": {"approve": {"queue": "jobs"}}}
    await room.publish("review", "third", hitl_spec=spec)
    clock.advance(31)
    claims = [room.run(c.Claim(queues=(name,), worker=name)) for name in ("jobs", "review", "jobs")]
    taken = [[stored.row.id for stored in (await claim).messages] for claim in claims]
    assert taken[:2] == [[first.id], []]
    assert (await room.get(second.id)).state is State.DEAD
    assert [(await room.get(each)).body for each in taken[2]] == ["third"]
