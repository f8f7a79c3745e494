"""Messages: what is published is checked whole, and what is told of them is complete."""

from typing import Any

import pytest

from postroom.errors import InvalidField, MessageNotFound, PostroomError, SchemaNotFound, SystemQueue
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import NewMessage
from postroom.kernel.ports import AuditFilter
from postroom.kernel.reviews.sections import HitlInvalid
from postroom.services.container import Services
from tests.services.conftest import ServedRoom
from tests.services.lists import close_queue

ASK: dict[str, Any] = {"sections": [{"type": "decision", "options": ["yes", "no"]}]}


@pytest.fixture
async def news(served: ServedRoom) -> ServedRoom:
    """With a broadcast queue that ann and bob follow."""
    await served.room.create_queue("work/news", consumer_mode="broadcast")
    for name in ("ann", "bob"):
        await served.services.subscriptions.subscribe(served.owner, "work", "news", name)
    return served


async def test_a_broadcast_is_told_with_each_delivery(news: ServedRoom) -> None:
    services, owner = news.services, news.owner
    message = await news.room.publish("work/news", "hello")
    [taken] = await news.room.claim("work/news", subscription="ann")
    await news.room.complete(taken)
    story = await services.messages.explain(owner, message.id)
    assert {each.subscription: each.state.value for each in story.deliveries} == {
        "ann": "completed",
        "bob": "pending",
    }
    assert [event.message_id for event in story.events].count(message.id) == len(story.events) > 0
    waiting = await services.messages.peek(owner, "work", "news", subscription="bob")
    assert ([each.body for each in waiting.messages], waiting.counts.pending) == (["hello"], 1)
    assert (await services.messages.peek(owner, "work", "news", subscription="ann")).messages == []


async def test_a_story_has_only_what_happened_to_the_message(served: ServedRoom) -> None:
    """Also in a ledger of many events before and after it, and of the last message of all."""
    services, room = served.services, served.room
    for number in range(20):
        served.clock.advance(1000)
        await room.publish("work/open", number)
    served.clock.advance(1000)
    message = await room.publish("work/jobs", "it")
    served.clock.advance(1000)
    [claimed] = await room.claim("work/jobs")
    story = await services.messages.explain(served.owner, message.id)
    assert [event.type for event in story.events] == ["message.published", "message.claimed"]
    served.clock.advance(1000)
    await room.complete(claimed)
    served.clock.advance(1000)
    await room.publish("work/open", "after")
    story = await services.messages.explain(served.owner, message.id)
    assert story.events[-1].type == "message.completed"
    assert {event.message_id for event in story.events} == {message.id}
    assert (story.queue and story.queue.slug, story.deliveries) == ("jobs", [])


