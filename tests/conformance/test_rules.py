"""Rules on every store: they act in the transaction of the change, and everything promised still holds."""

import time
import uuid
from typing import Any

import msgspec
import pytest
from tests.conformance.helpers import bodies, counts, events_of, one

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import IdempotencyConflict, InvalidField, QueueFull, QueueNotFound
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.access import trust
from postroom.kernel.model import NewMessage
from postroom.kernel.ports import MessageFilter
from postroom.kernel.reviews import answering, patterns
from postroom.kernel.reviews.answering import ReviewAnswered, ReviewLate, ReviewTaken
from postroom.kernel.rules import parsing, rule
from postroom.kernel.rules.breaker import MOST_HOPS

SPEC = {
    "sections": [
        {"type": "context", "title": "Text", "content": "{{text}}"},
        {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
        {"type": "input", "field": "note", "kind": "text", "required": False},
    ]
}


async def add_rule(room: Room, scope: str = "default", **document: Any) -> str:
    number = (await room.scope(scope)).id
    queues = {queue.path: queue.id for queue in await room.queues()}

    def find(name: str, field: str) -> int:
        return queues[name if "/" in name else f"{scope}/{name}"]

    rule_id = str(uuid.uuid4())
    document.setdefault("name", "a rule")
    now = room._core.clock.now()
    made = parsing.drafted(document, find, rule_id=rule_id, now=now)
    await room.run(
        service_commands.PutServiceDocument(
            kind=rule.KIND, key=f"{number}/{rule_id}", data=rule.written(made), scope=scope
        )
    )
    return rule_id


def route(target: str) -> dict[str, Any]:
    return {"type": "route", "target_queue_id": target}


@pytest.fixture
async def shop(room: Room) -> Room:
    for name in ("orders", "priority", "bulk", "done", "review"):
        await room.create_queue(name, max_retries=2, backoff_base_s=1)
    return room


async def findings(room: Room) -> list[Any]:
    page = await room.messages(queue="default/_integrity")
    return [(message.message_type, message.body["why"]) for message in page.messages]


async def test_the_first_rule_that_matches_moves_the_message_before_it_can_be_claimed(shop: Room) -> None:
    premium = [{"field": "labels.tier", "op": "eq", "value": "premium"}]
    await add_rule(shop, priority=20, action=route("bulk"))
    await add_rule(shop, priority=10, conditions=premium, source_queue_id="orders", action=route("priority"))
    sent = await shop.publish("orders", {"n": 1}, labels={"tier": "premium"})
    await shop.publish("orders", {"n": 2})
    assert await shop.claim("orders") == []
    assert await bodies(shop, "priority") == [{"n": 1}]
    assert await bodies(shop, "bulk") == [{"n": 2}]
    assert events_of(shop, sent.id)[:2] == ["published", "routed"]
    moved = await shop.get(sent.id)
    assert (moved.queue, moved.hop, moved.correlation_id) == ("priority", 1, sent.id)


async def test_a_delayed_message_moves_and_stays_delayed(shop: Room, clock: ManualClock) -> None:
    await add_rule(shop, source_queue_id="orders", action=route("bulk"))
    sent = await shop.publish("orders", 1, delay=60)
    assert (await shop.get(sent.id)).state == "delayed"
    clock.advance(61)
    assert (await one(shop, "bulk")).id == sent.id


async def test_a_moved_message_is_still_known_by_its_key(shop: Room, clock: ManualClock) -> None:
    await add_rule(shop, source_queue_id="orders", action=route("bulk"))
    sent = await shop.publish("orders", 1, key="k")
    assert (await shop.publish("orders", 1, key="k")) == type(sent)(sent.id, False, sent.state)
    with pytest.raises(IdempotencyConflict):
        await shop.publish("orders", 2, key="k")
    own = await shop.publish("bulk", 3, key="k")
    assert own.created, "the key is free where the message went"
    await shop.complete(await one(shop, "bulk"))
    clock.advance(4000)
    await shop.housekeep("message_archiver")
    assert (await shop.publish("orders", 1, key="k")).id == sent.id


async def test_rules_meet_messages_again_in_their_new_queue(shop: Room) -> None:
    await add_rule(shop, source_queue_id="orders", action=route("bulk"))
    change = {"type": "transform", "set_labels": {"seen": "{{queue}}"}, "target_queue_id": "done"}
    await add_rule(shop, source_queue_id="bulk", action=change)
    message = await one_of(shop, await shop.publish("orders", 1))
    assert (message.queue, message.labels, message.hop) == ("done", {"seen": "bulk"}, 2)


async def one_of(room: Room, receipt: Any) -> Any:
    return await room.get(receipt.id)


async def test_a_loop_between_two_queues_is_stopped_and_explained(shop: Room) -> None:
    await add_rule(shop, name="there", source_queue_id="orders", action=route("bulk"))
    await add_rule(shop, name="back", source_queue_id="bulk", action=route("orders"))
    message = await one_of(shop, await shop.publish("orders", 1))
    assert message.hop == MOST_HOPS
    [(kind, why)] = await findings(shop)
    assert kind == "rule.hop_limit"
    assert f"passed on {MOST_HOPS} times" in why
    assert await bodies(shop, message.queue) == [1], "the message stays where it is, claimable"


async def test_the_breaker_stops_a_rule_that_meets_one_conversation_too_often(
    shop: Room, clock: ManualClock
) -> None:
    rule_id = await add_rule(shop, source_queue_id="orders", action=route("bulk"))
    for n in range(25):
        await shop.publish("orders", n, correlation_id="talk")
    assert (await counts(shop, "bulk"), await counts(shop, "orders")) == ({"pending": 20}, {"pending": 5})
    [(kind, why)] = await findings(shop)
    assert (kind, "more than 20 times" in why) == ("rule.tripped", True)
    number = (await shop.scope("default")).id
    kept = await shop.document(rule.KIND, f"{number}/{rule_id}")
    assert kept is not None
    assert kept.data["tripped_why"]
    await shop.publish("orders", "other", correlation_id="other")
    assert await counts(shop, "orders") == {"pending": 6}, "a tripped rule rests for all"
    clock.advance(61)
    await shop.publish("orders", "later", correlation_id="later")
    assert await counts(shop, "bulk") == {"pending": 21}


async def test_a_rule_that_cannot_act_leaves_the_message_and_a_finding(shop: Room) -> None:
    await add_rule(shop, source_queue_id="orders", action=route("bulk"))
    await shop.set_queue_state("bulk", "paused")
    receipt = await shop.publish("orders", 1)
    assert receipt.created
    [(kind, why)] = await findings(shop)
    assert (kind, "is paused" in why) == ("rule.failed", True)
    assert await bodies(shop, "orders") == [1]


async def test_an_unknown_action_is_told_with_those_there_are(shop: Room) -> None:
    with pytest.raises(InvalidField, match="'explode', must be one of: route, fan_out, transform"):
        await add_rule(shop, source_queue_id="orders", action={"type": "explode"})


async def test_depth_of_the_target_is_kept(shop: Room) -> None:
    await shop.update_queue("bulk", max_depth=1)
    await add_rule(shop, source_queue_id="orders", action=route("bulk"))
    await shop.publish("orders", 1)
    await shop.publish("orders", 2)
    assert (await counts(shop, "bulk"), await counts(shop, "orders")) == ({"pending": 1}, {"pending": 1})
    with pytest.raises(QueueFull):
        await shop.publish("bulk", 3)


async def test_fan_out_makes_children_and_ends_the_message(shop: Room) -> None:
    action = {"type": "fan_out", "target_queue_ids": ["priority", "bulk"]}
    await add_rule(shop, source_queue_id="orders", action=action)
    sent = await shop.publish("orders", {"n": 1}, correlation_id="talk")
    source = await shop.get(sent.id)
    assert (source.state, len(source.result["fanned_out"])) == ("completed", 2)
    for name in ("priority", "bulk"):
        child = await one(shop, name)
        assert (child.parent_id, child.causation_id, child.correlation_id) == (sent.id, sent.id, "talk")
        assert (child.hop, child.body) == (1, {"n": 1})


async def test_transform_escalate_and_archive_change_the_message_where_it_is(shop: Room) -> None:
    for name, action in (
        (
            "t",
            {
                "type": "transform",
                "remove_labels": ["x"],
                "message_type": "order.seen",
                "body": {"was": "{{body}}"},
            },
        ),
        ("e", {"type": "escalate", "priority_tier": "high", "raise_by": 600}),
        ("a", {"type": "archive"}),
    ):
        await add_rule(shop, expression=f'labels.do == "{name}"', action=action)
    sent = {n: await shop.publish("orders", n, labels={"do": n, "x": 1}) for n in ("t", "e", "a")}
    changed = await shop.get(sent["t"].id)
    assert (changed.labels, changed.message_type, changed.body) == ({"do": "t"}, "order.seen", {"was": "t"})
    raised = await shop.get(sent["e"].id)
    assert (raised.priority_tier, raised.priority_score) == ("high", 1000)
    ended = await shop.get(sent["a"].id)
    assert ended.state == "cancelled"
    assert "archived by the rule" in (ended.failure_reason or "")


async def test_completed_failed_dead_and_expired_messages_meet_rules_in_the_same_transaction(
    shop: Room, clock: ManualClock
) -> None:
    await add_rule(
        shop,
        trigger="completed",
        expression="result.ok == true",
        action={"type": "transform", "body": "{{result}}", "target_queue_id": "done", "message_type": "told"},
    )
    await add_rule(shop, trigger="failed", source_queue_id="orders", action=route("bulk"))
    await add_rule(shop, trigger="dead_lettered", source_queue_id="orders", action=route("review"))
    await add_rule(shop, trigger="expired", action=route("review"))
    sent = await shop.publish("orders", 1, correlation_id="talk")
    await shop.complete(await one(shop, "orders"), {"ok": True, "sum": 3})
    told = await one(shop, "done")
    assert (told.body, told.parent_id, told.correlation_id) == ({"ok": True, "sum": 3}, sent.id, "talk")
    again = await shop.publish("orders", 2)
    await shop.fail(await one(shop, "orders"), "later")
    assert (await shop.get(again.id)).queue == "bulk", "a failed message that is tried again goes elsewhere"
    dead = await shop.publish("orders", 3)
    await shop.fail(await one(shop, "orders"), "no way", retry=False)
    assert (await shop.get(dead.id)).state == "dead"
    assert (await one(shop, "review")).parent_id == dead.id
    late = await shop.publish("orders", 4, ttl=5)
    clock.advance(6)
    assert (await one(shop, "review")).parent_id == late.id


async def test_a_broadcast_is_not_moved_but_its_children_are_made(shop: Room) -> None:
    await shop.create_queue("news", consumer_mode="broadcast")
    await shop.subscribe("news", "ann")
    await add_rule(shop, source_queue_id="orders", action=route("news"))
    await add_rule(shop, source_queue_id="news", action=route("bulk"))
    sent = await shop.publish("orders", "hello")
    assert (await one(shop, "news", subscription="ann")).parent_id == sent.id
    assert await bodies(shop, "bulk") == ["hello"]


async def test_a_refused_unit_triggers_no_rule(shop: Room) -> None:
    await add_rule(shop, trigger="completed", action=route("done"))
    await shop.publish("orders", 1)
    claimed = await one(shop, "orders")
    unit = shop.unit()
    unit.complete(claimed)
    unit.publish("nowhere", 1)
    with pytest.raises(QueueNotFound):
        await shop.run(unit.command())
    assert await counts(shop, "done") == {}
    await shop.complete(claimed)
    assert await counts(shop, "done") == {"pending": 1}


async def pattern(room: Room, name: str = "moderation", version: str = "1.0", **spec: Any) -> None:
    number = (await room.scope("default")).id
    data = {"name": name, "version": version, "spec": {**SPEC, **spec}}
    key = patterns.key_of(number, name, version)
    await room.run(service_commands.PutServiceDocument(kind=patterns.KIND, key=key, data=data, new=True))


async def test_a_message_waits_for_a_person_and_goes_on_by_itself(shop: Room) -> None:
    await pattern(shop, on_decision={"approve": {"queue": "done"}, "reject": {"queue": "bulk"}})
    ask = {"type": "ask_human", "pattern": "moderation", "parameters": {"text": "{{body.text}}"}}
    await add_rule(shop, source_queue_id="orders", action={**ask, "target_queue_id": "review"})
    sent = await shop.publish("orders", {"text": "hello"})
    assert (await shop.get(sent.id)).state == "delayed"
    assert await shop.claim("orders") == []
    [review] = (await shop.messages(queue="default/review")).messages
    assert review.hitl_spec is not None
    assert review.hitl_spec["sections"][0]["content"] == "hello"
    answer = service_commands.AnswerReview(message_id=review.id, answer={"decision": "approve"}, actor="ann")
    await shop.run(answer)
    going = await one(shop, "done")
    assert (going.id, going.labels) == (sent.id, {"review_decision": "approve"})
    record = await shop.latest_record(answering.RECORD, review.id)
    assert record is not None
    assert (record.data["by"], record.data["answer"]) == ("ann", {"decision": "approve"})
    assert record.data["seen"] == answering.seen_mark(_content(shop, review.id))
    with pytest.raises(ReviewAnswered, match="approve"):
        await shop.run(answer)


def _content(room: Room, message_id: str) -> Any:
    stored = room._core.read(lambda reader: reader.get(message_id))
    assert stored is not None
    return stored.content


async def test_time_out_takes_the_default_and_what_waited_goes_on(shop: Room, clock: ManualClock) -> None:
    await pattern(
        shop, timeout_s=60, default={"decision": "reject"}, on_decision={"reject": {"queue": "bulk"}}
    )
    ask = {
        "type": "ask_human",
        "pattern": "moderation",
        "parameters": {"text": "x"},
        "target_queue_id": "review",
    }
    await add_rule(shop, source_queue_id="orders", action=ask)
    sent = await shop.publish("orders", 1)
    [review] = (await shop.messages(queue="default/review")).messages
    clock.advance(61)
    with pytest.raises(ReviewLate):
        await shop.run(service_commands.AnswerReview(message_id=review.id, answer={"decision": "approve"}))
    await shop.housekeep("expiry_enforcer")
    decided = await shop.get(review.id)
    assert (decided.state, decided.result) == ("completed", {"decision": "reject"})
    assert (await one(shop, "bulk")).id == sent.id
    with pytest.raises(ReviewAnswered, match="reject"):
        await shop.run(service_commands.AnswerReview(message_id=review.id, answer={"decision": "approve"}))


async def test_time_out_escalates_first_then_takes_the_default(shop: Room, clock: ManualClock) -> None:
    escalation = {"queue": "priority", "timeout_s": 30, "assignee": "role:lead"}
    spec = {**SPEC, "timeout_s": 60, "default": {"decision": "reject"}, "escalation": escalation}
    spec["sections"] = SPEC["sections"][1:]
    sent = await shop.publish("review", 1, hitl_spec=spec)
    clock.advance(61)
    await shop.housekeep("visibility_timeout_enforcer")
    raised = await shop.get(sent.id)
    assert (raised.queue, raised.state) == ("priority", "pending")
    assert raised.hitl_spec is not None
    assert (raised.hitl_spec["assignee"], raised.hitl_spec["escalated"]) == ("role:lead", True)
    clock.advance(31)
    assert await shop.claim("priority") == []
    assert (await shop.get(sent.id)).result == {"decision": "reject"}


async def test_without_a_default_a_review_expires_and_what_waited_is_a_dead_letter(
    shop: Room, clock: ManualClock
) -> None:
    await pattern(shop, timeout_s=60)
    ask = {
        "type": "ask_human",
        "pattern": "moderation",
        "parameters": {"text": "x"},
        "target_queue_id": "review",
    }
    await add_rule(shop, source_queue_id="orders", action=ask)
    sent = await shop.publish("orders", 1)
    [review] = (await shop.messages(queue="default/review")).messages
    clock.advance(61)
    await shop.housekeep("expiry_enforcer")
    assert (await shop.get(review.id)).state == "expired"
    assert (await shop.get(sent.id)).state == "dead"
    assert "nobody answered" in ((await shop.get(sent.id)).failure_reason or "")


async def test_a_review_that_somebody_holds_cannot_be_answered_by_another(shop: Room) -> None:
    spec = {"sections": SPEC["sections"][1:]}
    sent = await shop.publish("review", 1, hitl_spec=spec)
    held = await one(shop, "review")
    with pytest.raises(ReviewTaken):
        await shop.run(
            service_commands.AnswerReview(message_id=sent.id, answer={"decision": "approve"}, actor="bob")
        )
    await shop.run(
        service_commands.AnswerReview(
            message_id=sent.id, answer={"decision": "approve"}, actor="bob", token=held.claim_token
        )
    )
    assert (await shop.get(sent.id)).state == "completed"


async def test_the_first_look_after_a_start_does_not_stop_the_rule_that_needs_it(
    shop: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading the library of expressions takes long, which no rule can help."""
    from postroom.kernel import expressions
    from postroom.kernel.rules import matching

    rule_id = await add_rule(shop, expression="body > 1", action=route("bulk"))
    load, busy = expressions.load, iter((True,))

    def slow_load() -> Any:
        if next(busy, False):
            until = time.thread_time() + matching.SLOW_S * 1.2
            while time.thread_time() < until:
                pass
        return load()

    monkeypatch.setattr(expressions, "load", slow_load)
    for body in (1, 2):
        await shop.publish("orders", body)
    assert await counts(shop, "bulk") == {"pending": 1}
    assert await findings(shop) == [], f"{rule_id} was not stopped"


async def test_a_condition_that_cannot_be_tried_refuses_nothing(shop: Room) -> None:
    for value in ([1], {"a": 1}, 5):
        await add_rule(
            shop,
            conditions=[{"field": "body", "op": "contains", "value": value}],
            action=route("bulk"),
        )
    await shop.publish("orders", {"a": 1})
    await shop.publish("orders", [[2], 6])
    await shop.publish("orders", [5, 6])
    assert await counts(shop, "orders") == {"pending": 2}
    assert await counts(shop, "bulk") == {"pending": 1}


async def test_a_new_body_must_fit_the_schema_of_its_queue(shop: Room) -> None:
    await shop.register_schema("default", "order", {"type": "object", "required": ["n"]})
    await shop.update_queue("orders", schema="order")
    await add_rule(shop, action={"type": "transform", "body": {"m": "{{body.n}}"}})
    sent = await shop.publish("orders", {"n": 1})
    assert (await shop.get(sent.id)).body == {"n": 1}, "it stays as it was"
    [(kind, why)] = await findings(shop)
    assert kind == "rule.failed"
    assert "does not match the schema" in why


ASK = {"sections": SPEC["sections"][1:]}


async def other_scope(room: Room, tenant: str = "default") -> None:
    await room.run(c.CreateScope(slug="other", tenant=tenant))
    await room.run(c.CreateQueue(queue="other/private", tenant=tenant))


async def test_a_review_frees_only_what_was_held_back_for_it(shop: Room) -> None:
    await other_scope(shop, "acme")
    message = NewMessage(body="theirs", delay_s=60)
    [theirs] = await shop.run(c.Publish(queue="other/private", messages=[message], tenant="acme"))
    ours = await shop.publish("orders", "ours", delay=60)
    for held in (theirs.id, ours.id):
        spec = {**ASK, "waiting": held, "on_decision": {"approve": {"archive": True}}}
        review = await shop.publish("review", 1, hitl_spec=spec)
        await shop.run(service_commands.AnswerReview(message_id=review.id, answer={"decision": "approve"}))
        stored = shop._core.read(lambda reader, held=held: reader.get(held))
        assert stored is not None
        assert stored.row.state == "delayed"


async def test_a_decision_leads_into_another_scope_only_with_a_trust(shop: Room) -> None:
    await other_scope(shop)
    spec = {**ASK, "on_decision": {"approve": {"queue": "/other/private"}}}
    review = await shop.publish("review", 1, hitl_spec=spec)
    answer = service_commands.AnswerReview(message_id=review.id, answer={"decision": "approve"})
    with pytest.raises(InvalidField, match="no trust"):
        await shop.run(answer)
    assert (await shop.get(review.id)).state == "pending"
    source, target = (await shop.scope("default")).id, (await shop.scope("other")).id
    trusted = trust.Trust(id="t", source_id=source, target_id=target, permissions=("route",))
    await shop.run(
        service_commands.PutServiceDocument(
            kind=trust.KIND, key=f"{source}/t", data=msgspec.to_builtins(trusted)
        )
    )
    await shop.run(answer)
    assert await counts(shop, "other/private") == {"pending": 1}


async def test_a_review_whose_time_is_over_stays_in_its_tenant(shop: Room, clock: ManualClock) -> None:
    """Whoever sweeps may be of another tenant, with places of the same names."""
    for tenant in ("default", "acme"):
        await other_scope(shop, tenant)
        await shop.run(c.CreateQueue(queue="other/lead", tenant=tenant))
    first = {**ASK, "timeout_s": 5, "escalation": {"queue": "lead"}}
    second = {**ASK, "timeout_s": 5, "default": {"decision": "reject"}}
    second["on_decision"] = {"reject": {"queue": "lead"}}
    messages = [NewMessage(body="theirs", hitl_spec=spec) for spec in (first, second)]
    await shop.run(c.Publish(queue="other/private", messages=messages, tenant="acme"))
    clock.advance(6)
    await shop.claim("other/private")
    await shop.housekeep("expiry_enforcer")
    assert await counts(shop, "other/lead") == {}
    stored = shop._core.read(lambda reader: reader.page(MessageFilter(tenant="acme"), None, 10))
    [lead] = [q for q in shop._core.read(lambda reader: reader.queues("acme", "other")) if q.slug == "lead"]
    assert [each.row.queue_id == lead.id for each in stored] == [True, False, True]


async def test_a_default_that_leads_nowhere_stops_nobody(shop: Room, clock: ManualClock) -> None:
    spec = {**ASK, "timeout_s": 5, "default": {"decision": "reject"}}
    spec["on_decision"] = {"reject": {"queue": "gone"}}
    await shop.create_queue("gone")
    review = await shop.publish("review", 1, hitl_spec=spec)
    await shop.delete_queue("gone")
    strange = await shop.publish("review", 2, hitl_spec={"default": "x", "escalation": "y"}, ttl=5)
    clock.advance(6)
    await shop.publish("orders", 1)
    assert len(await shop.claim("orders")) == 1
    await shop.housekeep("expiry_enforcer")
    await shop.housekeep("visibility_timeout_enforcer")
    assert (await shop.get(review.id)).result == {"decision": "reject"}
    assert (await shop.get(strange.id)).state == "expired"


async def test_an_answer_that_leads_into_a_full_queue_is_no_answer(shop: Room) -> None:
    await pattern(shop, on_decision={"approve": {"queue": "done"}, "reject": {"queue": "bulk"}})
    ask = {"type": "ask_human", "pattern": "moderation", "parameters": {"text": "x"}}
    await add_rule(shop, source_queue_id="orders", action={**ask, "target_queue_id": "review"})
    sent = await shop.publish("orders", 1)
    [review] = (await shop.messages(queue="default/review")).messages
    await shop.update_queue("done", max_depth=0)
    answer = service_commands.AnswerReview(message_id=review.id, answer={"decision": "approve"})
    with pytest.raises(QueueFull):
        await shop.run(answer)
    assert ((await shop.get(review.id)).state, (await shop.get(sent.id)).state) == ("pending", "delayed")
    await shop.update_queue("done", max_depth=None)
    await shop.run(answer)
    assert (await one(shop, "done")).id == sent.id


async def test_a_review_given_up_whose_default_leads_nowhere_lets_nothing_through(shop: Room) -> None:
    away = {"reject": {"queue": "nowhere"}}
    await pattern(shop, timeout_s=60, default={"decision": "reject"}, on_decision=away)
    ask = {"type": "ask_human", "pattern": "moderation", "parameters": {"text": "x"}}
    await add_rule(shop, source_queue_id="orders", action={**ask, "target_queue_id": "review"})
    sent = await shop.publish("orders", 1)
    [review] = (await shop.messages(queue="default/review")).messages
    await shop.cancel(review.id, "not needed")
    assert await shop.claim("orders") == []
    assert (await shop.get(sent.id)).failure_kind == "review_not_followed"


async def test_a_delayed_message_that_is_routed_to_subscribers_ends_with_its_last_delivery(
    shop: Room, clock: ManualClock
) -> None:
    await shop.create_queue("news", consumer_mode="broadcast")
    await shop.subscribe("news", "ann")
    await add_rule(shop, source_queue_id="orders", action=route("news"))
    sent = await shop.publish("orders", "later", delay=10)
    assert await shop.claim("news", subscription="ann") == []
    clock.advance(10)
    await shop.complete(await one(shop, "news", subscription="ann"))
    assert (await shop.get(sent.id)).state is State.COMPLETED
    await shop.delete_queue("news")


async def test_a_unit_that_was_refused_leaves_nothing_for_rules_to_meet(shop: Room) -> None:
    await add_rule(shop, source_queue_id="orders", trigger="message_failed", action=route("done"))
    await shop.publish("orders", 1)
    message = await one(shop, "orders")
    held: dict[str, Any] = {"message_id": message.id, "token": message.claim_token or ""}
    bad = c.Publish(queue="nowhere", messages=[NewMessage(body=1)])
    # Both in one transaction.
    refused = shop.run(c.Unit(commands=(c.Fail(reason="broken", **held), bad)))
    released = shop.run(c.Release(**held))
    with pytest.raises(QueueNotFound):
        await refused
    await released
    assert (await shop.get(message.id)).queue == "orders"
    assert events_of(shop, message.id) == ["published", "claimed", "released"]


async def test_a_rule_that_was_dropped_in_a_refused_unit_still_acts(shop: Room) -> None:
    rule_id = await add_rule(shop, source_queue_id="orders", action=route("done"))
    key = f"{(await shop.scope('default')).id}/{rule_id}"
    bad = c.Publish(queue="nowhere", messages=[NewMessage(body=1)])
    refused = shop.run(c.Unit(commands=(service_commands.DropServiceDocument(kind=rule.KIND, key=key), bad)))
    published = shop.run(c.Publish(queue="orders", messages=[NewMessage(body=1)]))
    with pytest.raises(QueueNotFound):
        await refused
    [receipt] = await published
    assert (await shop.get(receipt.id)).queue == "done"


async def test_a_review_that_could_not_be_escalated_ends_when_its_time_was_over(
    shop: Room, clock: ManualClock
) -> None:
    spec = {**SPEC, "timeout_s": 5, "escalation": {"queue": "gone", "timeout_s": 500}}
    await shop.create_queue("gone")
    asked = await shop.publish("review", 1, hitl_spec=spec)
    await shop.delete_queue("gone")
    until = (await shop.get(asked.id)).expires_at
    clock.advance(6)
    assert await shop.claim("review") == []
    ended = await shop.get(asked.id)
    assert (ended.state, ended.expires_at) == (State.EXPIRED, until)


async def test_a_subscriber_who_answers_a_review_ends_the_broadcast(shop: Room) -> None:
    await shop.create_queue("news", consumer_mode="broadcast")
    await shop.subscribe("news", "ann")
    sent = await shop.publish("news", 1, hitl_spec=SPEC)
    [delivery] = (await shop.messages(queue="news", deliveries=True, subscription="ann")).messages
    await shop.run(service_commands.AnswerReview(message_id=delivery.id, answer={"decision": "approve"}))
    assert (await shop.get(delivery.id)).state is State.COMPLETED
    assert (await shop.get(sent.id)).state is State.COMPLETED


async def test_a_document_that_is_no_rule_refuses_nobody(shop: Room) -> None:
    """Anybody may keep documents of this kind, under any key."""
    scope = (await shop.scope("default")).id
    await shop.run(c.PutDocument(kind=rule.KIND, key=f"{scope}/mine", data={"anything": 1}))
    await add_rule(shop, source_queue_id="orders", action=route("done"))
    sent = await shop.publish("orders", 1)
    await shop.complete(await one(shop, "done"))
    assert (await shop.get(sent.id)).state is State.COMPLETED


async def test_a_copy_never_meets_the_rule_that_made_it(shop: Room) -> None:
    everywhere = {"type": "fan_out", "target_queue_ids": ["bulk", "done"], "keep": True}
    await add_rule(shop, name="everywhere", action=everywhere)
    await shop.publish("orders", 1)
    assert (await counts(shop, "bulk"), await counts(shop, "done")) == ({"pending": 1}, {"pending": 1})
    copy = await one(shop, "bulk")
    assert (copy.hop, copy.source_type) == (1, "rule")
    await add_rule(shop, name="ended", trigger="completed", action=route("review"))
    await shop.complete(copy)
    await shop.complete(await one(shop, "review"))
    assert await counts(shop, "review") == {"completed": 1}, "nor when the copy ends"


async def test_what_rules_make_of_one_command_is_bounded_and_told(shop: Room) -> None:
    names = [f"copies{n}" for n in range(20)]
    for name in names:
        await shop.create_queue(name)
    for n in range(30):
        await add_rule(
            shop, name=f"rule {n}", action={"type": "fan_out", "target_queue_ids": names, "keep": True}
        )
    sent = await shop.publish("orders", "x" * 1000)
    made = sum([sum((await counts(shop, name)).values()) for name in names])
    limits = shop.limits
    assert 0 < made <= limits.rule_messages + 50
    assert [kind for kind, why in await findings(shop) if "of one command" in why] == ["rule.tripped"]
    assert (await shop.get(sent.id)).state is State.PENDING, "what was published stays"
    await shop.publish("priority", "other")
    assert len(await shop.claim("priority")) == 1, "the next command has a budget of its own"


async def test_the_bytes_that_rules_make_of_one_command_are_bounded(shop: Room) -> None:
    names = [f"copies{n}" for n in range(20)]
    for name in names:
        await shop.create_queue(name)
    for n in range(30):
        await add_rule(
            shop, name=f"rule {n}", action={"type": "fan_out", "target_queue_ids": names, "keep": True}
        )
    body = "x" * 200_000
    await shop.publish("orders", body)
    made = sum([sum((await counts(shop, name)).values()) for name in names])
    assert 0 < made <= (shop.limits.rule_bytes // len(body)) + 20
    assert any("bytes of one command" in why for _, why in await findings(shop))


async def test_a_large_batch_that_each_rule_copies_as_it_should_is_not_stopped(shop: Room) -> None:
    both = {"type": "fan_out", "target_queue_ids": ["bulk", "done"]}
    await add_rule(shop, source_queue_id="orders", action=both)
    messages = [NewMessage(body=n) for n in range(2000)]
    await shop.run(c.Publish(queue="orders", messages=messages))
    assert (await counts(shop, "bulk"), await counts(shop, "done")) == ({"pending": 2000}, {"pending": 2000})
    assert await findings(shop) == []
