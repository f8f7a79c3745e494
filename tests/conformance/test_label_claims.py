"""Claims that ask for labels: only what carries them, in order, and nobody else's wake-up is used up."""

import asyncio

import pytest
from tests.conformance.helpers import bodies, refused, until_waiting

from postroom import Room, SyncRoom
from postroom.errors import InvalidField


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    return room


async def test_only_messages_with_all_the_labels_are_taken_in_order(jobs: Room) -> None:
    both = {"a": 1, "b": "x"}
    for n, labels in enumerate(({"a": 1}, both, {"b": "x"}, {"a": True}, both, {})):
        await jobs.publish("jobs", n, labels=labels)
    assert [message.body for message in await jobs.claim("jobs", limit=10, labels=both)] == [1, 4]
    assert [message.body for message in await jobs.claim("jobs", labels={"a": True})] == [3], "true is not 1"
    assert await jobs.claim("jobs", labels={"c": None}) == []
    assert await bodies(jobs, "jobs") == [0, 2, 5]


async def test_labelled_and_plain_claims_of_one_moment_share_out_the_messages(jobs: Room) -> None:
    for n in range(10):
        await jobs.publish("jobs", n, labels={"even": n % 2 == 0})
    taken = await asyncio.gather(
        jobs.claim("jobs", limit=2),
        jobs.claim("jobs", limit=10, labels={"even": True}),
        jobs.claim("jobs", limit=10),
    )
    got = [[message.body for message in each] for each in taken]
    assert sorted(n for each in got for n in each) == list(range(10)), "each went to one"
    assert all(n % 2 == 0 for n in got[1])


@pytest.mark.usefixtures("only_wakeups")
async def test_a_labelled_waiter_is_woken_and_leaves_others_their_messages(live_room: Room) -> None:
    await live_room.create_queue("jobs")
    red = asyncio.create_task(live_room.claim("jobs", wait=3600, labels={"colour": "red"}))
    plain = asyncio.create_task(live_room.claim("jobs", wait=3600))
    await until_waiting(live_room, 2)
    await live_room.publish("jobs", "blue", labels={"colour": "blue"})
    [blue] = await asyncio.wait_for(plain, 60)
    assert blue.body == "blue", "woken at once, not at the next look"
    await live_room.publish("jobs", "red", labels={"colour": "red"})
    [message] = await asyncio.wait_for(red, 60)
    assert message.body == "red"


async def test_labels_that_cannot_be_are_refused(jobs: Room) -> None:
    async with refused(jobs, InvalidField):
        await jobs.claim("jobs", labels={"a": ["a", "list"]})


def test_the_synchronous_room_asks_alike(sync_room: SyncRoom) -> None:
    sync_room.create_queue("jobs")
    for n in range(3):
        sync_room.publish("jobs", n, labels={"n": n})
    [message] = sync_room.claim("jobs", labels={"n": 1}, wait=0.01)
    assert message.body == 1
    assert sync_room.claim("jobs", labels={"n": 7}, wait=0.01) == []
