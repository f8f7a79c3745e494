"""A decision that cannot be followed lets nothing through; a review's time is over for its holder too."""

import random
from typing import Any

import pytest
from tests.conformance.helpers import counts, one
from tests.conformance.test_rules import add_rule

from postroom import Message, Room, State
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage

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


ASK = {"type": "ask_human", "target_queue_id": "review", "spec": SPEC}


async def _gate(room: Room, **rule: Any) -> None:
    for name in ("orders", "review", "refused"):
        await room.create_queue(name)
    await add_rule(room, source_queue_id="orders", action=ASK, **rule)


@pytest.mark.parametrize("how", ["paused", "full", "gone"])
async def test_a_message_about_which_nobody_can_be_asked_reaches_nobody(room: Room, how: str) -> None:
    await _gate(room)
    if how == "paused":
        await room.set_queue_state("review", "paused")
    elif how == "full":
        await room.update_queue("review", max_depth=1)
        await room.publish("review", "another")
    else:
        await room.delete_queue("review")
    receipt = await room.publish("orders", {"text": "pay?"})
    assert await room.claim("orders") == []
    ended = await room.get(receipt.id)
    assert (ended.state, ended.failure_kind) == (State.DEAD, "review_not_asked")
    assert "was to ask a person" in (ended.failure_reason or "")
    [finding] = (await room.messages(queue="default/_integrity")).messages
    assert (finding.message_type, finding.body["message_id"]) == ("rule.failed", receipt.id)


async def test_who_replays_what_nobody_was_asked_about_asks_again(room: Room) -> None:
    await _gate(room)
    await room.set_queue_state("review", "paused")
    receipt = await room.publish("orders", {"text": "pay?"})
    await room.set_queue_state("review", "active")
    await room.replay(receipt.id)
    assert await room.claim("orders") == []
    [review] = (await room.messages(queue="default/review")).messages
    assert review.parent_id == receipt.id
    assert (await room.get(receipt.id)).state is State.DELAYED


async def test_who_replays_what_nobody_answered_in_time_asks_again(room: Room, clock: ManualClock) -> None:
    spec = {name: value for name, value in SPEC.items() if name not in ("default", "on_decision")}
    for name in ("orders", "review"):
        await room.create_queue(name)
    await add_rule(room, source_queue_id="orders", action={**ASK, "spec": spec})
    receipt = await room.publish("orders", {"text": "pay?"})
    clock.advance(61)
    await room.housekeep("expiry_enforcer")
    assert (await room.get(receipt.id)).failure_kind == "review_timeout"
    await room.replay(receipt.id)
    assert await room.claim("orders") == []
    open_reviews = await room.messages(queue="default/review", state=State.PENDING)
    assert [each.parent_id for each in open_reviews.messages] == [receipt.id]


async def test_one_conversation_cannot_wear_out_the_question(room: Room) -> None:
    """Rules that meet one conversation again and again rest; one that asks people does not."""
    await _gate(room)
    for number in range(30):
        await room.publish("orders", number, correlation_id="talk")
    assert await room.claim("orders", limit=100) == []
    assert len((await room.messages(queue="default/review", limit=100)).messages) == 30


async def test_a_message_too_large_to_be_judged_reaches_nobody(room: Room) -> None:
    await _gate(room, expression='body.parts.exists(part, part == "pay")')
    small = await room.publish("orders", {"parts": ["talk"]})
    large = await room.publish("orders", {"parts": ["talk"] * 20_000})
    assert [each.id for each in await room.claim("orders", limit=10)] == [small.id]
    ended = await room.get(large.id)
    assert (ended.state, ended.failure_kind) == (State.DEAD, "review_not_asked")


async def test_a_message_that_takes_too_long_to_judge_reaches_nobody_and_others_are_asked_about(
    room: Room,
) -> None:
    joined = " + ".join(["body.s"] * 200)
    await _gate(room, expression=f'body.s == "ask" || {joined} == "x"')
    text = "".join(random.Random(7).choices("ab", k=250_000))
    hostile = await room.publish("orders", {"s": text})
    assert (await room.get(hostile.id)).failure_kind == "review_not_asked"
    asked = await room.publish("orders", {"s": "ask"})
    assert (await room.get(asked.id)).state is State.DELAYED
    assert await room.claim("orders") == []


async def test_what_rules_used_up_before_opens_no_gate(room: Room) -> None:
    """Rules that copied too much for one command are stopped; what was to be asked about is not let go."""
    for name in ("noisy", *(f"copies-{number}" for number in range(20))):
        await room.create_queue(name)
    targets = [f"copies-{number}" for number in range(20)]
    for number in range(4):
        fan = {"type": "fan_out", "target_queue_ids": targets, "keep": True}
        await add_rule(room, name=f"fan {number}", action=fan, conditions=[_less_hops(number)])
    await _gate(room, priority=1)
    unit = [
        c.Publish(queue=f"default/{queue}", messages=[NewMessage(body="x" * 1000)])
        for queue in ("noisy", "orders")
    ]
    await room.run(c.Unit(commands=tuple(unit)))
    assert await room.claim("orders") == []


def _less_hops(number: int) -> dict[str, Any]:
    return {"field": "hops", "op": "eq", "value": number}
