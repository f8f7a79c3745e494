"""Tenants: the same names twice in one store, and neither sees, claims, settles or changes the other's."""

from typing import Any

import pytest
from tests.conformance.helpers import bodies, dead_letter, events, one, refused
from tests.conftest import OpenRoom

from postroom import NewMessage, Room
from postroom.clock import ManualClock
from postroom.errors import MessageNotFound, ScopeNotFound
from postroom.kernel import commands as c
from postroom.kernel.transitions.claim import ClaimedBatch

OTHER: dict[str, Any] = {"tenant": "other"}


@pytest.fixture
async def shared(room: Room) -> Room:
    """Two tenants with a queue of the same name."""
    await room.create_queue("jobs")
    await room.run(c.CreateScope(slug="default", **OTHER))
    await room.run(c.CreateQueue(queue="jobs", settings={"max_retries": 1}, **OTHER))
    return room


async def _publish_other(room: Room, body: Any, **fields: Any) -> str:
    message = NewMessage(body=body, **fields)
    [receipt] = await room.run(c.Publish(queue="jobs", messages=[message], **OTHER))
    return receipt.id


async def test_queues_of_one_name_are_apart(shared: Room) -> None:
    await shared.publish("jobs", "mine")
    theirs = await _publish_other(shared, "theirs")
    assert await bodies(shared, "jobs") == ["mine"]
    taken: ClaimedBatch = await shared.run(c.Claim(queues=("jobs",), limit=None, **OTHER))
    assert [stored.row.id for stored in taken.messages] == [theirs]


async def test_a_tenant_without_the_scope_does_not_find_it(room: Room) -> None:
    await room.create_queue("jobs")
    with pytest.raises(ScopeNotFound):
        await room.run(c.Publish(queue="jobs", messages=[NewMessage()], **OTHER))


async def test_what_belongs_to_another_is_not_found(shared: Room) -> None:
    theirs = await _publish_other(shared, "theirs", correlation_id="talk")
    calls: list[Any] = [
        lambda: shared.get(theirs),
        lambda: shared.cancel(theirs),
        lambda: shared.kill(theirs, "guard"),
        lambda: shared.replay(theirs),
        lambda: shared.discard(theirs),
        lambda: shared.reprioritise(theirs, score=1),
    ]
    for call in calls:
        async with refused(shared, MessageNotFound, theirs):
            await call()


async def test_listings_show_only_ones_own(shared: Room) -> None:
    mine = await shared.publish("jobs", "mine", correlation_id="talk")
    await _publish_other(shared, "theirs", correlation_id="talk")
    filters: list[dict[str, Any]] = [{}, {"correlation_id": "talk"}, {"queue": "jobs"}, {"scope": "default"}]
    for wanted in filters:
        page = await shared.messages(**wanted)
        assert [message.id for message in page.messages] == [mine.id], wanted
    assert {queue.tenant for queue in await shared.queues()} == {"default"}
    assert len(await shared.scopes()) == 1


async def test_keys_are_apart(shared: Room) -> None:
    await shared.publish("jobs", "mine", key="k")
    await _publish_other(shared, "theirs", idempotency_key="k")


async def test_records_are_apart(shared: Room) -> None:
    await shared.record("turn", "coder", {"of": "mine"})
    await shared.run(c.AddRecord(kind="turn", key="coder", data={"of": "theirs"}, **OTHER))
    assert [record.data for record in await shared.records("turn")] == [{"of": "mine"}]


async def test_dead_letters_are_apart(shared: Room) -> None:
    await _publish_other(shared, "theirs")
    taken: ClaimedBatch = await shared.run(c.Claim(queues=("jobs",), **OTHER))
    row = taken.messages[0].row
    assert row.token is not None
    await shared.run(c.Fail(message_id=row.id, token=row.token, reason="no", **OTHER))
    mine = await dead_letter(shared, "jobs")
    assert (await shared.counts("_dead_letter")).dead == 1
    assert await shared.replay(scope="default") == [mine]
    assert (await one(shared, "jobs")).id == mine


async def test_housekeeping_serves_every_tenant(shared: Room, clock: ManualClock) -> None:
    lapsed = await _publish_other(shared, "lapsed")
    await shared.run(c.Claim(queues=("jobs",), **OTHER))
    expired = await _publish_other(shared, "expired", ttl_s=5)
    clock.advance(31)
    assert await shared.housekeep("visibility_timeout_enforcer") == 2
    assert await shared.housekeep("dead_letter_monitor") == 1
    grew = events(shared)[-1]
    assert (grew.type, grew.tenant, grew.scope) == ("dead_letters.grew", "other", "default")
    last = {event.message_id: event for event in events(shared) if event.message_id}
    assert (last[lapsed].type, last[lapsed].tenant) == ("message.dead_lettered", "other")
    assert (last[expired].type, last[expired].tenant) == ("message.expired", "other")
    assert (await shared.counts("_dead_letter")).dead == 0, "not among ours"
    clock.advance(3600)
    assert await shared.housekeep("message_archiver") == 1


async def test_a_room_of_another_tenant_works_like_any(open_room: OpenRoom, clock: ManualClock) -> None:
    async with open_room(tenant="acme") as room:
        await room.create_queue("jobs", max_retries=1)
        receipt = await room.publish("jobs", 1)
        await one(room, "jobs")
        clock.advance(31)
        assert await room.claim("jobs") == []
        assert await room.replay(scope="default") == [receipt.id]
        await room.complete(await one(room, "jobs"))
        assert {event.tenant for event in events(room)} == {"acme"}
