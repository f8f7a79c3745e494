"""Broadcast: every subscriber gets a copy and has its own progress; the message ends with the last one."""

import contextlib

import pytest
from tests.conformance.helpers import (
    LONE_SURROGATE,
    bodies,
    counts,
    events,
    events_of,
    one,
    refused,
    state_of,
)

from postroom import PostroomError, Room, State
from postroom.clock import ManualClock
from postroom.errors import InvalidField, NotEmpty, SlugTaken, SubscriptionNotFound
from postroom.kernel import commands as c


@pytest.fixture
async def news(room: Room) -> Room:
    await room.create_queue("news", consumer_mode="broadcast", visibility_timeout_s=30, max_retries=2)
    await room.subscribe("news", "ann")
    await room.subscribe("news", "bob")
    return room


async def test_every_subscriber_gets_every_message_in_order(news: Room) -> None:
    await news.publish_many("news", range(3), labels={"a": 1})
    for name in ("ann", "bob"):
        copies = await news.claim("news", subscription=name, limit=None)
        assert [copy.body for copy in copies] == [0, 1, 2]
        assert {copy.subscription for copy in copies} == {name}
        assert copies[0].labels == {"a": 1}


async def test_each_copy_has_its_own_id_and_knows_its_original(news: Room) -> None:
    original = await news.publish("news", 1, correlation_id="talk", hop=3)
    copies = [await one(news, "news", subscription=name) for name in ("ann", "bob")]
    assert len({original.id, *(copy.id for copy in copies)}) == 3
    for copy in copies:
        assert (copy.parent_id, copy.causation_id) == (original.id, original.id)
        assert (copy.correlation_id, copy.hop) == ("talk", 3)


async def test_the_progress_of_one_subscriber_is_not_that_of_another(news: Room, clock: ManualClock) -> None:
    original = await news.publish("news", 1)
    await news.complete(await one(news, "news", subscription="ann"))
    assert await counts(news, "news", subscription="ann") == {"completed": 1}
    assert await counts(news, "news", subscription="bob") == {"pending": 1}
    assert await state_of(news, original.id) is State.PENDING
    await one(news, "news", subscription="bob")
    clock.advance(31)
    assert await news.claim("news", subscription="ann") == []
    assert (await one(news, "news", subscription="bob")).attempts == 2


async def test_the_message_is_complete_when_its_last_delivery_has_ended(news: Room) -> None:
    original = await news.publish("news", 1)
    await news.complete(await one(news, "news", subscription="ann"))
    await news.complete(await one(news, "news", subscription="bob"))
    assert await state_of(news, original.id) is State.COMPLETED
    assert events_of(news, original.id) == ["published", "completed"]


@pytest.mark.parametrize("how", ["fail", "kill", "cancel", "expire", "unsubscribe"])
async def test_a_delivery_that_ended_badly_does_not_hold_the_message_open(
    news: Room, clock: ManualClock, how: str
) -> None:
    original = await news.publish("news", 1, ttl=100)
    await news.complete(await one(news, "news", subscription="ann"))
    if how == "fail":
        await news.fail(await one(news, "news", subscription="bob"), "bad", retry=False)
    elif how in ("kill", "cancel"):
        [delivery] = await news.peek("news", subscription="bob")
        await (news.kill(delivery.id, "bad") if how == "kill" else news.cancel(delivery.id))
    elif how == "expire":
        clock.advance(100)
        await news.housekeep("expiry_enforcer")
    else:
        await news.unsubscribe("news", "bob")
    assert await state_of(news, original.id) is State.COMPLETED


