"""Two rooms on one database: whatever both want in the same moment happens once, and neither works with what
the other has changed meanwhile."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from postroom import SyncRoom
from postroom.errors import LimitReached, QueueClosed, QueueFull
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.budgets.model import Charge
from postroom.kernel.rules import parsing, rule
from postroom.kernel.rules.breaker import MOST_MATCHES
from postroom.runtime import core
from tests.conformance.helpers import events, waiting_claims
from tests.conformance.promises import check_promises
from tests.stores.servers.conftest import Race, Rooms, until
from tests.stores.servers.kinds import ServerKind


def test_two_publishes_of_one_key_are_one_message(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    first, second = race(
        ann, lambda: ann.publish("jobs", 1, key="once"), lambda: bob.publish("jobs", 1, key="once")
    )
    assert first.result().created
    assert not second.result().created
    assert second.result().id == first.result().id
    assert ann.counts("jobs").pending == 1


def test_a_broadcast_ends_when_its_last_two_deliveries_end_at_once(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    ann.create_queue("news", consumer_mode="broadcast")
    ann.subscribe("news", "x")
    ann.subscribe("news", "y")
    receipt = ann.publish("news", "hello")
    [to_x], [to_y] = ann.claim("news", subscription="x"), bob.claim("news", subscription="y")
    for done in race(ann, lambda: ann.complete(to_x), lambda: bob.complete(to_y)):
        done.result()
    assert ann.get(receipt.id).state == "completed"


def test_the_first_two_reservations_of_a_budget_keep_to_its_limit(rooms: Rooms, race: Race) -> None:
    def reserve(room: SyncRoom, holder: str) -> None:
        room.run(c.Reserve(holder=holder, charges=(Charge("day", 80, 100),), seconds=60))

    ann, bob = rooms
    first, second = race(ann, lambda: reserve(ann, "one"), lambda: reserve(bob, "two"))
    first.result()
    with pytest.raises(LimitReached):
        second.result()


def test_a_concurrency_limit_holds_for_both(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    ann.create_queue("few", concurrency=1)
    ann.publish_many("few", [1, 2])
    first, second = race(ann, lambda: ann.claim("few"), lambda: bob.claim("few"))
    assert [len(first.result()), len(second.result())] == [1, 0]


def test_a_depth_limit_holds_for_both(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    ann.create_queue("small", max_depth=1)
    first, second = race(ann, lambda: ann.publish("small", 1), lambda: bob.publish("small", 2))
    first.result()
    with pytest.raises(QueueFull):
        second.result()


def test_what_one_has_in_hand_the_other_passes_over(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    ann.publish_many("jobs", [1, 2])
    first, second = race(ann, lambda: ann.claim("jobs"), lambda: bob.claim("jobs"))
    assert [message.body for message in (*first.result(), *second.result())] == [1, 2]


def test_who_looks_for_a_label_leaves_what_has_it_not_to_the_other(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    for colour in ("blue", "red"):
        ann.publish("jobs", colour, labels={"colour": colour})
    first, second = race(ann, lambda: ann.claim("jobs", labels={"colour": "red"}), lambda: bob.claim("jobs"))
    assert [message.body for message in (*first.result(), *second.result())] == ["red", "blue"]


def test_the_same_queue_made_by_both_is_made_once(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    first, second = race(ann, lambda: ann.create_queue("new"), lambda: bob.create_queue("new", exist_ok=True))
    assert first.result().id == second.result().id


def test_many_who_race_for_claims_get_each_message_once(rooms: Rooms) -> None:
    ann, bob = rooms
    count = 300
    ann.publish_many("jobs", list(range(count)))

    def work(room: SyncRoom) -> list[int]:
        done: list[int] = []
        while batch := room.claim("jobs", limit=7):
            for message in batch:
                room.complete(message)
                done.append(message.body)
        return done

    with ThreadPoolExecutor(4) as threads:
        done = [body for part in threads.map(work, (ann, bob, ann, bob)) for body in part]
    assert sorted(done) == list(range(count))
    assert ann.counts("jobs").completed == count
    check_promises(bob)


def test_what_one_changes_about_a_queue_the_other_knows_at_once(rooms: Rooms) -> None:
    ann, bob = rooms
    bob.publish("jobs", 1)
    ann.set_queue_state("jobs", "paused")
    with pytest.raises(QueueClosed):
        bob.publish("jobs", 2)
    ann.set_queue_state("jobs", "active")
    ann.update_queue("jobs", max_depth=1)
    with pytest.raises(QueueFull):
        bob.publish("jobs", 3)


def test_a_change_of_a_queue_waits_for_those_who_work_with_what_it_was(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    first, second = race(ann, lambda: ann.publish("jobs", 1), lambda: bob.set_queue_state("jobs", "paused"))
    first.result()
    second.result()
    told = [event.type for event in events(ann)][-2:]
    assert told == ["message.published", "queue.state"]


def test_who_waits_is_woken_by_what_the_other_publishes(
    rooms: Rooms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "POLL_S", 3600.0)
    ann, bob = rooms
    until(bob._core.store._listener.is_listening.is_set)  # type: ignore[attr-defined]
    with ThreadPoolExecutor(1) as threads:
        claiming = threads.submit(bob.claim, "jobs", wait=3600)
        until(lambda: waiting_claims(bob) == 1)
        ann.publish("jobs", "good morning")
        [message] = claiming.result(60)
    assert message.body == "good morning"


def test_a_budget_that_is_written_late_has_the_time_of_its_event(
    rooms: Rooms, race: Race, kind: ServerKind, url: str
) -> None:
    """The other has committed meanwhile, and in the ledger time never goes back."""
    ann, bob = rooms
    bob.create_queue("other")
    reserve = c.Reserve(holder="one", charges=(Charge("day", 80, 100),), seconds=60)
    for done in race(ann, lambda: ann.run(reserve), lambda: bob.publish("other", 1)):
        done.result()
    last = events(ann)[-1]
    assert last.type == "account.reserved", "it came last"
    assert kind.fetch(url, "SELECT updated_at FROM accounts WHERE name = 'day'") == [(last.time,)]


def test_of_two_who_change_one_document_the_second_is_not_lost(rooms: Rooms, race: Race) -> None:
    ann, bob = rooms
    ann.run(service_commands.PutServiceDocument(kind="note", key="one", data={"by": "nobody"}))

    def put(room: SyncRoom, name: str) -> None:
        room.run(service_commands.PutServiceDocument(kind="note", key="one", data={"by": name}))

    for done in race(ann, lambda: put(ann, "ann"), lambda: put(bob, "bob")):
        done.result()
    for room in rooms:
        found = room._core.read(lambda reader: reader.document("default", "note", "one"))
        assert found is not None
        assert found.data == {"by": "bob"}


def test_a_rule_that_meets_a_conversation_too_often_is_stopped_for_both(rooms: Rooms) -> None:
    ann, bob = rooms
    queues = {name: ann.create_queue(name).id for name in ("bulk", "orders")}
    draft = {
        "name": "to bulk",
        "source_queue_id": "orders",
        "action": {"type": "route", "target_queue_id": "bulk"},
    }
    made = parsing.drafted(draft, lambda name, field: queues[name], rule_id="r1", now=0)
    key = f"{ann.scope('default').id}/r1"
    ann.run(
        service_commands.PutServiceDocument(kind=rule.KIND, key=key, data=rule.written(made), scope="default")
    )
    for n in range(MOST_MATCHES + 4):
        rooms[n % 2].publish("orders", n, correlation_id="talk")
    assert (bob.counts("bulk").pending, bob.counts("orders").pending) == (MOST_MATCHES, 4)
