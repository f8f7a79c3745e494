"""Scopes and queues: made, changed, paused, drained, archived, deleted."""

import pytest
from tests.conformance.helpers import bodies, counts, dead_letter, events, one, refused, state_of

from postroom import Room, State
from postroom.clock import ManualClock
from postroom.errors import (
    NotEmpty,
    QueueClosed,
    QueueNotFound,
    ScopeClosed,
    ScopeNotFound,
    SlugTaken,
    SystemQueue,
    WrongPlaceState,
)
from postroom.kernel import commands as c
from postroom.kernel.model import SYSTEM_QUEUES, LifecycleState


async def test_a_scope_comes_with_its_system_queues(room: Room, clock: ManualClock) -> None:
    scope = await room.create_scope("office", display_name="The Office", description="Where we work")
    assert (scope.slug, scope.display_name, scope.description) == ("office", "The Office", "Where we work")
    assert (scope.state, scope.tenant, scope.created_at) == (LifecycleState.ACTIVE, "default", clock.now())
    assert await room.scope("office") == scope
    queues = await room.queues("office")
    assert {queue.slug for queue in queues} == set(SYSTEM_QUEUES)
    assert all(queue.system for queue in queues)


async def test_the_default_scope_is_there_from_the_beginning(room: Room) -> None:
    assert [scope.slug for scope in await room.scopes()] == ["default"]


async def test_a_scope_is_named_by_its_slug_when_nothing_else_is_said(room: Room) -> None:
    scope = await room.create_scope("office")
    assert (scope.display_name, scope.description) == ("office", "")


async def test_a_scope_can_be_described_anew(room: Room, clock: ManualClock) -> None:
    await room.create_scope("office", description="old")
    clock.advance(1)
    await room.run(c.UpdateScope(slug="office", display_name="New"))
    scope = await room.scope("office")
    assert (scope.display_name, scope.description) == ("New", "old")
    assert scope.updated_at == clock.now()
    async with refused(room, ScopeNotFound, "nowhere"):
        await room.run(c.UpdateScope(slug="nowhere", display_name="x"))


async def test_a_queue_has_the_documented_defaults(room: Room, clock: ManualClock) -> None:
    queue = await room.create_queue("jobs")
    settings = queue.settings
    assert (queue.path, queue.state, queue.system) == ("default/jobs", LifecycleState.ACTIVE, False)
    assert (settings.display_name, settings.ordering, settings.consumer_mode) == ("jobs", "fifo", "competing")
    assert (settings.visibility_timeout_s, settings.max_retries) == (30, 5)
    assert (settings.backoff_base_s, settings.backoff_cap_s) == (1, 300)
    assert (settings.concurrency, settings.max_depth, settings.overflow_policy) == (None, None, "reject")
    assert (settings.default_ttl_s, settings.schema, settings.retention_s) == (None, None, None)
    assert await room.queue("jobs") == await room.queue("default/jobs") == queue


async def test_every_setting_comes_back_and_can_be_changed(room: Room, clock: ManualClock) -> None:
    await room.register_schema("default", "order", {}, version=2)
    chosen = {
        "display_name": "Jöbs",
        "description": "what to do",
        "ordering": "priority",
        "consumer_mode": "broadcast",
        "visibility_timeout_s": 0.5,
        "max_retries": 100,
        "backoff_base_s": 0.25,
        "backoff_cap_s": 7.5,
        "concurrency": 3,
        "max_depth": 10,
        "overflow_policy": "drop_oldest",
        "default_ttl_s": 60.0,
        "schema": "order@2",
        "retention_s": 1.0,
    }
    queue = await room.create_queue("jobs", **chosen)
    assert {name: getattr(queue.settings, name) for name in chosen} == chosen
    clock.advance(1)
    changed = await room.update_queue("jobs", max_retries=1, concurrency=None, ordering="fifo")
    assert (changed.settings.max_retries, changed.settings.concurrency) == (1, None)
    assert changed.settings.display_name == "Jöbs"
    assert changed.updated_at == clock.now() > changed.created_at
    assert await room.queue("jobs") == changed


async def test_queues_are_listed_by_scope(room: Room) -> None:
    await room.create_scope("office")
    await room.create_queue("office/inbox")
    await room.create_queue("jobs")
    assert "inbox" in {queue.slug for queue in await room.queues("office")}
    assert "jobs" not in {queue.slug for queue in await room.queues("office")}
    assert {"default/jobs", "office/inbox"} <= {queue.path for queue in await room.queues()}


