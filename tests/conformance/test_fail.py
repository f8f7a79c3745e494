"""Fail: tried again after a growing pause while attempts are left, then a dead letter with the reason."""

import math
from typing import Any

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

from postroom import Room, State
from postroom.clock import SECOND, ManualClock
from postroom.errors import InvalidField


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs", max_retries=3, backoff_base_s=10, backoff_cap_s=15)
    return room


async def test_a_failed_message_waits_and_comes_back_with_its_reason(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", 1)
    await jobs.fail(await one(jobs, "jobs"), "no route to host", kind="network")
    waiting = await jobs.get(receipt.id)
    assert waiting.state is State.DELAYED
    assert (waiting.failure_reason, waiting.failure_kind) == ("no route to host", "network")
    assert waiting.visible_at is not None
    assert waiting.attempts == 1
    assert waiting.claimed_by is None
    assert await jobs.claim("jobs") == []
    clock.set(waiting.visible_at)
    again = await one(jobs, "jobs")
    assert (again.attempts, again.failure_reason) == (2, "no route to host")
    assert events_of(jobs, receipt.id) == ["published", "claimed", "failed", "ready", "claimed"]


async def test_the_pause_doubles_up_to_its_cap_give_or_take_a_fifth(jobs: Room, clock: ManualClock) -> None:
    await jobs.update_queue("jobs", max_retries=10)
    receipt = await jobs.publish("jobs", 1)
    for wanted in (10, 15, 15, 15):
        await jobs.fail(await one(jobs, "jobs"), "again")
        visible_at = (await jobs.get(receipt.id)).visible_at or 0
        assert 0.8 * wanted <= (visible_at - clock.now()) / SECOND <= 1.2 * wanted
        clock.set(visible_at)


async def test_failures_of_one_moment_do_not_come_back_together(jobs: Room) -> None:
    await jobs.publish_many("jobs", range(20))
    for message in await jobs.claim("jobs", limit=None):
        await jobs.fail(message, "all at once")
    waiting = (await jobs.messages(queue="jobs", state="delayed")).messages
    assert len({message.visible_at for message in waiting}) > 10


async def test_with_no_attempts_left_it_becomes_a_dead_letter(jobs: Room, clock: ManualClock) -> None:
    receipt = await jobs.publish("jobs", {"n": 1}, labels={"a": 1}, correlation_id="talk")
    for attempt in (1, 2, 3):
        message = await one(jobs, "jobs")
        assert message.attempts == attempt
        await jobs.fail(message, f"failure {attempt}", kind="bad")
        clock.advance(20)
    dead = await jobs.get(receipt.id)
    assert dead.state is State.DEAD
    assert (dead.scope, dead.queue, dead.origin_queue) == ("default", "_dead_letter", "jobs")
    assert (dead.attempts, dead.failure_reason, dead.failure_kind) == (3, "failure 3", "bad")
    assert (dead.body, dead.labels, dead.correlation_id) == ({"n": 1}, {"a": 1}, "talk")
    assert dead.finished_at is not None
    assert await counts(jobs, "jobs") == {}
    assert await counts(jobs, "_dead_letter") == {"dead": 1}
    assert events(jobs)[-1].type == "message.dead_lettered"


@pytest.mark.parametrize("max_retries", [0, 1])
async def test_zero_and_one_retries_both_mean_one_delivery(room: Room, max_retries: int) -> None:
    await room.create_queue("jobs", max_retries=max_retries)
    receipt = await room.publish("jobs", 1)
    await room.fail(await one(room, "jobs"), "once")
    assert await state_of(room, receipt.id) is State.DEAD


async def test_what_must_not_be_retried_is_dead_at_once(jobs: Room) -> None:
    receipt = await jobs.publish("jobs", 1)
    await jobs.fail(await one(jobs, "jobs"), "bad credentials", retry=False)
    assert await state_of(jobs, receipt.id) is State.DEAD
    assert events_of(jobs, receipt.id) == ["published", "claimed", "dead_lettered"]


async def test_a_dead_letter_cannot_be_claimed_from_the_dead_letters(jobs: Room) -> None:
    await jobs.publish("jobs", 1)
    await jobs.fail(await one(jobs, "jobs"), "never", retry=False)
    assert await jobs.claim("_dead_letter") == []
    assert await jobs.claim("jobs") == []


async def test_the_pause_can_be_chosen(jobs: Room, clock: ManualClock) -> None:
    await jobs.publish("jobs", 1)
    await jobs.fail(await one(jobs, "jobs"), "later", delay=100)
    clock.advance(99.9)
    assert await jobs.claim("jobs") == []
    clock.advance(0.1)
    assert (await one(jobs, "jobs")).attempts == 2


async def test_without_a_pause_it_is_pending_at_once_in_its_old_place(jobs: Room) -> None:
    receipt, _ = await jobs.publish_many("jobs", ["first", "second"])
    await jobs.fail(await one(jobs, "jobs"), "now", delay=0)
    assert await state_of(jobs, receipt.id) is State.PENDING
    assert await bodies(jobs, "jobs") == ["first", "second"]


async def test_a_pause_of_zero_by_setting_is_pending_at_once(room: Room) -> None:
    await room.create_queue("jobs", backoff_base_s=0)
    await room.publish("jobs", 1)
    await room.fail(await one(room, "jobs"), "now")
    assert (await one(room, "jobs")).attempts == 2


async def test_a_reason_is_never_refused_only_cut(jobs: Room) -> None:
    reasons: list[Any] = ["", LONE_SURROGATE, "x" * 100_000, ValueError("an exception"), None, "Zoë \x00 ☂"]
    receipts = await jobs.publish_many("jobs", reasons[:0] + [None] * len(reasons))
    for message, reason in zip(await jobs.claim("jobs", limit=None), reasons, strict=True):
        await jobs.fail(message, reason)
    kept = [(await jobs.get(receipt.id)).failure_reason or "" for receipt in receipts]
    assert len(kept[2]) == 8192
    assert kept[3] == "an exception"
    assert kept[5] == "Zoë \x00 ☂"
    assert all(len(event.data) < 1000 for event in events(jobs)), "the ledger stays small"


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, 1e12, "soon"], ids=repr)
async def test_a_pause_out_of_bounds_is_refused_and_the_claim_stays(jobs: Room, delay: Any) -> None:
    await jobs.publish("jobs", 1)
    message = await one(jobs, "jobs")
    async with refused(jobs, InvalidField, "delay"):
        await jobs.fail(message, "no", delay=delay)
    await jobs.complete(message)


async def test_a_kind_that_is_no_valid_text_is_refused_and_the_claim_stays(jobs: Room) -> None:
    await jobs.publish("jobs", 1)
    message = await one(jobs, "jobs")
    wrong: list[Any] = [5, "k" * 513, LONE_SURROGATE]
    for kind in wrong:
        async with refused(jobs, InvalidField, "kind"):
            await jobs.fail(message, "no", kind=kind)
    await jobs.complete(message)
