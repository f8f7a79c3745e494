"""The capabilities of `scaiqueue.md`, section 27, row by row, at the level of the Python interface.

Each test is named by its row. Details are tried in the file of the verb; here each row is shown to be there.
"""

import asyncio

import pytest
from tests.conformance.helpers import bodies, counts, dead_letter, events, events_of, one, refused, state_of

from postroom import NewMessage, Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import (
    ClaimLost,
    IdempotencyConflict,
    NotEmpty,
    QueueClosed,
    QueueFull,
    SchemaViolation,
    ScopeClosed,
    SlugTaken,
)
from postroom.kernel.housekeeping import housekeepers


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", visibility_timeout_s=30, max_retries=3, backoff_base_s=10)
    return room


async def test_row_01_create_list_read_scope(room: Room) -> None:
    made = await room.create_scope("orders", display_name="Orders", description="All orders")
    assert await room.scope("orders") == made
    assert made in await room.scopes()
    assert (made.slug, made.display_name, made.state) == ("orders", "Orders", "active")


async def test_row_02_five_system_queues_are_seeded_with_a_scope(room: Room) -> None:
    await room.create_scope("orders")
    seeded = {queue.slug for queue in await room.queues("orders") if queue.system}
    assert seeded == {"_dead_letter", "_events", "_audit", "_integrity", "_corrections"}


async def test_row_03_scope_pause_resume_archive_unarchive_delete(room: Room) -> None:
    await room.create_scope("orders")
    await room.create_queue("orders/new")
    await room.publish("orders/new", 1)
    for state in ("paused", "archived"):
        assert (await room.set_scope_state("orders", state)).state == state
        async with refused(room, ScopeClosed, "orders", state):
            await room.publish("orders/new", 2)
        assert await room.claim("orders/new") == [], "an empty list, not an error"
        assert (await room.set_scope_state("orders", "active")).state == "active"
    async with refused(room, NotEmpty):
        await room.delete_scope("orders")
    await room.complete(await one(room, "orders/new"))
    await room.delete_scope("orders")
    assert "orders" not in {scope.slug for scope in await room.scopes()}


async def test_row_04_create_list_read_queue(room: Room) -> None:
    made = await room.create_queue("jobs", ordering="deadline", description="What to do")
    assert await room.queue("jobs") == made
    assert made in await room.queues("default")
    assert (made.settings.ordering, made.settings.description) == ("deadline", "What to do")


async def test_row_05_queue_pause_resume_drain_archive_delete_update(jobs: Room) -> None:
    await jobs.publish("jobs", 1)
    for state, handed_out in (("paused", 0), ("draining", 1), ("archived", 0)):
        assert (await jobs.set_queue_state("jobs", state)).state == state
        async with refused(jobs, QueueClosed, "jobs", state):
            await jobs.publish("jobs", 2)
        claimed = await jobs.claim("jobs")
        assert len(claimed) == handed_out
        for message in claimed:
            await jobs.release(message)
        await jobs.set_queue_state("jobs", "active")
    assert (await jobs.update_queue("jobs", max_depth=7)).settings.max_depth == 7
    await jobs.complete(await one(jobs, "jobs"))
    await jobs.delete_queue("jobs")


async def test_row_06_a_duplicate_slug_is_a_conflict(room: Room) -> None:
    await room.create_scope("orders")
    await room.create_queue("orders/new")
    async with refused(room, SlugTaken) as caught:
        await room.create_scope("orders")
    assert (caught.value.http_status, caught.value.code) == (409, "SLUG_CONFLICT")
    async with refused(room, SlugTaken):
        await room.create_queue("orders/new")


