"""A review that is ended by hand lets go what waited for it: with its default, or to the dead letters."""

from typing import Any

import pytest
from tests.conformance.helpers import counts
from tests.conformance.test_rules import add_rule

from postroom import Message, Room, State
from postroom.kernel import commands as c

SPEC: dict[str, Any] = {
    "sections": [
        {"type": "context", "title": "Text", "content": "Pay?"},
        {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
    ]
}
DEFAULT: dict[str, Any] = {**SPEC, "timeout_s": 3600, "default": {"decision": "reject"}}


async def _held(room: Room, spec: dict[str, Any]) -> tuple[Message, Message]:
    """The message that waits, and the review it waits for."""
    for name in ("orders", "review", "refused"):
        await room.create_queue(name)
    ask = {"type": "ask_human", "target_queue_id": "review", "spec": spec}
    await add_rule(room, source_queue_id="orders", action=ask)
    receipt = await room.publish("orders", {"text": "pay?"})
    [review] = (await room.messages(queue="default/review")).messages
    return await room.get(receipt.id), review


@pytest.mark.parametrize("verb", [c.Cancel, c.Kill])
async def test_without_a_default_it_is_a_dead_letter_with_the_reason(room: Room, verb: Any) -> None:
    waiting, review = await _held(room, SPEC)
    assert waiting.state is State.DELAYED
    await room.run(verb(message_id=review.id, reason="asked by mistake"))
    ended = await room.get(waiting.id)
    assert (ended.state, ended.failure_kind) == (State.DEAD, "review_cancelled")
    assert f"the review {review.id} was given up: asked by mistake" in (ended.failure_reason or "")
    await room.replay(waiting.id)
    assert await counts(room, "orders") == {"pending": 1}


async def test_with_a_default_it_goes_on_as_when_nobody_answers(room: Room) -> None:
    waiting, review = await _held(room, DEFAULT)
    await room.cancel(review.id)
    [claimed] = await room.claim("orders")
    assert claimed.id == waiting.id
    assert claimed.labels["review_decision"] == "reject"


async def test_what_no_longer_waits_is_left_alone(room: Room) -> None:
    waiting, review = await _held(room, SPEC)
    await room.cancel(waiting.id)
    await room.cancel(review.id)
    assert (await room.get(waiting.id)).state is State.CANCELLED


async def test_a_whole_conversation_that_is_cancelled_is_cancelled_whole(room: Room) -> None:
    waiting, review = await _held(room, SPEC)
    await room.run(c.CancelConversation(correlation_id=waiting.correlation_id or ""))
    assert {(await room.get(each.id)).state for each in (waiting, review)} == {State.CANCELLED}
