"""Streams and subscribers: followed live, waited for, and ended with what they were."""

import asyncio
import uuid

import pytest

from postroom.clock import SECOND
from postroom.errors import InvalidField, PostroomError
from postroom.kernel import service_commands, streams
from postroom.kernel.streams import StreamNotFound
from postroom.services.container import Services
from postroom.services.errors import NoSuchThing
from postroom.services.streams import StreamParts
from tests.services.conftest import ServedRoom


async def open_stream(served: ServedRoom, queue: str | None = "jobs") -> str:
    return (await served.services.streams.open(served.owner, "work", queue=queue)).stream.id


async def test_a_stream_is_followed_to_its_end(served: ServedRoom) -> None:
    services, owner = served.services.streams, served.owner
    stream = await open_stream(served)
    heard: list[StreamParts] = []
    came = asyncio.Event()

    async def listen() -> None:
        async for parts in await services.follow(owner, "work", stream):
            heard.append(parts)
            if parts.chunks:
                came.set()

    async with asyncio.timeout(60):
        listening = asyncio.ensure_future(listen())
        await services.append(owner, "work", stream, [(0, b"one ")])
        await came.wait()
        await services.append(owner, "work", stream, [(1, b"two")])
        await services.close(owner, "work", stream, total_chunks=2)
        await listening
    assert b"".join(chunk.data for each in heard for chunk in each.chunks) == b"one two"
    assert heard[-1].of.state == "closed"
    [message] = await served.room.claim("work/jobs")
    assert message.body == "one two"


async def test_parts_are_waited_for_as_long_as_was_said(served: ServedRoom) -> None:
    services, owner = served.services.streams, served.owner
    stream = await open_stream(served, None)
    assert (await services.read_parts(owner, "work", stream)).chunks == []
    assert (await services.read_parts(owner, "work", stream, wait_s=0.01)).chunks == []
    waiting = asyncio.ensure_future(services.read_parts(owner, "work", stream, wait_s=60))
    await services.append(owner, "work", stream, [(0, b"x")])
    async with asyncio.timeout(60):
        assert [chunk.data for chunk in (await waiting).chunks] == [b"x"]
    waiting = asyncio.ensure_future(services.read_parts(owner, "work", stream, after=0, wait_s=60))
    await services.abort(owner, "work", stream, reason="enough")
    async with asyncio.timeout(60):
        assert (await waiting).of.state == "aborted"


async def test_nobody_follows_a_server_that_closes(served: ServedRoom) -> None:
    closing = asyncio.Event()
    services = Services(served.room, closing=closing).streams
    stream = await open_stream(served, None)
    waiting = asyncio.ensure_future(services.read_parts(served.owner, "work", stream, wait_s=60))
    parts = await services.follow(served.owner, "work", stream)
    await asyncio.sleep(0)
    closing.set()
    async with asyncio.timeout(60):
        assert (await waiting).of.state == "open"
        assert [each.of.state async for each in parts] == ["open"]


async def test_a_stream_that_is_not_there_or_goes_away_is_named(served: ServedRoom) -> None:
    services, owner = served.services.streams, served.owner
    with pytest.raises(StreamNotFound):
        await services.read(owner, "work", "nope")
    stream = await open_stream(served, None)
    parts = await services.follow(owner, "work", stream)
    scope = await served.room.scope("work")
    await served.room.run(service_commands.DropServiceDocument(kind=streams.KIND, key=f"{scope.id}/{stream}"))
    with pytest.raises(StreamNotFound):
        await anext(parts)


async def test_a_stream_to_nobody_is_seen_by_all_of_the_scope_and_given_up_in_time(
    served: ServedRoom,
) -> None:
    services = served.services.streams
    stream = await open_stream(served, None)
    holder = await served.key("view")
    assert [each.stream.id for each in await services.list_all(holder, "work")] == [stream]
    served.clock.advance(2 * 3600 * SECOND)
    assert [each.state for each in await services.list_all(holder, "work")] != ["open"]
    with pytest.raises(PostroomError):
        await services.append(served.owner, "work", stream, [(0, b"late")])


# subscribers


async def test_a_subscriber_is_known_by_id_or_by_queue_and_name(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    await served.room.create_queue("work/news", consumer_mode="broadcast")
    ann, bob = [
        await services.subscriptions.subscribe(owner, "work", "news", name) for name in ("ann", "bob")
    ]
    ids = await services.public_ids()
    read = services.subscriptions.read
    ann_id, bob_id = ids.subscription(ann.subscription.id), ids.subscription(bob.subscription.id)
    assert (await read(owner, "work", ann_id)).subscription.name == "ann"
    await served.room.publish("work/news", 1)
    assert (await read(owner, "work", ann_id)).counts.pending == 1
    details = await services.queues.read(owner, "work", "news")
    assert {each.subscription.name: each.counts.pending for each in details.subscriptions} == {
        "ann": 1,
        "bob": 1,
    }
    for unknown in ("ann", str(uuid.uuid4())):
        with pytest.raises(NoSuchThing):
            await read(owner, "work", unknown)
    await services.subscriptions.unsubscribe(owner, "work", ann_id)
    await services.subscriptions.unsubscribe(owner, "work", "bob", queue="news")
    assert await services.subscriptions.list_all(owner, "work") == []
    with pytest.raises(NoSuchThing):
        await read(owner, "work", bob_id)


async def test_a_subscriber_remembers_what_it_has_seen(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    await served.room.create_queue("work/news", consumer_mode="broadcast")
    made = await services.subscriptions.subscribe(owner, "work", "news", "ann")
    number = (await services.public_ids()).subscription(made.subscription.id)
    seen = services.subscriptions.check_seen
    assert [await seen(owner, "work", number, key) for key in ("a", "a", "b")] == [False, True, False]
    for nothing in (None, ""):
        with pytest.raises(InvalidField, match="message_id"):
            await seen(owner, "work", number, nothing)
