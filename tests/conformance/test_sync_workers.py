"""Workers in threads keep the same promises as those on an event loop."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.conftest import OpenSync

from postroom import Limits, Message, Reject, Retry, Snooze, State, SyncRoom
from postroom.clock import ManualClock
from postroom.kernel.states import TERMINAL
from postroom.runtime import core, thread_workers

SOON_S = 60.0
LEASE_S = 0.3


@pytest.fixture
def jobs(open_sync: OpenSync) -> Iterator[SyncRoom]:
    with open_sync(clock=None, housekeeping=True) as room:
        room.create_queue("jobs", max_retries=3, backoff_base_s=60)
        yield room


@contextlib.contextmanager
def working(room: SyncRoom, grace: float = 60.0) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=room.run_workers, kwargs={"grace": grace})
    thread.start()
    time.sleep(0.02)
    try:
        yield thread
    finally:
        room.stop_workers()
        thread.join(SOON_S + grace)
        assert not thread.is_alive()


def until(room: SyncRoom, message_id: str, wanted: Callable[[Message], Any]) -> Message:
    end = time.monotonic() + SOON_S
    while not wanted(message := room.get(message_id)):
        assert time.monotonic() < end, f"never came: {message}"
        time.sleep(0.01)
    return message


def settled(message: Message) -> bool:
    return message.state in TERMINAL or message.state is State.DELAYED


def test_what_a_handler_returns_completes_its_message(jobs: SyncRoom) -> None:
    @jobs.worker("jobs")
    def handle(message: Message) -> Any:
        return message.body * 2

    with working(jobs):
        receipt = jobs.publish("jobs", 21)
        done = until(jobs, receipt.id, settled)
    assert (done.state, done.result, done.attempts) == (State.COMPLETED, 42, 1)


DECISIONS: dict[str, tuple[Exception, dict[str, Any]]] = {
    "raise": (ValueError("no"), {"state": State.DELAYED, "attempts": 1, "failure_reason": "ValueError: no"}),
    "retry": (Retry("busy", delay=60), {"state": State.DELAYED, "attempts": 1, "failure_reason": "busy"}),
    "snooze": (Snooze(60, "limit"), {"state": State.DELAYED, "attempts": 0, "failure_reason": "limit"}),
    "reject": (Reject("bad"), {"state": State.DEAD, "failure_kind": "rejected"}),
}


def test_what_a_handler_raises_decides_how_its_message_goes_on(jobs: SyncRoom) -> None:
    @jobs.worker("jobs")
    def handle(message: Message) -> None:
        raise DECISIONS[message.body][0]

    with working(jobs):
        receipts = jobs.publish_many("jobs", DECISIONS)
        for receipt, (_, wanted) in zip(receipts, DECISIONS.values(), strict=True):
            message = until(jobs, receipt.id, settled)
            assert {name: getattr(message, name) for name in wanted} == wanted


def test_a_result_that_cannot_be_kept_is_a_dead_letter_at_once(open_sync: OpenSync) -> None:
    results = [object(), "x" * 100]
    with open_sync(clock=None, limits=Limits(body_bytes=50)) as room:
        room.create_queue("jobs")

        @room.worker("jobs")
        def handle(message: Message) -> Any:
            return results[message.body]

        with working(room):
            for receipt in room.publish_many("jobs", range(2)):
                message = until(room, receipt.id, settled)
                assert (message.state, message.failure_kind) == (State.DEAD, "result")


def test_no_decision_of_a_handler_stops_the_worker(jobs: SyncRoom) -> None:
    bad: list[Exception] = [Snooze(float("nan")), Snooze(1, "half a \ud83d smile"), Retry(delay=-1)]

    @jobs.worker("jobs")
    def handle(message: Message) -> Any:
        if message.body is not None:
            raise bad[message.body]
        return "fine"

    with working(jobs):
        receipts = jobs.publish_many("jobs", [0, 1, 2, None])
        assert until(jobs, receipts[-1].id, settled).state is State.COMPLETED
        for receipt in receipts[:-1]:
            assert jobs.get(receipt.id).state is not State.CLAIMED


def test_a_long_handler_keeps_its_claim_by_heartbeat(open_sync: OpenSync, clock: ManualClock) -> None:
    """Most of a lease passes, again and again; no more time passes before the claim is extended."""
    calls: list[int] = []
    with open_sync(housekeeping=True) as room:
        room.create_queue("jobs")

        @room.worker("jobs", lease=LEASE_S, concurrency=2)
        def handle(message: Message) -> None:
            calls.append(message.attempts)
            for _ in range(4):
                held = room.get(message.id).claim_expires_at or 0
                clock.advance(LEASE_S * 0.9)
                until(room, message.id, lambda now, held=held: (now.claim_expires_at or 0) > held)

        with working(room):
            receipt = room.publish("jobs", 1)
            done = until(room, receipt.id, settled)
    assert (done.state, done.attempts, calls) == (State.COMPLETED, 1, [1])


def test_a_handler_whose_claim_was_lost_settles_nothing_and_the_worker_goes_on(jobs: SyncRoom) -> None:
    started, go_on = threading.Event(), threading.Event()

    @jobs.worker("jobs", lease=1.5)
    def handle(message: Message) -> Any:
        if message.body == "first":
            started.set()
            go_on.wait(SOON_S)
        return "done"

    with working(jobs):
        receipt = jobs.publish("jobs", "first")
        assert started.wait(SOON_S)
        jobs.cancel(receipt.id)
        go_on.set()
        following = jobs.publish("jobs", "next")
        assert until(jobs, following.id, settled).result == "done"
    message = jobs.get(receipt.id)
    assert (message.state, message.result) == (State.CANCELLED, None)


def test_a_graceful_stop_lets_running_handlers_finish(jobs: SyncRoom) -> None:
    started, go_on = threading.Event(), threading.Event()

    @jobs.worker("jobs")
    def handle(message: Message) -> Any:
        started.set()
        go_on.wait(SOON_S)
        return "finished"

    receipt, waiting = jobs.publish_many("jobs", ["first", "second"])
    with working(jobs):
        assert started.wait(SOON_S)
        jobs.stop_workers()
        go_on.set()
    assert jobs.get(receipt.id).result == "finished"
    assert jobs.get(waiting.id).state is State.PENDING


def test_several_threads_never_handle_the_same_message(jobs: SyncRoom) -> None:
    seen: list[Any] = []

    @jobs.worker("jobs", concurrency=4)
    def handle(message: Message) -> None:
        seen.append(message.body)

    receipts = jobs.publish_many("jobs", range(40))
    with working(jobs):
        for receipt in receipts:
            until(jobs, receipt.id, settled)
    assert sorted(seen) == list(range(40))


def test_a_stop_before_the_first_run_is_not_lost(sync_room: SyncRoom) -> None:
    sync_room.create_queue("jobs")
    sync_room.publish("jobs", 1)
    handled: list[int] = []
    sync_room.worker("jobs")(lambda message: handled.append(message.body))
    sync_room.stop_workers()
    sync_room.run_workers()
    assert handled == []
    sync_room.stop_workers()  # nothing runs: it is not kept for the next time
    runner = threading.Thread(target=sync_room.run_workers)
    runner.start()
    while not handled:
        time.sleep(0.01)
    sync_room.stop_workers()
    runner.join(60)
    assert handled == [1]


def test_workers_that_wait_for_mail_are_woken_by_a_stop(
    sync_room: SyncRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for hours here: only the wake-up can end them in time."""
    monkeypatch.setattr(thread_workers, "WAIT_S", 3600.0)
    monkeypatch.setattr(core, "POLL_S", 3600.0)
    sync_room.create_queue("jobs")
    sync_room.worker("jobs", concurrency=3)(lambda message: None)
    runner = threading.Thread(target=lambda: sync_room.run_workers(grace=60))
    runner.start()
    hub = sync_room._core.wakeups
    while sum(len(waiters) for waiters in hub._lines.values()) < 3:
        time.sleep(0.01)
    sync_room.stop_workers()
    runner.join(60)
    assert not runner.is_alive()
    assert not hub._lines, "and nobody is left waiting"
