"""Waiting: a claim that finds nothing is woken when there is something. Real time, with generous bounds."""

import asyncio
import time
from itertools import islice

import pytest
from tests.conformance.helpers import one, until_waiting
from tests.conftest import OpenRoom

from postroom import Message, Room, State
from postroom.errors import InvalidField, StoreClosed, SubscriptionNotFound

SOON_S = 60.0
LONG_S = 3600.0

pytestmark = pytest.mark.usefixtures("only_wakeups")


@pytest.fixture
async def jobs(live_room: Room) -> Room:
    await live_room.create_queue("jobs")
    return live_room


def waiting_claim(room: Room, *queues: str, subscription: str | None = None) -> "asyncio.Task[list[Message]]":
    return asyncio.create_task(room.claim(*queues or ("jobs",), wait=LONG_S, subscription=subscription))


async def soon(claiming: "asyncio.Task[list[Message]]") -> Message:
    [message] = await asyncio.wait_for(claiming, SOON_S)
    return message


async def test_a_waiting_claim_gets_what_is_published(jobs: Room) -> None:
    claiming = waiting_claim(jobs)
    await until_waiting(jobs)
    receipt = await jobs.publish("jobs", 1)
    assert (await soon(claiming)).id == receipt.id


async def test_what_is_there_is_taken_without_waiting(jobs: Room) -> None:
    await jobs.publish("jobs", 1)
    assert (await soon(waiting_claim(jobs))).body == 1


async def test_a_wait_that_ends_with_nothing_is_an_empty_list(jobs: Room) -> None:
    started = time.monotonic()
    assert await jobs.claim("jobs", wait=0.1) == []
    assert 0.09 < time.monotonic() - started < SOON_S


async def test_waiting_nowhere_is_refused_at_once(jobs: Room) -> None:
    await jobs.create_queue("news", consumer_mode="broadcast")
    with pytest.raises(InvalidField):
        await jobs.claim("news", wait=LONG_S)
    with pytest.raises(SubscriptionNotFound):
        await jobs.claim("news", wait=LONG_S, subscription="nobody")


async def test_as_many_waiters_are_served_as_messages_come(jobs: Room) -> None:
    claimers = [waiting_claim(jobs) for _ in range(5)]
    await until_waiting(jobs, 5)
    await jobs.publish_many("jobs", range(3))
    served = {
        (await claimed)[0].body for claimed in islice(asyncio.as_completed(claimers, timeout=SOON_S), 3)
    }
    assert served == {0, 1, 2}
    assert sum(claimer.done() for claimer in claimers) == 3
    await jobs.publish_many("jobs", range(2))
    await asyncio.wait_for(asyncio.gather(*claimers), SOON_S)


async def test_a_waiter_that_gives_up_does_not_take_the_message_with_it(jobs: Room) -> None:
    first, second = waiting_claim(jobs), waiting_claim(jobs)
    await until_waiting(jobs, 2)
    first.cancel()
    await jobs.publish("jobs", 1)
    assert (await soon(second)).body == 1


async def test_a_waiter_woken_in_the_moment_it_gives_up_passes_the_message_on(jobs: Room) -> None:
    for _ in range(10):
        first, second = waiting_claim(jobs), waiting_claim(jobs)
        await until_waiting(jobs, 2)
        publishing = asyncio.ensure_future(jobs.publish("jobs", 1))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(first.cancel)
        await publishing
        message = await soon(second) if not first.done() or first.cancelled() else (await first)[0]
        await jobs.complete(message)
        second.cancel()
        await asyncio.wait({first, second})


async def test_a_waiter_on_several_queues_is_woken_by_any(jobs: Room) -> None:
    await jobs.create_queue("other")
    claiming = waiting_claim(jobs, "jobs", "other")
    await until_waiting(jobs)
    await jobs.publish("other", "here")
    assert (await soon(claiming)).body == "here"


async def test_a_subscriber_waits_for_its_own_copy(jobs: Room) -> None:
    await jobs.create_queue("news", consumer_mode="broadcast")
    for name in ("ann", "bob"):
        await jobs.subscribe("news", name)
    claimers = [waiting_claim(jobs, "news", subscription=name) for name in ("ann", "bob")]
    await until_waiting(jobs, 2)
    await jobs.publish("news", 1)
    assert {(await soon(claimer)).subscription for claimer in claimers} == {"ann", "bob"}


