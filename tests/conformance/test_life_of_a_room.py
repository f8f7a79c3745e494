"""Opening and closing: what was accepted is there again, and a closed room says that it is closed."""

import asyncio
from typing import Any

import pytest
from tests.conformance.helpers import bodies, events, one, whole
from tests.conftest import OpenRoom

import postroom
from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import PostroomError, StoreClosed, UnknownStore
from postroom.ids import SeededIds


@pytest.mark.needs("reopen")
async def test_everything_accepted_is_there_after_opening_again(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room() as room:
        await room.create_scope("office")
        await room.create_queue("office/jobs", ordering="priority", max_retries=7)
        await room.create_queue("office/news", consumer_mode="broadcast")
        await room.subscribe("office/news", "ann")
        await room.register_schema("office", "order", {"type": "object"})
        await room.publish("office/news", "copy")
        receipts = await room.publish_many("office/jobs", range(4), labels={"a": 1})
        held, failed = await room.claim("office/jobs", limit=2)
        await room.fail(failed, "no", delay=60)
        await room.record("turn", "coder", {"n": 1})
        await room.set_position("lake", 3, hold=True)
        before = whole(room)
    async with open_room(ids=SeededIds(2)) as room:
        assert whole(room) == before
        assert (await room.queue("office/jobs")).settings.max_retries == 7
        assert [schema.name for schema in await room.schemas("office")] == ["order"]
        assert (await room.records("turn"))[0].data == {"n": 1}
        await room.complete(held)
        assert await bodies(room, "office/jobs") == [2, 3]
        clock.advance(60)
        assert (await one(room, "office/jobs")).id == receipts[1].id
        assert (await one(room, "office/news", subscription="ann")).body == "copy"


@pytest.mark.needs("reopen")
async def test_a_room_opened_again_goes_on_numbering_and_never_turns_time_back(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room() as room:
        await room.create_queue("jobs")
        await room.publish("jobs", "before")
    clock.advance(-3600)
    async with open_room(ids=SeededIds(2)) as room:
        await room.publish("jobs", "after")
        assert [event.seq for event in events(room)] == list(range(1, len(events(room)) + 1))
        assert await bodies(room, "jobs") == ["before", "after"]


async def test_a_closed_room_says_so(room: Room) -> None:
    await room.create_queue("jobs")
    receipt = await room.publish("jobs", 1)
    message = await one(room, "jobs")
    await room.close()
    await room.close()
    calls: list[Any] = [
        lambda: room.publish("jobs", 1),
        lambda: room.claim("jobs"),
        lambda: room.complete(message),
        lambda: room.get(receipt.id),
        lambda: room.counts("jobs"),
        room.head,
        lambda: anext(room.events()),
    ]
    for call in calls:
        with pytest.raises(StoreClosed):
            await call()


@pytest.mark.needs("reopen")
async def test_what_was_asked_before_the_close_is_answered_and_done(open_room: OpenRoom) -> None:
    async with open_room() as room:
        await room.create_queue("jobs")
        publishing = [asyncio.ensure_future(room.publish("jobs", n)) for n in range(50)]
        await asyncio.sleep(0)
        await room.close()
        outcomes = await asyncio.gather(*publishing, return_exceptions=True)
    accepted = [outcome.id for outcome in outcomes if not isinstance(outcome, BaseException)]
    for outcome in outcomes:
        assert not isinstance(outcome, BaseException) or isinstance(outcome, StoreClosed)
    async with open_room(ids=SeededIds(2)) as room:
        kept = [message.id for message in (await room.messages(queue="jobs", limit=1000)).messages]
        assert kept == accepted


@pytest.mark.needs("reopen")
async def test_a_claim_outlives_the_room_and_lapses_by_its_lease(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    async with open_room() as room:
        await room.create_queue("jobs", visibility_timeout_s=30)
        receipt = await room.publish("jobs", 1)
        await one(room, "jobs")
    async with open_room(ids=SeededIds(2)) as room:
        assert (await room.get(receipt.id)).state is State.CLAIMED
        clock.advance(30)
        assert (await one(room, "jobs")).attempts == 2


@pytest.mark.parametrize("url", ["", "redis://x", "sqlite:///", "nonsense://", "memory://x"])
async def test_an_address_that_is_not_known_is_refused(url: str) -> None:
    with pytest.raises(UnknownStore) as caught:
        async with postroom.open(url):
            pass
    assert "sqlite:///" in str(caught.value)


async def test_an_option_that_does_not_exist_is_refused(open_room: OpenRoom) -> None:
    with pytest.raises((TypeError, PostroomError), match="nonsense"):
        async with open_room(nonsense=1):
            pass


async def test_two_rooms_in_memory_share_nothing() -> None:
    async with postroom.open("memory://") as one_room, postroom.open("memory://") as other:
        await one_room.create_queue("jobs")
        assert "jobs" not in {queue.slug for queue in await other.queues()}
