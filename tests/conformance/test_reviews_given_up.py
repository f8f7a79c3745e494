"""A review that nobody will answer lets go what waited for it: with its default, or to the dead letters."""

from typing import Any

import pytest
from tests.conformance.helpers import counts, one, refused
from tests.conformance.test_rules import add_rule

from postroom import Message, Room, State
from postroom.clock import ManualClock
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.reviews.spec import HitlInvalid

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
    assert await counts(room, "orders") == {"delayed": 1}, "it asks again"
    assert (await counts(room, "review"))["pending"] == 1


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


async def test_a_review_that_failed_for_good_lets_go_what_waited(room: Room) -> None:
    waiting, review = await _held(room, SPEC)
    await room.fail(await one(room, "review"), "nobody understands it", retry=False)
    assert (await room.get(review.id)).state is State.DEAD
    ended = await room.get(waiting.id)
    assert (ended.state, ended.failure_kind) == (State.DEAD, "review_cancelled")
    assert "nobody understands it" in (ended.failure_reason or "")


async def test_a_review_whose_reviewers_never_came_back_lets_go_what_waited(
    room: Room, clock: ManualClock
) -> None:
    waiting, _ = await _held(room, {**DEFAULT, "timeout_s": 10**6})
    await room.update_queue("review", max_retries=1)
    await one(room, "review", lease=5)
    clock.advance(6)
    [claimed] = await room.claim("orders")
    assert claimed.id == waiting.id
    assert claimed.labels["review_decision"] == "reject"


async def test_a_review_that_had_to_make_room_lets_go_what_waited(room: Room) -> None:
    waiting, review = await _held(room, SPEC)
    await room.update_queue("review", max_depth=1, overflow_policy="drop_oldest")
    await room.publish("review", "another")
    assert (await room.get(review.id)).state is State.DEAD
    assert (await room.get(waiting.id)).state is State.DEAD


async def test_a_review_that_a_rule_archives_later_lets_go_what_waited(room: Room) -> None:
    waiting, review = await _held(room, SPEC)
    await add_rule(
        room, source_queue_id="review", trigger="message_failed", action={"type": "archive"}, name="enough"
    )
    await room.fail(await one(room, "review"), "not now")
    assert (await room.get(review.id)).state is State.CANCELLED
    assert (await room.get(waiting.id)).state is State.DEAD


@pytest.mark.parametrize("end", ["full", "archived"])
async def test_nothing_waits_for_a_review_that_has_ended_before_anybody_saw_it(room: Room, end: str) -> None:
    for name in ("orders", "review"):
        await room.create_queue(name)
    if end == "full":
        await room.update_queue("review", max_depth=0, overflow_policy="dead_letter")
    else:
        await add_rule(room, source_queue_id="review", action={"type": "archive"})
    ask = {"type": "ask_human", "target_queue_id": "review", "spec": SPEC}
    await add_rule(room, source_queue_id="orders", action=ask)
    receipt = await room.publish("orders", {"text": "pay?"})
    assert receipt.state is State.DEAD
    ended = await room.get(receipt.id)
    assert ended.failure_kind == "review_cancelled"
    reason = {"full": "ended before anybody saw it", "archived": "archived by the rule"}[end]
    assert reason in (ended.failure_reason or "")


async def test_what_is_no_review_of_ours_cannot_be_answered(room: Room) -> None:
    await room.create_queue("review")
    asked = await room.publish("review", 1, hitl_spec={"form": "of another make"})
    async with refused(room, HitlInvalid, "no review"):
        await room.run(service_commands.AnswerReview(message_id=asked.id, answer={"decision": "approve"}))
    await room.complete(await one(room, "review"))
    async with refused(room, HitlInvalid, "no review"):
        await room.run(service_commands.AnswerReview(message_id=asked.id, answer={"decision": "approve"}))


async def test_a_review_that_is_completed_like_any_other_message_is_answered_by_its_result(
    room: Room,
) -> None:
    waiting, _ = await _held(room, DEFAULT)
    await room.complete(await one(room, "review"), {"decision": "approve"})
    claimed = await one(room, "orders")
    assert (claimed.id, claimed.labels["review_decision"]) == (waiting.id, "approve")


@pytest.mark.parametrize("result", [None, "fine", {"decision": "maybe"}])
async def test_a_result_that_is_no_answer_lets_go_what_waited(room: Room, result: Any) -> None:
    waiting, _ = await _held(room, SPEC)
    await room.complete(await one(room, "review"), result)
    ended = await room.get(waiting.id)
    assert (ended.state, ended.failure_kind) == (State.DEAD, "review_cancelled")
    assert "completed without an answer" in (ended.failure_reason or "")


@pytest.mark.parametrize("end", ["cancelled", "answered", "late"])
async def test_what_waits_for_something_else_is_not_the_reviews_any_more(
    room: Room, clock: ManualClock, end: str
) -> None:
    """It was taken out of the review's hands, tried, and now pauses before the next attempt."""
    waiting, review = await _held(room, {**SPEC, "timeout_s": 60})
    await room.kill(waiting.id, "not wanted")
    await room.replay(waiting.id)
    await room.fail(await one(room, "orders"), "busy", delay=1000)
    paused = await room.get(waiting.id)
    assert paused.state is State.DELAYED
    if end == "cancelled":
        await room.cancel(review.id)
    elif end == "answered":
        await room.run(service_commands.AnswerReview(message_id=review.id, answer={"decision": "approve"}))
    else:
        clock.advance(61)
        await room.housekeep("expiry_enforcer")
    assert await room.get(waiting.id) == paused


async def test_a_review_that_was_erased_lets_go_what_waited(room: Room) -> None:
    waiting, review = await _held(room, SPEC)
    subject = {"field": "body.text", "value": "pay?"}
    await room.run(service_commands.Erase(job_id="job", scope="default", subject=subject, execute=True))
    assert (await room.get(review.id)).hitl_spec is None
    ended = await room.get(waiting.id)
    assert (ended.state, ended.body) == (State.DEAD, {"erased": True})
    assert f"the review {review.id} was given up: it was erased" in (ended.failure_reason or "")