async def test_a_waiter_on_competing_and_broadcast_queues_is_woken_by_either(jobs: Room) -> None:
    await jobs.create_queue("news", consumer_mode="broadcast")
    await jobs.subscribe("news", "ann")
    for queue in ("news", "jobs"):
        claiming = waiting_claim(jobs, "jobs", "news", subscription="ann")
        await until_waiting(jobs)
        await jobs.publish(queue, queue)
        assert (await soon(claiming)).body == queue


@pytest.mark.parametrize("how", ["release", "fail", "replay", "resume", "unarchive"])
async def test_whatever_makes_a_message_claimable_wakes_a_waiter(jobs: Room, how: str) -> None:
    receipt = await jobs.publish("jobs", 1)
    held = await one(jobs, "jobs")
    if how == "replay":
        await jobs.kill(receipt.id, "guard")
    elif how in ("resume", "unarchive"):
        await jobs.release(held)
        await jobs.set_queue_state("jobs", "paused" if how == "resume" else "archived")
    claiming = waiting_claim(jobs)
    await until_waiting(jobs)
    assert not claiming.done()
    if how == "release":
        await jobs.release(held)
    elif how == "fail":
        await jobs.fail(held, "again", delay=0)
    elif how == "replay":
        await jobs.replay(receipt.id)
    else:
        await jobs.set_queue_state("jobs", "active")
    assert (await soon(claiming)).id == receipt.id


@pytest.mark.parametrize("how", ["delay", "snooze", "backoff", "lease"])
async def test_a_waiter_is_woken_when_a_message_comes_due(jobs: Room, how: str) -> None:
    if how == "delay":
        await jobs.publish("jobs", 1, delay=0.2)
    else:
        await jobs.publish("jobs", 1)
        held = await one(jobs, "jobs", lease=0.2 if how == "lease" else None)
        if how == "snooze":
            await jobs.snooze(held, 0.2)
        elif how == "backoff":
            await jobs.fail(held, "again", delay=0.2)
    assert (await soon(waiting_claim(jobs))).body == 1


async def test_a_message_delayed_after_the_wait_began_wakes_the_waiter_when_it_is_due(jobs: Room) -> None:
    claiming = waiting_claim(jobs)
    await until_waiting(jobs)
    await jobs.publish("jobs", 1, delay=0.2)
    assert (await soon(claiming)).body == 1


async def test_a_waiter_is_woken_when_the_queue_allows_one_more_claim(jobs: Room) -> None:
    await jobs.update_queue("jobs", concurrency=1)
    await jobs.publish_many("jobs", ["first", "second"])
    held = await one(jobs, "jobs")
    claiming = waiting_claim(jobs)
    await until_waiting(jobs)
    await jobs.complete(held)
    assert (await soon(claiming)).body == "second"


async def test_a_raised_concurrency_wakes_waiters(jobs: Room) -> None:
    await jobs.update_queue("jobs", concurrency=1)
    await jobs.publish_many("jobs", ["first", "second"])
    await one(jobs, "jobs")
    claiming = waiting_claim(jobs)
    await until_waiting(jobs)
    await jobs.update_queue("jobs", concurrency=2)
    assert (await soon(claiming)).body == "second"


async def test_closing_the_room_ends_every_wait(open_room: OpenRoom) -> None:
    async with open_room(clock=None) as room:
        await room.create_queue("jobs")
        claiming = waiting_claim(room)
        await until_waiting(room)
        await room.close()
        with pytest.raises(StoreClosed):
            await asyncio.wait_for(claiming, SOON_S)


async def test_without_housekeeping_waiters_still_see_leases_run_out(open_room: OpenRoom) -> None:
    async with open_room(clock=None) as room:
        await room.create_queue("jobs")
        receipt = await room.publish("jobs", 1)
        await one(room, "jobs", lease=0.1)
        message = await soon(waiting_claim(room))
        assert (message.id, message.attempts) == (receipt.id, 2)
        assert (await room.get(receipt.id)).state is State.CLAIMED
