"""Workers: what a handler returns completes its message, what it raises fails it; its lease is kept alive."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.conformance.helpers import counts, until_waiting, waiting_claims
from tests.conftest import OpenRoom

from postroom import Limits, Message, Reject, Retry, Room, Snooze, State
from postroom.clock import ManualClock
from postroom.errors import InvalidField
from postroom.kernel.states import TERMINAL

SOON_S = 60.0


@pytest.fixture
async def jobs(live_room: Room) -> Room:
    await live_room.create_queue("jobs", max_retries=3, backoff_base_s=60)
    return live_room


@contextlib.asynccontextmanager
async def working(room: Room, grace: float = 60.0) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(room.run_workers(grace=grace))
    await asyncio.sleep(0)
    try:
        yield task
    finally:
        room.stop_workers()
        await asyncio.wait_for(task, SOON_S + grace)


async def until(room: Room, message_id: str, wanted: Callable[[Message], Any]) -> Message:
    """Wait for the message to become so; real time passes, as little as possible."""
    async with asyncio.timeout(SOON_S):
        while True:
            message = await room.get(message_id)
            if wanted(message):
                return message
            await asyncio.sleep(0.01)


def settled(message: Message) -> bool:
    return message.state in TERMINAL or message.state is State.DELAYED


async def test_what_a_handler_returns_completes_its_message(jobs: Room) -> None:
    @jobs.worker("jobs")
    async def handle(message: Message) -> Any:
        return {"doubled": message.body * 2}

    async with working(jobs):
        receipt = await jobs.publish("jobs", 21)
        done = await until(jobs, receipt.id, settled)
    assert (done.state, done.result, done.attempts) == (State.COMPLETED, {"doubled": 42}, 1)


async def test_a_handler_may_be_a_plain_function_and_runs_beside_the_loop(jobs: Room) -> None:
    main = threading.get_ident()

    @jobs.worker("jobs")
    def handle(message: Message) -> Any:
        return threading.get_ident() != main

    async with working(jobs):
        receipt = await jobs.publish("jobs", 1)
        assert (await until(jobs, receipt.id, settled)).result is True


async def test_a_handler_may_be_anything_that_gives_an_awaitable(jobs: Room) -> None:
    async def really(message: Message) -> Any:
        return "awaited"

    @jobs.worker("jobs")
    def handle(message: Message) -> Any:
        return really(message)

    async with working(jobs):
        receipt = await jobs.publish("jobs", 1)
        done = await until(jobs, receipt.id, settled)
    assert (done.state, done.result) == (State.COMPLETED, "awaited")


async def test_what_a_handler_raises_fails_its_message(jobs: Room) -> None:
    @jobs.worker("jobs")
    async def handle(message: Message) -> None:
        raise ValueError("no such thing")

    async with working(jobs):
        receipt = await jobs.publish("jobs", 1)
        failed = await until(jobs, receipt.id, settled)
    assert (failed.state, failed.attempts) == (State.DELAYED, 1)
    assert (failed.failure_reason, failed.failure_kind) == ("ValueError: no such thing", "ValueError")


DECISIONS: dict[str, tuple[Callable[[], Exception], dict[str, Any]]] = {
    "retry": (lambda: Retry("busy", delay=60), {"state": State.DELAYED, "attempts": 1}),
    "retry by backoff": (Retry, {"state": State.DELAYED, "attempts": 1, "failure_reason": "retry"}),
    "snooze": (
        lambda: Snooze(60, "limit"),
        {"state": State.DELAYED, "attempts": 0, "failure_reason": "limit"},
    ),
    "reject": (
        lambda: Reject("bad input"),
        {"state": State.DEAD, "failure_kind": "rejected", "failure_reason": "bad input"},
    ),
    "reject without a word": (Reject, {"state": State.DEAD, "failure_reason": "rejected"}),
}


@pytest.mark.parametrize("decision", DECISIONS)
async def test_a_handler_may_decide_how_its_message_goes_on(jobs: Room, decision: str) -> None:
    make, wanted = DECISIONS[decision]

    @jobs.worker("jobs")
    async def handle(message: Message) -> None:
        raise make()

    async with working(jobs):
        receipt = await jobs.publish("jobs", 1)
        message = await until(jobs, receipt.id, settled)
    assert {name: getattr(message, name) for name in wanted} == wanted


@pytest.mark.parametrize("result", [object(), float("nan"), "x" * 100], ids=["object", "nan", "too large"])
async def test_a_result_that_cannot_be_kept_is_a_dead_letter_at_once(
    open_room: OpenRoom, result: Any
) -> None:
    async with open_room(clock=None, housekeeping=True, limits=Limits(body_bytes=50)) as room:
        await room.create_queue("jobs")

        @room.worker("jobs")
        async def handle(message: Message) -> Any:
            return result

        async with working(room):
            receipt = await room.publish("jobs", 1)
            message = await until(room, receipt.id, settled)
    assert (message.state, message.failure_kind, message.attempts) == (State.DEAD, "result", 1)


@pytest.mark.parametrize(
    "decision",
    [
        Snooze(float("nan")),
        Snooze(1, "half a \ud83d smile"),
        Retry(delay=-1),
        Retry("half a \ud83d smile"),
        ValueError("half a \ud83d smile"),
    ],
    ids=["snooze nan", "snooze surrogate", "retry negative", "retry surrogate", "raise surrogate"],
)
async def test_no_decision_of_a_handler_stops_the_worker(
    jobs: Room, decision: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    # What is logged of half a character cannot be sent from one process of the tests to another.
    caplog.set_level(logging.CRITICAL, "postroom.workers")

    @jobs.worker("jobs")
    async def handle(message: Message) -> Any:
        if message.body == "bad":
            raise decision
        return "fine"

    async with working(jobs):
        bad = await jobs.publish("jobs", "bad")
        good = await jobs.publish("jobs", "good")
        assert (await until(jobs, good.id, settled)).state is State.COMPLETED
        assert (await jobs.get(bad.id)).state is not State.CLAIMED, "what was decided is not left hanging"


LEASE_S = 0.3


async def outlive_the_lease(room: Room, clock: ManualClock, message_id: str) -> None:
    """Let most of a lease pass, again and again; no more time passes before the claim is extended."""
    for _ in range(4):
        held = (await room.get(message_id)).claim_expires_at or 0
        clock.advance(LEASE_S * 0.9)
        await until(room, message_id, lambda message, held=held: (message.claim_expires_at or 0) > held)


async def test_a_long_handler_keeps_its_claim_by_heartbeat(open_room: OpenRoom, clock: ManualClock) -> None:
    calls: list[int] = []
    async with open_room(housekeeping=True) as room:
        await room.create_queue("jobs")

        @room.worker("jobs", lease=LEASE_S, concurrency=2)
        async def handle(message: Message) -> None:
            calls.append(message.attempts)
            await outlive_the_lease(room, clock, message.id)

        async with working(room):
            receipt = await room.publish("jobs", 1)
            done = await until(room, receipt.id, settled)
    assert (done.state, done.attempts, calls) == (State.COMPLETED, 1, [1])


async def test_a_long_plain_function_keeps_its_claim_by_heartbeat(
    open_room: OpenRoom, clock: ManualClock
) -> None:
    calls: list[int] = []
    started, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    async with open_room(housekeeping=True) as room:
        await room.create_queue("jobs")

        @room.worker("jobs", lease=LEASE_S, concurrency=2)
        def handle(message: Message) -> None:
            calls.append(message.attempts)
            loop.call_soon_threadsafe(started.set)
            go_on.wait(SOON_S)

        async with working(room):
            receipt = await room.publish("jobs", 1)
            await asyncio.wait_for(started.wait(), SOON_S)
            await outlive_the_lease(room, clock, receipt.id)
            go_on.set()
            done = await until(room, receipt.id, settled)
    assert (done.state, done.attempts, calls) == (State.COMPLETED, 1, [1])


@pytest.mark.parametrize("how", ["cancel", "kill"])
async def test_a_handler_whose_claim_is_lost_is_cancelled_and_the_worker_goes_on(
    jobs: Room, how: str
) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    @jobs.worker("jobs", lease=1.5)
    async def handle(message: Message) -> Any:
        if message.body == "next":
            return "done"
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with working(jobs):
        receipt = await jobs.publish("jobs", "first")
        await asyncio.wait_for(started.wait(), SOON_S)
        await (jobs.cancel(receipt.id) if how == "cancel" else jobs.kill(receipt.id, "guard"))
        await asyncio.wait_for(ended.wait(), SOON_S)
        following = await jobs.publish("jobs", "next")
        assert (await until(jobs, following.id, settled)).result == "done"
    assert (await jobs.get(receipt.id)).state is (State.CANCELLED if how == "cancel" else State.DEAD)


async def test_a_handler_that_settled_its_message_itself_is_not_settled_again(jobs: Room) -> None:
    @jobs.worker("jobs")
    async def handle(message: Message) -> Any:
        await jobs.fail(message, "by hand", retry=False)
        return "ignored"

    async with working(jobs):
        receipt = await jobs.publish("jobs", 1)
        message = await until(jobs, receipt.id, settled)
    assert (message.state, message.failure_reason, message.result) == (State.DEAD, "by hand", None)


async def test_a_graceful_stop_lets_running_handlers_finish(jobs: Room) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    @jobs.worker("jobs")
    async def handle(message: Message) -> Any:
        started.set()
        await go_on.wait()
        return "finished"

    receipt, waiting = await jobs.publish_many("jobs", ["first", "second"])
    async with working(jobs) as task:
        await asyncio.wait_for(started.wait(), SOON_S)
        jobs.stop_workers()
        async with asyncio.timeout(SOON_S):
            while waiting_claims(jobs):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert not task.done()
        go_on.set()
        await asyncio.wait_for(asyncio.shield(task), SOON_S)
    assert (await jobs.get(receipt.id)).result == "finished"
    assert (await jobs.get(waiting.id)).state is State.PENDING


@pytest.mark.parametrize("how", ["cancellation", "grace is over"])
async def test_what_is_cut_short_is_given_back_without_counting(jobs: Room, how: str) -> None:
    started = asyncio.Event()

    @jobs.worker("jobs")
    async def handle(message: Message) -> None:
        started.set()
        await asyncio.sleep(60)

    receipt = await jobs.publish("jobs", 1)
    task = asyncio.create_task(jobs.run_workers(grace=0.05))
    await asyncio.wait_for(started.wait(), SOON_S)
    if how == "cancellation":
        task.cancel()
    else:
        jobs.stop_workers()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait_for(task, SOON_S)
    message = await jobs.get(receipt.id)
    assert (message.state, message.attempts) == (State.PENDING, 0)


async def test_stopping_idle_workers_takes_nothing_with_it(jobs: Room) -> None:
    @jobs.worker("jobs", concurrency=5)
    async def handle(message: Message) -> None: ...

    async with working(jobs):
        await until_waiting(jobs)
    assert not waiting_claims(jobs)
    receipt = await jobs.publish("jobs", 1)
    # A claim that was on its way to a server when it was cancelled is given back as soon as it is answered.
    async with asyncio.timeout(SOON_S):
        while (message := await jobs.get(receipt.id)).state is not State.PENDING:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert message.attempts == 0


async def test_no_more_run_at_once_than_was_asked_for(jobs: Room) -> None:
    running, most = 0, 0
    full = asyncio.Event()

    @jobs.worker("jobs", concurrency=3)
    async def handle(message: Message) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await asyncio.wait_for(full.wait(), SOON_S)
        await asyncio.sleep(0.02)
        running -= 1

    receipts = await jobs.publish_many("jobs", range(12))
    async with working(jobs):
        for receipt in receipts:
            await until(jobs, receipt.id, settled)
    assert most == 3
    assert await counts(jobs, "jobs") == {"completed": 12}


async def test_several_queues_and_a_subscription_are_served_together(jobs: Room) -> None:
    await jobs.create_queue("news", consumer_mode="broadcast")
    await jobs.subscribe("news", "ann")
    seen: list[tuple[str, str | None]] = []

    @jobs.worker("jobs", name="worker-1")
    async def handle(message: Message) -> None:
        seen.append((message.queue, message.claimed_by))

    @jobs.worker("news", subscription="ann")
    async def read(message: Message) -> None:
        seen.append((message.queue, message.subscription))

    async with working(jobs):
        for receipt in (await jobs.publish("jobs", 1), await jobs.publish("news", 1)):
            await until(jobs, receipt.id, settled)
    assert sorted(seen, key=str) == [("jobs", "worker-1"), ("news", "ann")]


async def test_a_worker_of_a_queue_that_is_not_there_waits_for_it(
    jobs: Room, caplog: pytest.LogCaptureFixture
) -> None:
    @jobs.worker("later")
    async def handle(message: Message) -> str:
        return "found"

    async with working(jobs):
        async with asyncio.timeout(SOON_S):
            while "worker of later pauses" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        await jobs.create_queue("later")
        receipt = await jobs.publish("later", 1)
        assert (await until(jobs, receipt.id, settled)).result == "found"


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
async def test_closing_the_room_ends_its_workers(jobs: Room, busy: bool) -> None:
    started = asyncio.Event()

    @jobs.worker("jobs", concurrency=2)
    async def handle(message: Message) -> None:
        started.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(jobs.run_workers(grace=0.05))
    await until_waiting(jobs)
    if busy:
        await jobs.publish("jobs", 1)
        await asyncio.wait_for(started.wait(), SOON_S)
    await jobs.close()
    await asyncio.wait_for(task, SOON_S)


@pytest.mark.parametrize("concurrency", [0, -1, 1.5])
async def test_a_worker_out_of_bounds_is_refused(room: Room, concurrency: Any) -> None:
    with pytest.raises(InvalidField, match="concurrency"):
        room.worker("jobs", concurrency=concurrency)(print)


async def test_a_stop_before_the_first_run_is_not_lost(jobs: Room) -> None:
    handled: list[Any] = []
    heard = asyncio.Event()

    async def handle(message: Message) -> None:
        handled.append(message.body)
        heard.set()

    jobs.worker("jobs")(handle)
    await jobs.publish("jobs", 1)
    jobs.stop_workers()
    async with asyncio.timeout(60):
        await jobs.run_workers()
    assert handled == []
    jobs.stop_workers()  # nothing runs: it is not kept for the next time
    running = asyncio.create_task(jobs.run_workers())
    async with asyncio.timeout(60):
        await heard.wait()
    jobs.stop_workers()
    await running