async def test_row_07_publish_checks_states_then_writes_row_and_place(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", {"n": 1})
    assert (receipt.created, receipt.state) == (True, State.PENDING)
    assert [message.id for message in await jobs.peek("jobs")] == [receipt.id]
    assert await counts(jobs, "jobs") == {"pending": 1}
    assert events_of(jobs, receipt.id) == ["published"]


async def test_row_08_all_message_fields_with_defaults(jobs: Room) -> None:
    message = await jobs.get((await jobs.publish("jobs")).id)
    assert (message.scope, message.queue, message.tenant) == ("default", "jobs", "default")
    assert (message.source_type, message.content_type, message.message_type) == (
        "user",
        "application/json",
        "message",
    )
    assert (message.priority_tier, message.priority_score, message.labels) == ("normal", 500, {})
    assert (message.state, message.attempts, message.hop) == (State.PENDING, 0, 0)
    unset = "body ttl_s deadline delay_until visible_at idempotency_key hitl_spec causation_id parent_id "
    unset += "claimed_by claimed_at claim_expires_at failure_reason result finished_at"
    assert {name: getattr(message, name) for name in unset.split()} == dict.fromkeys(unset.split())


async def test_row_09_fifo_ordering(jobs: Room, clock: ManualClock) -> None:
    for n in range(5):
        await jobs.publish("jobs", n, priority="critical" if n % 2 else "low")
        clock.advance(0.001)
    assert await bodies(jobs, "jobs") == [0, 1, 2, 3, 4]


async def test_row_10_priority_ordering_with_age_tie_break(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", ordering="priority")
    for name, tier, score in (("-3000", "normal", 1000), ("-3250", "high", 250), ("-4000", "critical", 0)):
        await room.publish("jobs", name, priority=tier, score=score)
        clock.advance(1)
    await room.publish("jobs", "-3000 younger", priority="high", score=0)
    assert await bodies(room, "jobs") == ["-4000", "-3250", "-3000", "-3000 younger"]


async def test_row_11_deadline_ordering(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", ordering="deadline")
    await room.publish("jobs", "none")
    for seconds in (30, 10, 20):
        await room.publish("jobs", seconds, deadline=clock.now() + seconds * SECOND)
    assert await bodies(room, "jobs") == [10, 20, 30, "none"]


async def test_row_12_competing_consumers_and_atomic_claim(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(30))
    shares = await asyncio.gather(*(jobs.claim("jobs", limit=4) for _ in range(10)))
    assert sorted(message.body for share in shares for message in share) == list(range(30))


async def test_row_13_broadcast_to_every_subscriber(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    for name in ("ann", "bob"):
        await room.subscribe("news", name)
    original = await room.publish("news", 1)
    await room.complete(await one(room, "news", subscription="ann"))
    assert await state_of(room, original.id) is State.PENDING
    await room.complete(await one(room, "news", subscription="bob"))
    assert await state_of(room, original.id) is State.COMPLETED


async def test_row_14_claim_in_batches_and_an_empty_list_when_nothing(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(3), labels={"a": 1})
    batch = await jobs.claim("jobs", limit=2)
    assert [(message.body, message.labels, message.attempts) for message in batch] == [
        (0, {"a": 1}, 1),
        (1, {"a": 1}, 1),
    ]
    assert len(await jobs.claim("jobs", limit=2)) == 1
    assert await jobs.claim("jobs", limit=2) == []


async def test_row_15_claim_lock_with_visibility_timeout_and_attempts_raised(
    jobs: Room, clock: ManualClock
) -> None:
    await jobs.publish("jobs", 1)
    message = await one(jobs, "jobs", worker="w1")
    assert (message.attempts, message.claimed_by) == (1, "w1")
    assert message.claim_expires_at == clock.now() + 30 * SECOND
    assert await jobs.claim("jobs") == []


async def test_row_16_complete_with_outcome_and_event(jobs: Room) -> None:
    await jobs.publish("jobs", 1, correlation_id="talk")
    message = await one(jobs, "jobs")
    await jobs.complete(message, {"decision": "approve"})
    assert (await jobs.get(message.id)).result == {"decision": "approve"}
    event = events(jobs)[-1]
    assert (event.type, event.correlation_id) == ("message.completed", "talk")


async def test_row_17_fail_with_reason_retries_while_attempts_are_left(
    jobs: Room, clock: ManualClock
) -> None:
    receipt = await jobs.publish("jobs", 1)
    seen = []
    while messages := await jobs.claim("jobs"):
        seen.append(messages[0].attempts)
        await jobs.fail(messages[0], f"failure {seen[-1]}")
        clock.advance(100)
    assert seen == [1, 2, 3]
    message = await jobs.get(receipt.id)
    assert (message.state, message.failure_reason) == (State.DEAD, "failure 3")


async def test_row_18_release(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    await jobs.release(await one(jobs, "jobs"))
    assert await state_of(jobs, receipt.id) is State.PENDING
    assert await counts(jobs, "jobs") == {"pending": 1}


async def test_row_19_extend(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", 1)
    message = await one(jobs, "jobs")
    clock.advance(29)
    await jobs.extend(message, 60)
    clock.advance(59)
    assert await jobs.claim("jobs") == []
    await jobs.complete(message)


async def test_row_20_retry_backoff(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1)
    for pause in (10, 20):
        await jobs.fail(await one(jobs, "jobs"), "again")
        clock.advance(0.79 * pause)
        assert await jobs.claim("jobs") == []
        visible_at = (await jobs.get(receipt.id)).visible_at or 0
        clock.set(visible_at)


async def test_row_21_dead_letter_to_the_scopes_own(room: Room) -> None:
    for scope in ("one", "two"):
        await room.create_scope(scope)
        await room.create_queue(f"{scope}/jobs")
    dead = await dead_letter(room, "two/jobs", labels={"a": 1}, correlation_id="talk")
    message = await room.get(dead)
    assert (message.scope, message.queue, message.origin_queue) == ("two", "_dead_letter", "jobs")
    assert (message.labels, message.correlation_id, message.attempts) == ({"a": 1}, "talk", 1)
    assert await counts(room, "one/_dead_letter") == {}


async def test_row_22_reclaim_after_crash(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1)
    crashed = await one(jobs, "jobs")
    clock.advance(30)
    await jobs.housekeep(housekeepers.VISIBILITY)
    assert await state_of(jobs, receipt.id) is State.PENDING
    assert (await one(jobs, "jobs")).attempts == 2
    async with refused(jobs, ClaimLost):
        await jobs.complete(crashed)


async def test_row_23_delayed_visibility(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1, delay_until=clock.now() + 10 * SECOND)
    message = await jobs.get(receipt.id)
    assert message.delay_until == message.visible_at == clock.now() + 10 * SECOND
    assert await jobs.claim("jobs") == []
    clock.advance(10)
    assert await bodies(jobs, "jobs") == [1]


async def test_row_24_ttl_and_deadline_expiry(jobs: Room, clock: ManualClock) -> None:
    by_ttl = await jobs.publish("jobs", 1, ttl=10)
    by_deadline = await jobs.publish("jobs", 1, deadline=clock.now() + 10 * SECOND)
    clock.advance(10)
    assert await jobs.housekeep(housekeepers.EXPIRY) == 2
    for receipt in (by_ttl, by_deadline):
        assert await state_of(jobs, receipt.id) is State.EXPIRED


async def test_row_25_idempotent_publish_and_conflict(jobs: Room) -> None:
    first = await jobs.publish("jobs", {"a": 1}, key="k")
    again = await jobs.publish("jobs", {"a": 1}, key="k")
    assert (again.id, again.created) == (first.id, False)
    async with refused(jobs, IdempotencyConflict, "k"):
        await jobs.publish("jobs", {"a": 2}, key="k")


async def test_row_26_max_depth_overflow_policy_and_queue_full(room: Room) -> None:
    await room.create_queue("jobs", max_depth=1)
    await room.publish("jobs", 1)
    async with refused(room, QueueFull) as caught:
        await room.publish("jobs", 2)
    assert caught.value.code == "QUEUE_FULL"
    for policy in ("drop_oldest", "dead_letter"):
        await room.update_queue("jobs", overflow_policy=policy)
        await room.publish("jobs", policy)
        assert await counts(room, "jobs") == {"pending": 1}
    assert await bodies(room, "jobs") == ["drop_oldest"]


async def test_row_27_depth_counters(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(3))
    message = await one(jobs, "jobs")
    assert await counts(jobs, "jobs") == {"pending": 2, "claimed": 1}
    await jobs.complete(message)
    assert await counts(jobs, "jobs") == {"pending": 2, "completed": 1}


async def test_row_32_children_have_parent_and_causation_and_carry_the_correlation(jobs: Room) -> None:
    await jobs.publish("jobs", "parent", correlation_id="talk")
    parent = await one(jobs, "jobs")
    child = await jobs.get((await jobs.publish("jobs", "child", caused_by=parent, parent_id=parent.id)).id)
    assert (child.parent_id, child.causation_id, child.correlation_id) == (parent.id, parent.id, "talk")


async def test_row_34_schemas_by_name_and_version_and_body_validation(room: Room) -> None:
    await room.register_schema("default", "order", {"type": "object", "required": ["n"]})
    await room.register_schema("default", "order", {"type": "object", "required": ["m"]})
    await room.create_queue("newest", schema="order")
    await room.create_queue("pinned", schema="order@1")
    await room.publish("newest", {"m": 1})
    await room.publish("pinned", {"n": 1})
    async with refused(room, SchemaViolation, "'m'"):
        await room.publish("newest", {"n": 1})


async def test_row_40_subscriptions_and_dedup_check(room: Room) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    made = await room.subscribe("news", "ann")
    assert await room.subscriptions("news") == [made]
    assert [await room.check_seen("news", "ann", "msg-1") for _ in range(3)] == [False, True, True]


async def test_row_48_messages_by_correlation_id(room: Room, clock: ManualClock) -> None:
    for name in ("a", "b"):
        await room.create_queue(name)
    first = await room.publish("a", 1, correlation_id="talk")
    await room.complete(await one(room, "a"))
    clock.advance(3601)
    await room.housekeep(housekeepers.ARCHIVER)
    second = await room.publish("b", 2, correlation_id="talk")
    await room.publish("b", 3, correlation_id="other")
    page = await room.messages(scope="default", correlation_id="talk")
    assert [message.id for message in page.messages] == [first.id, second.id]


async def test_row_50_visibility_enforcer_every_second(jobs: Room, clock: ManualClock) -> None:
    assert _keeper(housekeepers.VISIBILITY).every_s == 1
    await jobs.publish("jobs", 1)
    await one(jobs, "jobs")
    clock.advance(30)
    assert await jobs.housekeep("visibility_timeout_enforcer") == 1
    assert await counts(jobs, "jobs") == {"pending": 1}


async def test_row_51_expiry_enforcer_every_minute(jobs: Room, clock: ManualClock) -> None:
    assert _keeper(housekeepers.EXPIRY).every_s == 60
    await jobs.publish("jobs", 1, ttl=1)
    clock.advance(1)
    assert await jobs.housekeep("expiry_enforcer") == 1
    assert await counts(jobs, "jobs") == {"expired": 1}


async def test_row_52_archiver_every_five_minutes_after_an_hour(jobs: Room, clock: ManualClock) -> None:
    assert _keeper(housekeepers.ARCHIVER).every_s == 300
    receipt = await jobs.publish("jobs", 1)
    await jobs.complete(await one(jobs, "jobs"))
    clock.advance(3599)
    assert await jobs.housekeep("message_archiver") == 0
    clock.advance(1)
    assert await jobs.housekeep("message_archiver") == 1
    assert (await jobs.get(receipt.id)).archived


async def test_row_53_dead_letter_monitor_every_minute(jobs: Room) -> None:
    assert _keeper(housekeepers.MONITOR).every_s == 60
    await dead_letter(jobs, "jobs")
    assert await jobs.housekeep("dead_letter_monitor") == 1
    assert events(jobs)[-1].type == "dead_letters.grew"


async def test_row_54_priority_aging_every_five_minutes(room: Room, clock: ManualClock) -> None:
    assert _keeper(housekeepers.AGING).every_s == 300
    await room.create_queue("jobs", ordering="priority")
    receipt = await room.publish("jobs", 1)
    clock.advance(601)
    assert await room.housekeep("priority_aging_worker") == 1
    assert (await room.get(receipt.id)).priority_score == 550


async def test_row_55_system_agents_are_listed(room: Room) -> None:
    await room.housekeep(housekeepers.EXPIRY)
    listed = {status.name: status for status in await room.housekeepers()}
    assert len(listed) == 8
    assert all(status.work and status.every_s for status in listed.values())
    ran = listed[housekeepers.EXPIRY]
    assert (ran.last_status, ran.runs, ran.items_processed) == ("ok", 1, 0)
    assert ran.last_run_at is not None


def _keeper(name: str) -> housekeepers.Housekeeper:
    return next(keeper for keeper in housekeepers.ROSTER if keeper.name == name)


def test_every_publisher_field_of_the_reference_can_be_said() -> None:
    said = set(NewMessage.__struct_fields__)
    wanted = "body message_type content_type priority_tier priority_score labels deadline delay_until "
    wanted += "idempotency_key correlation_id causation_id parent_id hitl_spec source_type source_id"
    assert set(wanted.split()) <= said