async def test_a_taken_name_is_a_conflict_and_is_not_answered_with_the_existing_one(room: Room) -> None:
    await room.create_scope("office")
    await room.create_queue("office/jobs")
    async with refused(room, SlugTaken, "office"):
        await room.create_scope("office")
    async with refused(room, SlugTaken, "office/jobs"):
        await room.create_queue("office/jobs")


async def test_exist_ok_answers_with_what_is_there_unchanged(room: Room) -> None:
    scope = await room.create_scope("office", display_name="first")
    queue = await room.create_queue("jobs", max_retries=1)
    head = await room.head()
    assert await room.create_scope("office", display_name="second", exist_ok=True) == scope
    assert await room.create_queue("jobs", max_retries=9, exist_ok=True) == queue
    assert await room.head() == head


async def test_the_same_queue_name_may_be_used_in_every_scope(room: Room) -> None:
    for scope in ("one", "two"):
        await room.create_scope(scope)
        await room.create_queue(f"{scope}/jobs")
        await room.publish(f"{scope}/jobs", scope)
    assert await bodies(room, "two/jobs") == ["two"]


@pytest.mark.parametrize("state", ["paused", "draining", "archived"])
async def test_a_closed_place_takes_no_messages_until_it_is_opened_again(room: Room, state: str) -> None:
    await room.create_scope("office")
    await room.create_queue("office/jobs")
    await room.create_queue("jobs")
    assert (await room.set_queue_state("jobs", state)).state == state
    assert (await room.set_scope_state("office", state)).state == state
    async with refused(room, QueueClosed, "default/jobs", state):
        await room.publish("jobs", 1)
    async with refused(room, ScopeClosed, "office", state):
        await room.publish("office/jobs", 1)
    await room.set_queue_state("jobs", "active")
    await room.set_scope_state("office", "active")
    await room.publish("jobs", 1)
    await room.publish("office/jobs", 1)
    assert await bodies(room, "jobs", "office/jobs") == [1, 1]


async def test_what_is_archived_can_only_be_opened_again(room: Room) -> None:
    await room.create_scope("office")
    await room.create_queue("jobs")
    await room.set_queue_state("jobs", "archived")
    await room.set_scope_state("office", "archived")
    for state in ("paused", "draining"):
        async with refused(room, WrongPlaceState, "archived", state):
            await room.set_queue_state("jobs", state)
        async with refused(room, WrongPlaceState, "archived", state):
            await room.set_scope_state("office", state)


async def test_asking_for_the_present_state_is_no_change(room: Room) -> None:
    await room.create_queue("jobs")
    head = await room.head()
    await room.set_queue_state("jobs", "active")
    await room.set_scope_state("default", "active")
    assert await room.head() == head


async def test_system_queues_stay_as_they_are(room: Room) -> None:
    async with refused(room, SystemQueue, "_dead_letter"):
        await room.set_queue_state("_dead_letter", "paused")
    async with refused(room, SystemQueue, "deleted"):
        await room.delete_queue("_events")
    async with refused(room, SystemQueue, "consumer mode"):
        await room.update_queue("_dead_letter", consumer_mode="broadcast")
    for slug in ("_mine", *SYSTEM_QUEUES):
        async with refused(room, SystemQueue, slug):
            await room.create_queue(slug)


async def test_a_queue_with_open_messages_or_dead_letters_cannot_be_deleted(room: Room) -> None:
    await room.create_queue("jobs")
    receipt = await room.publish("jobs", 1)
    async with refused(room, NotEmpty, "1"):
        await room.delete_queue("jobs")
    held = await one(room, "jobs")
    async with refused(room, NotEmpty):
        await room.delete_queue("jobs")
    await room.snooze(held, 60)
    async with refused(room, NotEmpty):
        await room.delete_queue("jobs")
    await room.kill(receipt.id, "dead")
    async with refused(room, NotEmpty):
        await room.delete_queue("jobs")
    await room.discard(receipt.id)
    await room.delete_queue("jobs")


async def test_what_ended_in_a_deleted_queue_is_not_lost(room: Room) -> None:
    await room.create_queue("jobs")
    done = await room.publish("jobs", "done", correlation_id="talk")
    await room.complete(await one(room, "jobs"))
    dead = await dead_letter(room, "jobs", "given up")
    await room.discard(dead)
    await room.delete_queue("jobs")
    message = await room.get(done.id)
    assert (message.queue, message.archived, message.state) == ("jobs", True, State.COMPLETED)
    assert (await room.get(dead)).origin_queue == "jobs"
    assert [found.id for found in (await room.messages(correlation_id="talk")).messages] == [done.id]
    async with refused(room, QueueNotFound, "jobs"):
        await room.publish("jobs", 1)
    assert "jobs" not in {queue.slug for queue in await room.queues()}