async def test_a_broadcast_nobody_subscribed_to_is_complete_at_once(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    receipt = await room.publish("news", 1)
    assert receipt.state is State.COMPLETED
    assert await state_of(room, receipt.id) is State.COMPLETED


async def test_a_new_subscriber_gets_what_comes_from_now_on(news: Room) -> None:
    await news.publish("news", "before")
    await news.subscribe("news", "late")
    await news.publish("news", "after")
    assert await bodies(news, "news", subscription="late") == ["after"]


async def test_an_earliest_subscriber_also_gets_what_is_still_kept(news: Room, clock: ManualClock) -> None:
    await news.publish("news", "finished")
    for name in ("ann", "bob"):
        await news.complete(await one(news, "news", subscription=name))
    await news.publish("news", "expired", ttl=5)
    cancelled = await news.publish("news", "cancelled")
    await news.cancel(cancelled.id)
    clock.advance(5)
    await news.publish("news", "open")
    await news.subscribe("news", "late", earliest=True)
    assert await bodies(news, "news", subscription="late") == ["finished", "open"]


async def test_subscribing_again_is_no_error_and_changes_nothing(news: Room) -> None:
    known = (await news.subscriptions("news"))[0]
    head = await news.head()
    assert await news.subscribe("news", "ann", earliest=True) == known
    assert await news.head() == head
    async with refused(news, SlugTaken, "ann"):
        await news.run(c.Subscribe(queue="news", name="ann", exist_ok=False))


async def test_unsubscribing_cancels_what_was_not_finished(news: Room) -> None:
    await news.publish("news", 1)
    [delivery] = await news.peek("news", subscription="bob")
    await news.unsubscribe("news", "bob")
    assert await state_of(news, delivery.id) is State.CANCELLED
    assert [known.name for known in await news.subscriptions("news")] == ["ann"]
    async with refused(news, SubscriptionNotFound, "bob"):
        await news.claim("news", subscription="bob")


async def test_a_subscriber_with_claims_out_cannot_leave(news: Room) -> None:
    await news.publish("news", 1)
    held = await one(news, "news", subscription="bob")
    async with refused(news, NotEmpty, "bob"):
        await news.unsubscribe("news", "bob")
    await news.complete(held)
    await news.unsubscribe("news", "bob")


async def test_a_subscription_made_anew_starts_from_nothing(news: Room) -> None:
    await news.publish("news", "before")
    await news.unsubscribe("news", "bob")
    await news.subscribe("news", "bob")
    assert await news.claim("news", subscription="bob") == []
    assert await counts(news, "news", subscription="bob") == {}


async def test_claiming_without_a_subscription_is_refused(news: Room) -> None:
    async with refused(news, InvalidField, "subscription"):
        await news.claim("news")
    async with refused(news, SubscriptionNotFound, "nobody"):
        await news.claim("news", subscription="nobody")


async def test_only_broadcast_queues_have_subscribers(news: Room) -> None:
    await news.create_queue("jobs")
    async with refused(news, InvalidField, "not a broadcast queue"):
        await news.subscribe("jobs", "ann")
    async with refused(news, SubscriptionNotFound, "ann"):
        await news.unsubscribe("jobs", "ann")
    for name in ("", "  ", "n" * 513, LONE_SURROGATE):
        async with refused(news, InvalidField, "name"):
            await news.subscribe("news", name)


async def test_cancelling_the_message_ends_it_for_every_subscriber(news: Room) -> None:
    original = await news.publish("news", 1)
    await one(news, "news", subscription="ann")
    await news.cancel(original.id)
    assert await counts(news, "news") == {"cancelled": 1}
    for name in ("ann", "bob"):
        assert await counts(news, "news", subscription=name) == {"cancelled": 1}


async def test_killing_the_message_ends_it_for_every_subscriber(news: Room) -> None:
    original = await news.publish("news", 1)
    await one(news, "news", subscription="ann")
    await news.kill(original.id, "guard")
    assert events_of(news, original.id) == ["published", "dead_lettered"]
    assert await counts(news, "news") == {}
    for name in ("ann", "bob"):
        assert await counts(news, "news", subscription=name) == {"cancelled": 1}


async def test_dead_deliveries_are_counted_among_the_dead_letters(news: Room) -> None:
    await news.publish("news", 1)
    await news.fail(await one(news, "news", subscription="ann"), "bad", retry=False)
    assert (await news.counts("_dead_letter")).dead == 1
    assert await news.housekeep("dead_letter_monitor") == 1


async def test_a_scope_with_dead_deliveries_cannot_be_deleted(room: Room) -> None:
    await room.create_scope("office")
    await room.create_queue("office/news", consumer_mode="broadcast")
    await room.subscribe("office/news", "ann")
    await room.publish("office/news", 1)
    await room.fail(await one(room, "office/news", subscription="ann"), "bad", retry=False)
    async with refused(room, NotEmpty, "office"):
        await room.delete_scope("office")


async def test_a_dead_delivery_can_be_replayed_to_its_subscriber(news: Room) -> None:
    await news.publish("news", 1)
    dead = await one(news, "news", subscription="ann")
    await news.fail(dead, "bad", retry=False)
    await news.replay(dead.id)
    assert (await one(news, "news", subscription="ann")).id == dead.id


async def test_a_dead_delivery_is_never_replayed_to_a_subscriber_who_has_left(news: Room) -> None:
    await news.publish("news", 1)
    dead = await one(news, "news", subscription="ann")
    await news.fail(dead, "bad", retry=False)
    await news.unsubscribe("news", "ann")
    with contextlib.suppress(PostroomError):
        await news.replay(dead.id)
    assert await state_of(news, dead.id) is not State.PENDING, "nobody could ever claim it"


async def test_a_killed_broadcast_that_is_replayed_reaches_its_subscribers_again(news: Room) -> None:
    original = await news.publish("news", "again")
    await news.kill(original.id, "guard")
    await news.replay(scope="default")
    for name in ("ann", "bob"):
        assert await bodies(news, "news", subscription=name) == ["again"]


async def test_a_replayed_original_is_not_left_waiting_for_nobody(news: Room) -> None:
    original = await news.publish("news", "again")
    await news.kill(original.id, "guard")
    with contextlib.suppress(PostroomError):
        await news.replay(original.id)
    if await state_of(news, original.id) is State.PENDING:
        assert await bodies(news, "news", subscription="ann") == ["again"]


async def test_a_delayed_broadcast_is_delayed_for_everybody(news: Room, clock: ManualClock) -> None:
    await news.publish("news", 1, delay=10)
    await news.subscribe("news", "late", earliest=True)
    for name in ("ann", "bob", "late"):
        assert await news.claim("news", subscription=name) == [], name
    clock.advance(10)
    for name in ("ann", "bob", "late"):
        assert await bodies(news, "news", subscription=name) == [1], name


async def test_a_broadcast_expires_for_everybody_in_time(news: Room, clock: ManualClock) -> None:
    await news.publish("news", "short", ttl=10)
    await news.publish("news", "never seen", ttl=10, delay=60)
    clock.advance(10)
    await news.housekeep("expiry_enforcer")
    for name in ("ann", "bob"):
        assert await counts(news, "news", subscription=name) == {"expired": 2}


async def test_a_broadcast_may_be_ordered_by_priority(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast", ordering="priority")
    await room.subscribe("news", "ann")
    await room.publish("news", "low", priority="low")
    await room.publish("news", "high", priority="high")
    assert await bodies(room, "news", subscription="ann") == ["high", "low"]


async def test_a_new_priority_of_the_message_moves_it_for_every_subscriber(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast", ordering="priority")
    await room.subscribe("news", "ann")
    _, second = await room.publish_many("news", ["first", "second"])
    await room.reprioritise(second.id, tier="critical")
    assert await bodies(room, "news", subscription="ann") == ["second", "first"]


async def test_the_concurrency_limit_holds_per_subscriber(news: Room) -> None:
    await news.update_queue("news", concurrency=1)
    await news.publish_many("news", range(2))
    for name in ("ann", "bob"):
        assert await bodies(news, "news", subscription=name) == [0]


async def test_what_a_subscriber_has_seen_is_remembered_for_it_alone(news: Room) -> None:
    assert not await news.check_seen("news", "ann", "msg-1")
    assert await news.check_seen("news", "ann", "msg-1")
    assert not await news.check_seen("news", "bob", "msg-1")
    assert not await news.check_seen("news", "ann", "msg-2")
    async with refused(news, SubscriptionNotFound, "nobody"):
        await news.check_seen("news", "nobody", "msg-1")
    async with refused(news, InvalidField, "key"):
        await news.check_seen("news", "ann", "")


async def test_publishing_to_many_is_one_event_for_the_message_and_one_per_delivery(news: Room) -> None:
    head = (await news.head()).seq
    receipt = await news.publish("news", 1)
    made = events(news, head)
    assert [event.type for event in made] == ["message.published"] * 3
    assert [event.message_id == receipt.id for event in made] == [True, False, False]


async def test_competing_and_broadcast_queues_are_claimed_together(news: Room) -> None:
    await news.create_queue("jobs")
    await news.publish("jobs", "work")
    await news.publish("news", "copy")
    assert await bodies(news, "news", "jobs", subscription="ann") == ["copy", "work"]
    async with refused(news, InvalidField, "subscription"):
        await news.claim("jobs", "news")
    async with refused(news, SubscriptionNotFound, "nobody"):
        await news.claim("jobs", "news", subscription="nobody")
