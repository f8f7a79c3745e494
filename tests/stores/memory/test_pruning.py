"""What is old may go, but never what a reader of the ledger still needs, and the chain stays whole."""

from collections.abc import Iterator

import pytest
from tests.stores.memory.room import MANY, Room, everything

from postroom.kernel import commands as c
from postroom.kernel import ledger
from postroom.kernel.housekeeping import housekeepers
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.ledger import EventDraft, Head
from postroom.stores.memory import MemoryStore

HOUR = 3600


def archive_all(room: Room) -> None:
    room.clock.advance(2 * HOUR)
    room.do(c.Housekeep(name=housekeepers.ARCHIVER))


def append(room: Room, *times: int) -> None:
    tx = room.store.begin()
    for time in times:
        tx.append(EventDraft(time, "test.happened", "default", None, None, None, None, None, "me", "{}"))
    room.store.commit(tx)


class TestKeys:
    def test_a_key_is_known_live_dead_archived_and_forgotten_when_pruned(self, room: Room) -> None:
        work = room.queue("work", max_retries=1)
        dead_letters = room.queue("other")
        (message_id,) = room.publish("work", 1, idempotency_key="k")

        def holder() -> tuple[str, str, bool] | None:
            tx = room.store.begin()
            try:
                assert tx.by_key(dead_letters, "k") is None
                stored = tx.by_key(work, "k")
                return (stored.row.id, stored.row.state, stored.archived) if stored else None
            finally:
                room.store.rollback(tx)

        assert holder() == (message_id, "pending", False)
        (claimed,) = room.claim("work")
        room.do(c.Fail(message_id=message_id, token=claimed.row.token or "", reason="broken"))
        assert holder() == (message_id, "dead", False)
        room.do(c.Discard(message_ids=(message_id,)))
        archive_all(room)
        assert holder() == (message_id, "cancelled", True)
        tx = room.store.begin()
        assert tx.prune_archive([message_id, "unknown"]) == 1
        room.store.commit(tx)
        assert holder() is None
        assert room.page() == []


class TestArchive:
    def test_a_message_moves_with_its_content_and_frees_its_queue(self, room: Room) -> None:
        work = room.queue("work")
        (message_id,) = room.publish("work", "kept")
        room.complete(*room.claim("work"))
        archive_all(room)
        tx = room.store.begin()
        stored = tx.archived(message_id)
        assert stored is not None
        assert stored.archived
        assert stored.content.body == b'"kept"'
        assert tx.row(message_id) is None
        assert tx.ended_in(work, 10) == []
        assert tx.counts(work).completed == 0
        room.store.rollback(tx)

    def test_only_what_ended_long_enough_ago_is_finished(self, room: Room) -> None:
        room.queue("work")
        room.publish("work", 1, 2)
        ended = []
        for claimed in room.claim("work", 2):
            room.clock.advance(10)
            room.complete(claimed)
            ended.append(room.clock.now())
        tx = room.store.begin()
        assert tx.finished(ended[0] - 1, 10) == []
        assert [row.finished_at for row in tx.finished(ended[0], 10)] == ended[:1]
        assert [row.finished_at for row in tx.finished(ended[1], 10)] == ended
        assert [row.finished_at for row in tx.finished(ended[1], 1)] == ended[:1]
        room.store.rollback(tx)

    def test_nothing_is_prunable_before_readers_have_passed_its_events(self, room: Room) -> None:
        work = room.queue("work")
        (message_id,) = room.publish("work", 1)
        room.complete(*room.claim("work"))
        archive_all(room)
        with room.store.reader() as reader:
            last = max(event.seq for event in reader.events(0, MANY) if event.message_id == message_id)
        now = room.clock.now()
        tx = room.store.begin()
        assert tx.prunable(work, now, None, 10) == [message_id]
        assert tx.prunable(work, now, last, 10) == [message_id]
        assert tx.prunable(work, now, last - 1, 10) == []
        assert tx.prunable(work, now - 3 * HOUR * 1_000_000, None, 10) == []
        assert tx.prunable(work, now, None, 0) == []
        room.store.rollback(tx)

    def test_events_that_have_no_number_yet_count_too(self, room: Room) -> None:
        work = room.queue("work")
        (message_id,) = room.publish("work", 1)
        (claimed,) = room.claim("work")
        tx = room.store.begin()
        room.apply(tx, [c.Complete(message_id=message_id, token=claimed.row.token or "")])
        tx.archive(tx.ended_in(work, 1))
        room.store.commit(tx)
        with room.store.reader() as reader:
            head = reader.head().seq
        tx = room.store.begin()
        assert tx.prunable(work, room.clock.now(), head - 1, 10) == []
        assert tx.prunable(work, room.clock.now(), head, 10) == [message_id]
        room.store.rollback(tx)


