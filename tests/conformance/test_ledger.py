"""The ledger as its readers see it: every event once, in order, from any position, also while it grows."""

import asyncio
import contextlib
from typing import Any

import pytest
from tests.conformance.helpers import events, one, until_following

from postroom import Room
from postroom.errors import StoreClosed
from postroom.kernel.ledger import GENESIS, Event


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    return room


def _following(room: Room, after: int = 0) -> contextlib.aclosing[Any]:
    stream: Any = room.events(after, follow=True)
    return contextlib.aclosing(stream)


async def _read(room: Room, after: int = 0) -> list[Event]:
    return [event async for event in room.events(after)]


async def test_events_are_numbered_from_one_without_a_gap(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(10))
    found = await _read(jobs)
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    assert found[0].previous_hash == GENESIS
    head = await jobs.head()
    assert (head.seq, head.hash, head.time) == (found[-1].seq, found[-1].hash, found[-1].time)


async def test_an_event_says_who_did_what_to_what_when(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1, correlation_id="talk", causation_id="why", type="order")
    message = await one(jobs, "jobs", worker="w1")
    await jobs.fail(message, "no route", kind="network")
    published, claimed, failed = events(jobs)[-3:]
    for event in (published, claimed, failed):
        assert (event.tenant, event.scope, event.queue) == ("default", "default", "jobs")
        assert (event.message_id, event.correlation_id, event.causation_id) == (receipt.id, "talk", "why")
        assert event.actor == "tester"
    assert published.details["type"] == "order"
    assert (claimed.details["worker"], claimed.details["attempts"]) == ("w1", 1)
    assert (failed.details["reason"], failed.details["kind"]) == ("no route", "network")
    assert failed.details["state"] == "delayed"


async def test_reading_goes_on_over_more_events_than_are_read_at_once(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(1200))
    found = await _read(jobs)
    assert [event.seq for event in found] == list(range(1, (await jobs.head()).seq + 1))
    assert len({event.message_id for event in found if event.message_id}) == 1200


async def test_a_position_past_the_end_reads_nothing(jobs: Room) -> None:
    head = await jobs.head()
    assert await _read(jobs, head.seq) == []
    assert await _read(jobs, head.seq + 1000) == []


@pytest.mark.usefixtures("only_wakeups")
async def test_a_follower_gets_what_was_and_what_comes(jobs: Room) -> None:
    await jobs.publish("jobs", "before")
    found: list[Event] = []

    async def follow() -> None:
        async with _following(jobs) as stream:
            async for event in stream:
                found.append(event)
                if event.type == "queue.deleted":
                    return

    following = asyncio.create_task(follow())
    await until_following(jobs)
    for n in range(5):
        await jobs.publish("jobs", n)
    await jobs.create_queue("last")
    await jobs.delete_queue("last")
    await asyncio.wait_for(following, 60)
    assert found == events(jobs)


@pytest.mark.usefixtures("only_wakeups")
async def test_followers_see_everything_once_while_many_write(jobs: Room) -> None:
    """Started at different positions, while publishers and consumers run."""
    writers = 4

    async def follow(after: int) -> list[int]:
        seen: list[int] = []
        ends = 0
        async with _following(jobs, after) as stream:
            async for event in stream:
                seen.append(event.seq)
                ends += event.type == "record.end"
                if ends == writers:
                    break
        return seen

    async def write(number: int) -> None:
        for n in range(20):
            await jobs.publish("jobs", [number, n])
            if n % 3 == 0:
                for message in await jobs.claim("jobs", limit=2):
                    await jobs.complete(message)
        await jobs.record("end", str(number), {})

    starts = [0, 3, (await jobs.head()).seq]
    followers = [asyncio.create_task(follow(after)) for after in starts]
    await asyncio.gather(*(write(number) for number in range(writers)))
    for after, following in zip(starts, followers, strict=True):
        seen = await asyncio.wait_for(following, 60)
        assert seen == list(range(after + 1, seen[-1] + 1))


@pytest.mark.usefixtures("only_wakeups")
async def test_a_follower_of_a_closed_room_ends(jobs: Room) -> None:
    stream = jobs.events((await jobs.head()).seq, follow=True)
    following = asyncio.ensure_future(anext(stream))
    await until_following(jobs)
    await jobs.close()
    with pytest.raises((StoreClosed, StopAsyncIteration)):
        await asyncio.wait_for(following, 60)


async def test_what_is_no_change_is_no_event(jobs: Room) -> None:
    await jobs.publish("jobs", 1)
    head = await jobs.head()
    await jobs.peek("jobs")
    await jobs.messages()
    await jobs.counts("jobs")
    await jobs.claim("jobs", limit=1)
    after_claim = await jobs.head()
    assert after_claim.seq == head.seq + 1
    await jobs.claim("jobs")
    await jobs.set_position("reader", 1)
    await jobs.housekeep("visibility_timeout_enforcer")
    await jobs.housekeep("message_archiver")
    assert await jobs.head() == after_claim