async def test_one_waits_only_for_messages_that_one_may_look_at(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    first = await served.room.publish("work/jobs", 1)
    [made] = await services.messages.publish(owner, "work", "jobs", [NewMessage(body=2, after=[first.id])])
    assert made.found.message.state.value == "delayed"
    unknown: Any
    for unknown in ("nothing", 7):
        with pytest.raises(MessageNotFound):
            await services.messages.publish(owner, "work", "jobs", [NewMessage(body=3, after=[unknown])])


async def test_a_page_goes_on_after_its_last_message(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    made = [await served.room.publish("work/jobs", number) for number in range(5)]
    first = await services.messages.list_page(owner, "work", "jobs", limit=2)
    assert ([each.message.id for each in first.items], first.more) == ([made[0].id, made[1].id], True)
    rest = await services.messages.list_page(owner, "work", "jobs", cursor=made[1].id, limit=5)
    assert ([each.message.id for each in rest.items], rest.more) == ([each.id for each in made[2:]], False)
    everywhere = await services.messages.list_page(owner, cursor=made[3].id)
    assert [each.message.id for each in everywhere.items] == [made[4].id]
    dead = await services.messages.list_page(owner, "work", states=["dead", "pending"])
    assert len(dead.items) == 5
    with pytest.raises(InvalidField, match="state"):
        await services.messages.list_page(owner, "work", states=["pending", "asleep"])
    stranger = await served.key("view", tenant="globex")
    await served.room.run(c.CreateScope(slug="theirs", tenant="globex"))
    with pytest.raises(InvalidField, match="cursor"):
        await services.messages.list_page(stranger, "theirs", cursor=made[0].id)


async def test_a_body_is_checked_against_the_schema_its_message_names(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    document = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    await services.schemas.register(owner, "work", "order", document)
    good, bad = NewMessage(body={"n": 1}), NewMessage(body={"n": "one"})
    for name in ("order", "order@1"):
        [made] = await services.messages.publish(owner, "work", "jobs", [good], schemas=[name])
        assert made.created
    head = await served.room.head()
    with pytest.raises(PostroomError) as refused:
        await services.messages.publish(owner, "work", "jobs", [good, bad], schemas=[None, "order"])
    assert refused.value.code == "SCHEMA_VIOLATION", str(refused.value)
    with pytest.raises(SchemaNotFound):
        await services.messages.publish(owner, "work", "jobs", [good], schemas=["order@2"])
    assert await served.room.head() == head


async def test_schemas_are_read_by_any_way_to_write_a_version(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    for version in (None, "2.0", 3):
        await services.schemas.register(owner, "work", "order", {"type": "object"}, version)
    read = services.schemas.read
    assert [(await read(owner, "work", "order", text)).schema.version for text in ("1", "2.0", "latest")] == [
        1,
        2,
        3,
    ]
    assert len(await services.schemas.list_all(owner, "work", "order")) == 3
    assert await services.schemas.list_all(owner, "work", "other") == []
    with pytest.raises(SchemaNotFound):
        await read(owner, "work", "order", "4")
    for wrong in ("2.1", "two", "1234567890"):
        with pytest.raises(InvalidField, match="version"):
            await read(owner, "work", "order", wrong)


# reviews


async def publish_review(served: ServedRoom, caller: Any, spec: Any) -> None:
    message = NewMessage(body="?", hitl_spec=spec)
    await served.services.messages.publish(caller, "work", "jobs", [message])


async def test_a_review_of_a_key_is_one_of_ours(served: ServedRoom) -> None:
    holder = await served.key(*Permission)
    for spec, problem in (
        ({"form": "theirs"}, "sections or name a pattern"),
        ({**ASK, "escalated": True}, "set by rules"),
    ):
        with pytest.raises(HitlInvalid, match=problem):
            await publish_review(served, holder, spec)
    await publish_review(served, holder, ASK)
    assert (await served.room.counts("work/jobs")).pending == 1


async def test_a_decision_leads_only_where_its_author_may_publish(served: ServedRoom) -> None:
    await close_queue(served, "work/open", ("user", "ann"), Permission.VIEW)
    ann = await served.key(*Permission, user_id="ann")
    for spec in (
        {**ASK, "on_decision": {"yes": {"queue": "open"}}},
        {**ASK, "on_decision": {"yes": {"queue": "/work/open"}}},
        {**ASK, "timeout_s": 60, "escalation": {"queue": "open"}},
    ):
        with pytest.raises(HitlInvalid, match="may not publish"):
            await publish_review(served, ann, spec)
    nowhere = {**ASK, "on_decision": {"yes": {"queue": "nowhere"}}}
    hidden = {**ASK, "on_decision": {"yes": {"queue": "open"}}}
    for who, spec in ((ann, nowhere), (await served.key(*Permission, user_id="carl"), hidden)):
        with pytest.raises(HitlInvalid, match="no such queue"):
            await publish_review(served, who, spec)
    assert (await served.room.counts("work/jobs")).open == 0
    await publish_review(
        served, ann, {**ASK, "on_decision": {"yes": {"queue": "jobs"}, "no": {"archive": True}}}
    )
    assert (await served.room.counts("work/jobs")).pending == 1


async def test_nobody_publishes_into_a_queue_of_the_system(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    with pytest.raises(SystemQueue):
        await services.messages.publish(owner, "work", "_dead_letter", [NewMessage(body=1)])
    with pytest.raises(SystemQueue):
        await services.streams.open(owner, "work", queue="_dead_letter")


async def test_a_message_is_cancelled_once_with_others_or_alone(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    one, two = [await served.room.publish("work/jobs", number) for number in (1, 2)]
    with pytest.raises(PostroomError):
        await services.messages.cancel(owner, one.id, "no-such-message")
    assert (await served.room.counts("work/jobs")).pending == 2, "all or none"
    cancelled = await services.messages.cancel(owner, one.id, two.id, one.id, reason="enough")
    assert [each.message.state.value for each in cancelled] == ["cancelled", "cancelled"]


# what happened, by who asked and by conversation


async def test_a_conversation_is_traced_for_who_may_look(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    for path in ("work/jobs", "work/open"):
        await served.room.publish(path, 1, correlation_id="talk-1")
    await close_queue(served, "work/jobs", ("user", "bob"), Permission.VIEW)
    holder = await served.key("view", "manage")
    whole = await services.audit.trace(owner, "work", "talk-1")
    part = await services.audit.trace(holder, "work", "talk-1")
    assert {event.queue for event in whole.events} == {"jobs", "open"}
    assert {event.queue for event in part.events} == {"open"}
    assert (await services.audit.trace(owner, "work", "talk-2")).events == []


async def test_the_names_of_queues_are_learnt_when_others_make_them(served: ServedRoom) -> None:
    """A process that was there before a queue knows its name as soon as a message of it is asked for."""
    before = Services(served.room)
    first = await served.room.publish("work/jobs", 1)
    assert (await before.messages.read(served.owner, first.id)).message.queue == "jobs"
    await served.room.create_queue("work/later")
    second = await served.room.publish("work/later", 1)
    assert (await before.messages.read(served.owner, second.id)).message.queue == "later"
    entries = await served.room.look(lambda reader: reader.audit(AuditFilter(tenant="default"), None, 10))
    assert entries == [], "the owner at the shell leaves none"


async def test_the_id_that_send_printed_finds_the_first_message_of_its_conversation(
    served: ServedRoom,
) -> None:
    first = await served.room.publish("work/jobs", "question", correlation_id="cli:cli_1")
    await served.room.publish("work/jobs", "answer", correlation_id="cli:cli_1")
    for wanted in (first.id, "cli_1", "cli:cli_1"):
        story = await served.services.messages.explain(served.owner, wanted)
        found = await served.services.messages.read(served.owner, wanted)
        assert (story.message.id, found.message.id) == (first.id, first.id)
        assert story.events
    with pytest.raises(MessageNotFound):
        await served.services.messages.explain(served.owner, "cli_2")
    stranger = await served.key("view", tenant="other")
    with pytest.raises(PostroomError):
        await served.services.messages.explain(stranger, "cli_1")