class TestLedger:
    @pytest.fixture
    def old(self, room: Room) -> Room:
        """Events 1 to 6 are the scope's; ten more follow, each a microsecond after the one before."""
        with room.store.reader() as reader:
            head = reader.head()
        assert head.seq == 6
        append(room, *(head.time + n for n in range(1, 11)))
        return room

    def prune(self, room: Room, before: int, up_to: int | None, limit: int) -> int:
        tx = room.store.begin()
        dropped = tx.prune_ledger(before, up_to, limit)
        room.store.commit(tx)
        return dropped

    def check(self, room: Room, *, first: int) -> None:
        """What is left starts at an event, hangs together, and reads the same from any place."""
        with room.store.reader() as reader:
            events, anchor, head = reader.events(0, MANY), reader.anchor(), reader.head()
            assert (events[0].seq, anchor.seq, head.seq) == (first, first - 1, 16)
            assert events[0].previous_hash == anchor.hash
            assert ledger.verify(events, anchor, head) == len(events)
            for after in range(18):
                assert reader.events(after, 3) == [event for event in events if event.seq > after][:3]

    def test_a_whole_ledger_begins_at_the_genesis(self, old: Room) -> None:
        self.check(old, first=1)
        with old.store.reader() as reader:
            assert reader.anchor() == Head()

    def test_at_most_so_many_go(self, old: Room) -> None:
        assert self.prune(old, 2**60, None, 4) == 4
        self.check(old, first=5)
        assert self.prune(old, 2**60, None, 2) == 2
        self.check(old, first=7)

    def test_what_is_young_stays(self, old: Room) -> None:
        assert self.prune(old, old.clock.now() + 3, None, MANY) == 8
        self.check(old, first=9)

    def test_what_a_reader_has_not_passed_stays(self, old: Room) -> None:
        assert self.prune(old, 2**60, 5, MANY) == 5
        self.check(old, first=6)
        assert self.prune(old, 2**60, 3, MANY) == 0

    def test_the_last_event_stays(self, old: Room) -> None:
        assert self.prune(old, 2**60, None, MANY) == 15
        self.check(old, first=16)
        assert self.prune(old, 2**60, None, MANY) == 0

    def test_the_anchor_is_the_last_event_that_went(self, old: Room) -> None:
        with old.store.reader() as reader:
            last = reader.events(7, 1)[0]
        self.prune(old, 2**60, None, 8)
        with old.store.reader() as reader:
            assert reader.anchor() == Head(last.seq, last.hash, last.time)

    def test_an_empty_ledger_has_nothing_to_drop(self) -> None:
        store = MemoryStore()
        tx = store.begin()
        assert tx.prune_ledger(2**60, None, 10) == 0
        store.commit(tx)

    def test_a_rollback_brings_it_back(self, old: Room) -> None:
        before = everything(old.store)
        tx = old.store.begin()
        assert tx.prune_ledger(2**60, None, 4) == 4
        assert tx.prune_ledger(2**60, None, 3) == 3
        old.store.rollback(tx)
        assert everything(old.store) == before


class TestPruner:
    @pytest.fixture
    def forgetful(self) -> Iterator[Room]:
        room = Room(Retention(archive_after_s=60, ledger_s=HOUR, seen_s=60))
        yield room
        room.close()

    def test_it_waits_for_the_reader_that_holds_the_ledger(self, forgetful: Room) -> None:
        room = forgetful
        room.queue("work", retention_s=60)
        room.publish("work", 1)
        room.complete(*room.claim("work"))
        room.do(c.SetPosition(name="lake", seq=0, hold=True))
        archive_all(room)
        room.do(c.Housekeep(name=housekeepers.PRUNER))
        assert len(room.page()) == 1
        with room.store.reader() as reader:
            assert reader.anchor().seq == 0
            head = reader.head().seq
        room.do(c.SetPosition(name="lake", seq=head, hold=True))
        room.do(c.Housekeep(name=housekeepers.PRUNER))
        assert room.page() == []
        with room.store.reader() as reader:
            assert reader.anchor().seq > 0
            ledger.verify(reader.events(0, MANY), reader.anchor(), reader.head())

    def test_seen_keys_are_forgotten_in_time_and_with_their_subscription(self, forgetful: Room) -> None:
        room = forgetful
        room.queue("news", consumer_mode="broadcast")
        room.do(c.Subscribe(queue="s/news", name="ann"))
        check = c.CheckSeen(queue="s/news", name="ann", key="1")
        assert [room.do(check), room.do(check)] == [False, True]
        room.clock.advance(60)
        room.do(c.Housekeep(name=housekeepers.PRUNER))
        assert room.do(check) is True
        room.clock.advance(1)
        room.do(c.Housekeep(name=housekeepers.PRUNER))
        assert [room.do(check), room.do(check)] == [False, True]
        room.do(c.Unsubscribe(queue="s/news", name="ann"))
        room.do(c.Subscribe(queue="s/news", name="ann"))
        assert room.do(check) is False
