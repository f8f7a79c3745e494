"""A decision that cannot be followed lets nothing through; a review's time is over for its holder too."""

from typing import Any

import pytest
from tests.conformance.helpers import counts, one
from tests.conformance.test_rules import add_rule

from postroom import Message, Room, State
from postroom.clock import ManualClock
from postroom.kernel import commands as c

SPEC: dict[str, Any] = {
    "sections": [{"type": "decision", "field": "decision", "options": ["approve", "reject"]}],
    "timeout_s": 60,
    "default": {"decision": "reject"},
    "on_decision": {"reject": {"queue": "refused"}},
}


async def _held(room: Room) -> tuple[Message, Message]:
    """The message that waits, and the review it waits for."""
    for name in ("orders", "review", "refused"):
        await room.create_queue(name)
    ask = {"type": "ask_human", "target_queue_id": "review", "spec": SPEC}
    await add_rule(room, source_queue_id="orders", action=ask)
    receipt = await room.publish("orders", {"text": "pay?"})
    [review] = (await room.messages(queue="default/review")).messages
    return await room.get(receipt.id), review


async def _close(room: Room, how: str) -> None:
    if how == "paused":
        await room.set_queue_state("refused", "paused")
    elif how == "full":
        await room.update_queue("refused", max_depth=1)
        await room.publish("refused", "another")
    else:
        await room.delete_queue("refused")


@pytest.mark.parametrize("how", ["paused", "full", "gone"])
@pytest.mark.parametrize("end", ["time", "cancel"])
async def test_a_default_that_leads_to_a_closed_queue_lets_nothing_through(
    room: Room, clock: ManualClock, how: str, end: str
) -> None:
    waiting, review = await _held(room)
    await _close(room, how)
    if end == "time":
        clock.advance(61)
        assert await room.claim("review") == []
        await room.housekeep("expiry_enforcer")
        assert (await room.get(review.id)).result == {"decision": "reject"}
    else:
        await room.cancel(review.id)
    assert await room.claim("orders") == []
    ended = await room.get(waiting.id)
    assert (ended.state, ended.failure_kind) == (State.DEAD, "review_not_followed")
    assert "said reject" in (ended.failure_reason or "")
    assert await counts(room, "orders") == {}
    [finding] = (await room.messages(queue="default/_integrity")).messages
    assert (finding.message_type, finding.body["message_id"], finding.body["waiting"]) == (
        "review.not_followed",
        review.id,
        waiting.id,
    )


@pytest.mark.parametrize("way", ["claim", "extend", "extend_many"])
async def test_a_holder_cannot_postpone_the_time_out_of_a_review(
    room: Room, clock: ManualClock, way: str
) -> None:
    waiting, review = await _held(room)
    held = await one(room, "review", lease=3600 if way == "claim" else 50)
    if way != "claim":
        clock.advance(40)
        if way == "extend":
            await room.extend(held, lease=3600)
        else:
            await room.run(c.ExtendMany(claims=((held.id, held.claim_token or ""),), lease_s=3600))
    now = await room.get(review.id)
    assert now.claim_expires_at == now.expires_at
    clock.advance(61)
    await room.housekeep("expiry_enforcer")
    assert (await room.get(review.id)).result == {"decision": "reject"}
    assert (await room.get(waiting.id)).queue == "refused"


async def test_a_claim_of_anything_else_outlives_its_time(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1, ttl=60)
    held = await one(room, "jobs", lease=3600)
    clock.advance(120)
    await room.complete(held)
    assert (await room.get(held.id)).state is State.COMPLETED