async def test_a_deleted_queue_made_anew_knows_nothing_of_the_old_one(room: Room) -> None:
    await room.create_queue("jobs")
    old = await room.publish("jobs", 1, key="k")
    await room.complete(await one(room, "jobs"))
    await room.delete_queue("jobs")
    await room.create_queue("jobs", ordering="priority")
    assert await counts(room, "jobs") == {}
    new = await room.publish("jobs", 2, key="k")
    assert new.created
    assert [message.id for message in (await room.messages(queue="jobs")).messages] == [new.id]
    assert await state_of(room, old.id) is State.COMPLETED


async def test_a_broadcast_queue_with_open_deliveries_cannot_be_deleted(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    await room.subscribe("news", "ann")
    await room.publish("news", 1)
    async with refused(room, NotEmpty):
        await room.delete_queue("news")
    await room.complete(await one(room, "news", subscription="ann"))
    await room.delete_queue("news")


async def test_the_consumer_mode_changes_only_while_nothing_is_open(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1)
    async with refused(room, NotEmpty):
        await room.update_queue("jobs", consumer_mode="broadcast")
    await room.complete(await one(room, "jobs"))
    await room.update_queue("jobs", consumer_mode="broadcast")
    await room.subscribe("jobs", "ann")
    await room.publish("jobs", 2)
    assert await bodies(room, "jobs", subscription="ann") == [2]


async def test_a_dead_letter_of_the_other_consumer_mode_is_not_lost_in_the_queue(room: Room) -> None:
    await room.create_queue("jobs", consumer_mode="broadcast")
    await room.subscribe("jobs", "ann")
    await room.publish("jobs", 1)
    dead = await one(room, "jobs", subscription="ann")
    await room.fail(dead, "bad", retry=False)
    async with refused(room, NotEmpty):
        await room.update_queue("jobs", consumer_mode="competing")


async def test_a_scope_with_open_messages_or_dead_letters_cannot_be_deleted(room: Room) -> None:
    await room.create_scope("office")
    await room.create_queue("office/jobs")
    receipt = await room.publish("office/jobs", 1)
    async with refused(room, NotEmpty, "office"):
        await room.delete_scope("office")
    await room.kill(receipt.id, "dead")
    async with refused(room, NotEmpty, "office"):
        await room.delete_scope("office")
    await room.discard(receipt.id)
    await room.delete_scope("office")
    assert [scope.slug for scope in await room.scopes()] == ["default"]
    assert (await room.get(receipt.id)).scope == "office"
    async with refused(room, ScopeNotFound, "office"):
        await room.create_queue("office/jobs")


async def test_a_deleted_scope_made_anew_knows_nothing_of_the_old_one(room: Room) -> None:
    for _ in range(2):
        await room.create_scope("office")
        await room.create_queue("office/jobs")
        await room.publish("office/jobs", 1)
        await room.complete(await one(room, "office/jobs"))
        assert await counts(room, "office/jobs") == {"completed": 1}
        assert len(await room.queues("office")) == len(SYSTEM_QUEUES) + 1
        assert len((await room.messages(scope="office")).messages) == 1
        await room.delete_scope("office")
    async with refused(room, ScopeNotFound, "office"):
        await room.queues("office")


async def test_a_deleted_scope_cannot_be_reached_under_any_name(room: Room) -> None:
    scope = await room.create_scope("office")
    await room.delete_scope("office")
    async with refused(room, ScopeNotFound):
        await room.scope(f"office#{scope.id}")
    async with refused(room, ScopeNotFound):
        await room.set_scope_state(f"office#{scope.id}", "active")
    async with refused(room, ScopeNotFound):
        await room.create_queue(f"office#{scope.id}/jobs")


async def test_every_change_of_a_place_is_one_event(room: Room) -> None:
    head = (await room.head()).seq
    await room.create_scope("office")
    await room.create_queue("office/jobs")
    await room.update_queue("office/jobs", max_retries=1)
    await room.set_queue_state("office/jobs", "paused")
    await room.set_scope_state("office", "draining")
    await room.delete_queue("office/jobs")
    await room.delete_scope("office")
    assert [event.type for event in events(room, head)] == [
        "scope.created",
        *["queue.created"] * 6,
        "queue.updated",
        "queue.state",
        "scope.state",
        *["queue.deleted"] * 6,
        "scope.deleted",
    ]
