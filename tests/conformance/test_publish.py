"""Publish: when it returns, the message is there, whole, in its place, once."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.conformance.helpers import bodies, counts, events, events_of, one

from postroom import NewMessage, Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import MessageNotFound


async def test_a_published_message_is_pending_and_can_be_read(room: Room) -> None:
    await room.create_queue("jobs")
    receipt = await room.publish("jobs", {"n": 1})
    assert receipt.created
    assert receipt.state is State.PENDING
    message = await room.get(receipt.id)
    assert (message.id, message.state, message.body) == (receipt.id, State.PENDING, {"n": 1})
    assert message.path == "default/jobs"


async def test_what_was_not_said_has_the_documented_default(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs")
    message = await room.get((await room.publish("jobs")).id)
    assert message.body is None
    assert message.message_type == "message"
    assert message.content_type == "application/json"
    assert (message.priority_tier, message.priority_score) == ("normal", 500)
    assert (message.labels, message.metadata, message.files) == ({}, {}, [])
    assert message.correlation_id == message.id, "a message begins its own conversation"
    assert (message.causation_id, message.parent_id, message.hop) == (None, None, 0)
    assert (message.attempts, message.created_at, message.updated_at) == (0, clock.now(), clock.now())
    assert (message.source_type, message.source_id) == ("user", "tester")
    for field in ("ttl_s", "deadline", "delay_until", "expires_at", "visible_at", "idempotency_key"):
        assert getattr(message, field) is None, field
    for field in ("claimed_by", "claimed_at", "claim_expires_at", "claim_token", "finished_at"):
        assert getattr(message, field) is None, field
    for field in ("failure_reason", "failure_kind", "result", "hitl_spec", "origin_queue", "subscription"):
        assert getattr(message, field) is None, field
    assert not message.archived


async def test_everything_that_was_said_comes_back_to_readers_and_consumers(
    room: Room, clock: ManualClock
) -> None:
    await room.create_queue("jobs", visibility_timeout_s=60)
    deadline = clock.now() + 500 * SECOND
    said: dict[str, Any] = {
        "type": "order.new",
        "priority": "high",
        "score": 750,
        "labels": {"tier": "gold", "n": 3, "x": 1.5, "yes": True, "none": None},
        "ttl": 1000.5,
        "deadline": deadline,
        "key": "once",
        "correlation_id": "talk-1",
        "causation_id": "cause-1",
        "parent_id": "parent-1",
        "hop": 4,
        "hitl_spec": {"sections": [{"type": "decision", "options": ["yes", "no"]}]},
        "source_type": "agent",
        "source_id": "coder",
        "channel": "telegram",
        "sender": "Ünï ☂",
        "sender_id": "42",
        "agent": "writer",
        "from_agent": "coder",
        "files": ["/tmp/ä.txt", "b"],
        "metadata": {"deep": [{"er": None}]},
    }
    wanted = {
        **{name: said[name] for name in said if name not in ("type", "priority", "score", "ttl", "key")},
        "message_type": "order.new",
        "priority_tier": "high",
        "priority_score": 750,
        "ttl_s": 1000.5,
        "idempotency_key": "once",
        "expires_at": deadline,
    }
    receipt = await room.publish("jobs", "body", **said)
    for message in (await room.get(receipt.id), await one(room, "jobs")):
        assert {name: getattr(message, name) for name in wanted} == wanted


async def test_a_json_body_comes_back_the_same(room: Room) -> None:
    said: list[Any] = [
        None,
        True,
        0,
        -1,
        2**53 + 1,
        2**64,
        -(2**70),
        0.1,
        1.7976931348623157e308,
        "",
        "null",
        'Zoë ☂ \U0001f4ee \x00 \u2028 "quoted" \\ \n',
        [],
        {},
        {"": {"null": None}},
        [[[[["deep"]]]]],
        {"mixed": [1, "two", None, {"three": 3.5}]},
    ]
    await room.create_queue("jobs")
    receipts = await room.publish_many("jobs", said)
    claimed = await room.claim("jobs", limit=None)
    for body, receipt, message in zip(said, receipts, claimed, strict=True):
        assert (message.body, type(message.body)) == (body, type(body))
        assert (await room.get(receipt.id)).body == body


async def test_an_opaque_body_is_kept_byte_for_byte(room: Room) -> None:
    await room.create_queue("jobs")
    for content_type, body, back in (
        ("application/octet-stream", b"\x00\xff", b"\x00\xff"),
        ("application/octet-stream", b"", b""),
        ("application/octet-stream", "text", b"text"),
        ("text/plain", "Zoë ☂", "Zoë ☂"),
        ("text/plain", b"bytes", "bytes"),
        ("text/plain", None, None),
        ("image/png", None, None),
    ):
        receipt = await room.publish("jobs", body, content_type=content_type)
        assert (await room.get(receipt.id)).body == back
        assert (await one(room, "jobs")).body == back


async def test_many_are_published_in_the_order_given(room: Room) -> None:
    await room.create_queue("jobs")
    receipts = await room.publish_many("jobs", range(250))
    assert len({receipt.id for receipt in receipts}) == 250
    assert all(receipt.created for receipt in receipts)
    assert await bodies(room, "jobs") == list(range(250))


async def test_nothing_to_publish_is_no_error_and_no_event(room: Room) -> None:
    await room.create_queue("jobs")
    head = await room.head()
    assert await room.publish_many("jobs", []) == []
    assert await room.head() == head


async def test_a_batch_may_mix_bodies_and_whole_messages(room: Room) -> None:
    await room.create_queue("jobs", ordering="priority")
    await room.publish_many(
        "jobs", ["plain", NewMessage(body="whole", priority_tier="critical")], labels={"batch": 1}
    )
    first, second = await room.claim("jobs", limit=2)
    assert (first.body, first.labels) == ("whole", {})
    assert (second.body, second.labels) == ("plain", {"batch": 1})


async def test_concurrent_publishers_lose_and_repeat_nothing(room: Room) -> None:
    await room.create_queue("jobs")
    receipts = await asyncio.gather(*(room.publish("jobs", n) for n in range(200)))
    assert len({receipt.id for receipt in receipts}) == 200
    assert sorted(await bodies(room, "jobs")) == list(range(200))


async def test_calls_of_one_task_keep_their_order(room: Room) -> None:
    await room.create_queue("jobs")
    for n in range(20):
        await room.publish("jobs", n)
    assert await bodies(room, "jobs") == list(range(20))


async def test_what_is_caused_by_a_message_carries_its_conversation_on(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", "question", correlation_id="talk")
    question = await one(room, "jobs")
    answer = await room.get((await room.publish("jobs", "answer", caused_by=question)).id)
    assert answer.correlation_id == "talk"
    assert answer.causation_id == question.id
    assert answer.hop == 1


async def test_moments_may_be_datetimes_or_microseconds(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs")
    moment = datetime(2100, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    micros = 4_102_542_245_678_901
    by_datetime = await room.get((await room.publish("jobs", deadline=moment)).id)
    by_number = await room.get((await room.publish("jobs", deadline=micros)).id)
    assert by_datetime.deadline == by_number.deadline == micros


async def test_publish_is_one_event_that_carries_no_body(room: Room) -> None:
    await room.create_queue("jobs")
    receipt = await room.publish("jobs", {"secret": "hunter2"}, correlation_id="talk", causation_id="why")
    assert events_of(room, receipt.id) == ["published"]
    event = events(room)[-1]
    assert (event.scope, event.queue, event.actor) == ("default", "jobs", "tester")
    assert (event.correlation_id, event.causation_id) == ("talk", "why")
    assert "hunter2" not in event.data
    assert event.details["state"] == "pending"


async def test_a_message_nobody_published_cannot_be_read(room: Room) -> None:
    for message_id in ("nobody", "", "01a3185c-5000-7cd0-b2cd-8be6f9f6209c"):
        with pytest.raises(MessageNotFound):
            await room.get(message_id)


async def test_a_queue_of_another_scope_is_named_by_its_path(room: Room) -> None:
    await room.create_scope("office")
    await room.create_queue("office/inbox/coder")
    receipt = await room.publish("office/inbox/coder", 1)
    message = await room.get(receipt.id)
    assert (message.scope, message.queue) == ("office", "inbox/coder")
    assert await counts(room, "office/inbox/coder") == {"pending": 1}


async def test_an_empty_conversation_is_none_however_many_are_published(room: Room) -> None:
    await room.create_queue("jobs")
    alone = await room.publish("jobs", 0, correlation_id="")
    together = await room.publish_many("jobs", [1, 2], correlation_id="")
    for receipt in (alone, *together):
        assert (await room.get(receipt.id)).correlation_id == receipt.id
        [event] = [event for event in events(room) if event.message_id == receipt.id]
        assert event.correlation_id == receipt.id
