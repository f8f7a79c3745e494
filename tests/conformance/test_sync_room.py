"""The room for threads: the same verbs with the same outcomes as the asynchronous one, from any thread."""

import inspect
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.conformance.helpers import events, events_of, waiting_claims, whole
from tests.conftest import OpenSync

from postroom import Room, State, SyncRoom
from postroom.clock import SECOND, ManualClock
from postroom.errors import ClaimLost, InvalidField, MessageNotFound, QueueNotFound, StoreClosed, WrongState


@pytest.fixture
def jobs(sync_room: SyncRoom) -> SyncRoom:
    sync_room.create_queue("jobs", max_retries=2)
    return sync_room


def test_both_rooms_have_the_same_verbs_with_the_same_parameters() -> None:
    def surface(room: type) -> dict[str, list[str]]:
        members = inspect.getmembers(room, callable)
        return {
            name: list(inspect.signature(member).parameters)
            for name, member in members
            if not name.startswith("_")
        }

    # These do their work in tasks of an event loop, or are for services, which stand on such a room.
    tasks = {"leader", "ledger_reader", "woken", "answer_checks", "wipe_log"}
    assert {name: surface(Room)[name] for name in surface(Room).keys() - tasks} == surface(SyncRoom)


def test_the_whole_life_of_a_message(jobs: SyncRoom, clock: ManualClock) -> None:
    receipt = jobs.publish("jobs", {"n": 1}, labels={"a": 1}, key="k")
    assert not jobs.publish("jobs", {"n": 1}, key="k").created
    [message] = jobs.claim("jobs", worker="w1")
    assert (message.id, message.attempts, message.claimed_by) == (receipt.id, 1, "w1")
    assert jobs.extend(message, 100) == clock.now() + 100 * SECOND
    jobs.release(message)
    [message] = jobs.claim("jobs")
    jobs.snooze(message, 5)
    clock.advance(5)
    [message] = jobs.claim("jobs")
    jobs.fail(message, "no", delay=0)
    [message] = jobs.claim("jobs")
    jobs.fail(message, "no")
    assert jobs.get(receipt.id).state is State.DEAD
    jobs.replay(receipt.id)
    [message] = jobs.claim("jobs")
    jobs.complete(message, "done")
    done = jobs.get(receipt.id)
    assert (done.state, done.result) == (State.COMPLETED, "done")
    assert " ".join(events_of(jobs, receipt.id)) == (
        "published claimed extended released claimed snoozed ready claimed failed claimed dead_lettered "
        "replayed claimed completed"
    )


def test_every_other_verb_and_question(jobs: SyncRoom, clock: ManualClock) -> None:
    jobs.create_scope("office", display_name="Office")
    jobs.create_queue("office/news", consumer_mode="broadcast")
    jobs.update_queue("office/news", max_retries=1)
    jobs.subscribe("office/news", "ann")
    jobs.register_schema("office", "order", {})
    jobs.publish("office/news", 1)
    assert jobs.counts("office/news", subscription="ann").pending == 1
    assert not jobs.check_seen("office/news", "ann", "k")
    assert [known.name for known in jobs.subscriptions("office/news")] == ["ann"]
    assert [schema.name for schema in jobs.schemas("office")] == ["order"]
    assert {scope.slug for scope in jobs.scopes()} == {"default", "office"}
    assert (jobs.scope("office").display_name, jobs.queue("jobs").slug) == ("Office", "jobs")
    assert "news" in {queue.slug for queue in jobs.queues("office")}
    jobs.unsubscribe("office/news", "ann")
    jobs.delete_queue("office/news")
    jobs.set_scope_state("office", "archived")
    jobs.delete_scope("office")
    first, second = jobs.publish_many("jobs", [1, 2])
    jobs.reprioritise(first.id, score=600)
    assert [message.body for message in jobs.peek("jobs")] == [1, 2]
    jobs.cancel(first.id)
    jobs.kill(second.id, "guard")
    jobs.discard(second.id)
    assert [message.body for message in jobs.messages(state="cancelled").messages] == [1, 2]
    jobs.set_queue_state("jobs", "paused")
    jobs.record("turn", "coder", {"n": 1})
    assert jobs.records("turn")[0].data == {"n": 1}
    jobs.set_position("lake", 3)
    assert jobs.positions()[0].seq == 3
    assert jobs.housekeep("message_archiver") == 0
    assert len(jobs.housekeepers()) == 8
    assert [event.seq for event in jobs.events(5)] == list(range(6, jobs.head().seq + 1))


def test_the_same_errors_leave_the_same_nothing(jobs: SyncRoom) -> None:
    receipt = jobs.publish("jobs", 1)
    [message] = jobs.claim("jobs")
    jobs.release(message)
    before = whole(jobs)
    calls: list[tuple[type[Exception], Any]] = [
        (QueueNotFound, lambda: jobs.publish("nowhere", 1)),
        (QueueNotFound, lambda: jobs.claim("nowhere", wait=1)),
        (InvalidField, lambda: jobs.publish("jobs", float("nan"))),
        (ClaimLost, lambda: jobs.complete(message)),
        (WrongState, lambda: jobs.replay(receipt.id)),
        (MessageNotFound, lambda: jobs.get("nobody")),
        (InvalidField, lambda: jobs.set_queue_state("jobs", "nonsense")),
    ]
    for error, call in calls:
        with pytest.raises(error):
            call()
    assert whole(jobs) == before


def test_a_unit_is_one_moment_or_nothing(jobs: SyncRoom) -> None:
    jobs.publish("jobs", 1)
    [message] = jobs.claim("jobs")
    before = whole(jobs)
    unit = jobs.unit()
    unit.complete(message)
    unit.publish("nowhere", 1)
    with pytest.raises(QueueNotFound), unit:
        pass
    assert whole(jobs) == before
    with jobs.unit() as unit:
        unit.complete(message)
        unit.publish("jobs", "reply")
    assert unit.results[1][0].created
    assert jobs.counts("jobs").pending == 1


def test_many_threads_lose_and_repeat_nothing(jobs: SyncRoom) -> None:
    def publish(n: int) -> str:
        return jobs.publish("jobs", n).id

    taken: list[Any] = []

    def consume() -> None:
        while len(taken) < 100:
            for message in jobs.claim("jobs", limit=3):
                jobs.complete(message)
                taken.append(message.body)

    with ThreadPoolExecutor(8) as threads:
        consumers = [threads.submit(consume) for _ in range(3)]
        ids = list(threads.map(publish, range(100)))
        for consumer in consumers:
            consumer.result(60)
    assert len(set(ids)) == 100
    assert sorted(taken) == list(range(100))
    seqs = [event.seq for event in events(jobs)]
    assert seqs == list(range(1, len(seqs) + 1))


@pytest.mark.usefixtures("only_wakeups")
def test_a_waiting_claim_gets_what_another_thread_publishes(open_sync: OpenSync) -> None:
    with open_sync(clock=None) as room:
        room.create_queue("jobs")
        with ThreadPoolExecutor(1) as threads:
            claiming = threads.submit(room.claim, "jobs", wait=3600)
            while not waiting_claims(room):
                time.sleep(0.001)
            room.publish("jobs", 1)
            [message] = claiming.result(60)
        assert message.body == 1
        started = time.monotonic()
        assert room.claim("jobs", wait=0.1) == []
        assert 0.09 < time.monotonic() - started < 60


@pytest.mark.usefixtures("only_wakeups")
def test_a_follower_in_a_thread_sees_everything_once(open_sync: OpenSync) -> None:
    with open_sync(clock=None) as room:
        room.create_queue("jobs")
        seen: list[int] = []

        def follow() -> None:
            for event in room.events(follow=True):
                seen.append(event.seq)
                if event.type == "record.end":
                    return

        with ThreadPoolExecutor(1) as threads:
            following = threads.submit(follow)
            for n in range(20):
                room.publish("jobs", n)
            room.record("end", "now", {})
            following.result(60)
        assert seen == list(range(1, seen[-1] + 1))


def test_a_closed_room_says_so(jobs: SyncRoom) -> None:
    jobs.publish("jobs", 1)
    [message] = jobs.claim("jobs")
    jobs.close()
    jobs.close()
    calls: list[Any] = [
        lambda: jobs.publish("jobs", 1),
        lambda: jobs.claim("jobs"),
        lambda: jobs.complete(message),
        lambda: jobs.get(message.id),
        lambda: jobs.counts("jobs"),
        jobs.head,
        lambda: list(jobs.events()),
    ]
    for call in calls:
        with pytest.raises(StoreClosed):
            call()


@pytest.mark.usefixtures("only_wakeups")
def test_closing_ends_a_wait_in_another_thread(open_sync: OpenSync) -> None:
    with open_sync(clock=None) as room:
        room.create_queue("jobs")
        ended = threading.Event()

        def wait() -> None:
            try:
                room.claim("jobs", wait=3600)
            except StoreClosed:
                ended.set()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        while not waiting_claims(room):
            time.sleep(0.001)
        room.close()
        assert ended.wait(60)
