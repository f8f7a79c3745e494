"""Live and archived messages, with the orders in which they are asked for.

A kept row is never changed in place: a new one takes its place, so the old one can serve the undo.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from heapq import merge, nsmallest
from itertools import islice, takewhile
from typing import Any, NamedTuple

from postroom.kernel.rows import Content, Row, Stored
from postroom.kernel.states import OPEN, TERMINAL, State
from postroom.stores.memory.journal import Journal
from postroom.stores.memory.sorted_keys import SortedKeys

# What a broadcast message can be that late subscribers may still have.
BROADCAST = (State.PENDING, State.COMPLETED)


class Archived(NamedTuple):
    row: Row
    # No event of the message lies behind this one.
    last_event: int


def key_home(row: Row) -> int:
    """The queue its idempotency key belongs to: where it was published, also when it lies dead elsewhere."""
    return row.queue_id if row.origin_queue_id is None else row.origin_queue_id


class MemoryMessages:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._last_seq = 0
        self._live: dict[str, Row] = {}
        self._archive: dict[str, Archived] = {}
        self._contents: dict[str, Content] = {}
        self._ids: dict[int, str] = {}
        self._keys: dict[tuple[int, str], str] = {}
        self._entry: SortedKeys[int] = SortedKeys()
        self._lines: defaultdict[int, SortedKeys[tuple[int, int]]] = defaultdict(SortedKeys)
        self._states: defaultdict[tuple[int, str], SortedKeys[int]] = defaultdict(SortedKeys)
        self._due: SortedKeys[tuple[int, int]] = SortedKeys()
        self._finished: SortedKeys[tuple[int, int]] = SortedKeys()
        self._dead: SortedKeys[tuple[int, int]] = SortedKeys()
        self._deliveries: SortedKeys[tuple[str, int]] = SortedKeys()
        self._archived_of: defaultdict[int, SortedKeys[tuple[int, int]]] = defaultdict(SortedKeys)

    # one message

    def row(self, message_id: str) -> Row | None:
        row = self._live.get(message_id)
        return copy(row) if row is not None else None

    def content(self, message_id: str) -> Content:
        return copy(self._contents[message_id])

    def archived(self, message_id: str) -> Stored | None:
        kept = self._archive.get(message_id)
        return Stored(copy(kept.row), self.content(message_id), True) if kept is not None else None

    def stored(self, message_id: str) -> Stored | None:
        row = self._live.get(message_id)
        return Stored(copy(row), self.content(message_id)) if row is not None else self.archived(message_id)

    def by_key(self, queue_id: int, key: str) -> Stored | None:
        message_id = self._keys.get((queue_id, key))
        return self.stored(message_id) if message_id is not None else None

    # writes

    def insert(self, row: Row, content: Content) -> None:
        if row.id in self._contents:
            raise ValueError(f"there is a message {row.id} already")
        key = None if row.idempotency_key is None else (key_home(row), row.idempotency_key)
        if key in self._keys:
            raise ValueError(f"there is a message with the key {row.idempotency_key} already")
        row.seq = self._last_seq + 1
        row = copy(row)
        self._set_last_seq(row.seq)
        self._enter(row.seq, row.id)
        self._journal.set(self._contents, row.id, copy(content))
        if key is not None:
            self._journal.set(self._keys, key, row.id)
        self._put(row.id, row)

    def save(self, row: Row) -> None:
        kept = self._live[row.id]
        row = copy(row)
        row.queue_id, row.line, row.origin_queue_id = kept.queue_id, kept.line, kept.origin_queue_id
        self._put(row.id, row)

    def relocate(self, row: Row) -> None:
        self._put(row.id, copy(row))

    def reroute(self, row: Row) -> None:
        """The key is known where the message is now; for where it was, the kernel has kept it."""
        before = self._live[row.id]
        if before.idempotency_key is not None:
            self._journal.delete(self._keys, (key_home(before), before.idempotency_key))
        if row.idempotency_key is not None:
            self._journal.set(self._keys, (key_home(row), row.idempotency_key), row.id)
        self.relocate(row)

    def rewrite(
        self, message_id: str, content: Content, *, result: bytes | None, failure_reason: str | None
    ) -> None:
        self._journal.set(self._contents, message_id, copy(content))
        kept = self._archive.get(message_id)
        row = copy(kept.row if kept is not None else self._live[message_id])
        row.result, row.failure_reason = result, failure_reason
        if kept is not None:
            self._journal.set(self._archive, message_id, kept._replace(row=row))
        else:
            self._put(message_id, row)

    def archive(self, message_id: str, last_event: int) -> None:
        row = self._live[message_id]
        self._put(message_id, None)
        self._journal.set(self._archive, message_id, Archived(row, last_event))
        index, key = self._archived_of[row.queue_id], (row.finished_at or 0, row.seq)
        index.add(key)
        self._journal.note(lambda: index.remove(key))

    def prune(self, message_id: str) -> bool:
        if message_id not in self._archive:
            return False
        row = self._journal.delete(self._archive, message_id).row
        index, key = self._archived_of[row.queue_id], (row.finished_at or 0, row.seq)
        index.remove(key)
        self._journal.note(lambda: index.add(key))
        self._journal.delete(self._contents, message_id)
        self._journal.delete(self._ids, row.seq)
        self._entry.remove(row.seq)
        self._journal.note(lambda: self._entry.add(row.seq))
        if row.idempotency_key is not None:
            self._journal.delete(self._keys, (key_home(row), row.idempotency_key))
        return True

    def _set_last_seq(self, seq: int) -> None:
        before, self._last_seq = self._last_seq, seq
        self._journal.note(lambda: setattr(self, "_last_seq", before))

    def _enter(self, seq: int, message_id: str) -> None:
        self._journal.set(self._ids, seq, message_id)
        self._entry.add(seq)
        self._journal.note(lambda: self._entry.remove(seq))

    def _put(self, message_id: str, row: Row | None) -> None:
        before = self._live.get(message_id)
        self._swap(message_id, before, row)
        self._journal.note(lambda: self._swap(message_id, row, before))

    def _swap(self, message_id: str, old: Row | None, new: Row | None) -> None:
        if old is not None:
            for index, key in self._places(old):
                index.remove(key)
        if new is None:
            del self._live[message_id]
            return
        self._live[message_id] = new
        for index, key in self._places(new):
            index.add(key)

    def _places(self, row: Row) -> Iterator[tuple[SortedKeys[Any], Any]]:
        """Each index a live row is in, and its key there."""
        state, seq = row.state, row.seq
        yield self._states[row.queue_id, state], seq
        if state == State.PENDING:
            yield self._lines[row.line], (row.sort_key, seq)
        if row.due_at is not None:
            yield self._due, (row.due_at, seq)
        if state in TERMINAL:
            yield self._dead if state == State.DEAD else self._finished, (row.finished_at or 0, seq)
        elif row.subscription_id is not None and row.parent_id is not None:
            yield self._deliveries, (row.parent_id, seq)

    # many messages

    def open_of(self, tenant: str, correlation_id: str) -> list[Row]:
        talk = (tenant, correlation_id)
        rows = [row for row in self._live.values() if (row.tenant, row.correlation_id) == talk]
        return sorted((copy(row) for row in rows if row.state in OPEN), key=lambda row: row.seq)

    def _row_at(self, seq: int) -> Row:
        return self._live[self._ids[seq]]

    def _copies(self, seqs: Iterable[int], limit: int | None = None) -> list[Row]:
        chosen = seqs if limit is None else islice(seqs, max(limit, 0))
        return [copy(self._row_at(seq)) for seq in chosen]

    def pending(self, line: int, limit: int) -> list[Stored]:
        if line not in self._lines:
            return []
        rows = self._copies(seq for _, seq in self._lines[line].head(limit))
        return [Stored(row, self.content(row.id)) for row in rows]

    def due(self, now: int, limit: int) -> list[Row]:
        return self._copies(seq for due_at, seq in self._due.head(limit) if due_at <= now)

    def claimed_by(self, holder: str, limit: int) -> list[Row]:
        rows = (self._row_at(seq) for _, seq in self._due)
        mine = (
            row.seq
            for row in rows
            if row.state == State.CLAIMED
            and (row.claimed_by == holder or (row.claimed_by or "").startswith(f"{holder}/"))
        )
        return self._copies(list(islice(mine, limit)))

    def next_due(self) -> int | None:
        first = self._due.first()
        return first[0] if first is not None else None

    def _seqs(self, queue_id: int, states: Iterable[str], after_seq: int = 0) -> Iterator[int]:
        """The rows of a queue in some states, in the order of entry."""
        known = (self._states.get((queue_id, state)) for state in states)
        return merge(*(seqs.after(after_seq) for seqs in known if seqs is not None))

    def in_states(
        self, queue_id: int, states: Iterable[str], *, after_seq: int = 0, limit: int | None = None
    ) -> list[Row]:
        return self._copies(self._seqs(queue_id, states, after_seq), limit)

    def originals(self, queue_id: int) -> list[Stored]:
        rows = [row for row in self.in_states(queue_id, BROADCAST) if row.subscription_id is None]
        return [Stored(row, self.content(row.id)) for row in rows]

    def open_deliveries(self, parent_id: str) -> Iterator[int]:
        for parent, seq in self._deliveries.after((parent_id, 0)):
            if parent != parent_id:
                return
            yield seq

    def deliveries(self, parent_id: str) -> list[Row]:
        return self._copies(self.open_deliveries(parent_id))

    def dead_from(self, queue_id: int) -> int:
        return sum(self._row_at(seq).origin_queue_id == queue_id for _, seq in self._dead)

    def aging(
        self, queue_ids: Iterable[int], entered_before: int, cap: int, after_seq: int, limit: int
    ) -> list[Row]:
        seqs = merge(*(self._seqs(queue_id, (State.PENDING,), after_seq) for queue_id in queue_ids))
        rows = map(self._row_at, seqs)
        fitting = (row.seq for row in rows if row.created_at <= entered_before and row.priority_score < cap)
        return self._copies(fitting, limit)

    def finished(self, before: int, limit: int) -> list[Row]:
        return self._copies(seq for ended, seq in self._finished.head(limit) if ended <= before)

    def dead_before(self, before: int, limit: int) -> list[Row]:
        old = takewhile(lambda key: key[0] <= before, self._dead)
        return self._copies(nsmallest(limit, (seq for _, seq in old)))

    def has(self, message_id: str) -> bool:
        return message_id in self._live or message_id in self._archive

    def names(self, queue_id: int) -> bool:
        """Whether a message lies in this queue, or is a dead letter that came from it."""
        return any(
            queue_id in (row.queue_id, row.origin_queue_id)
            for row, _, _ in self.walk(None, newest_first=False)
        )

    def prunable(self, queue_id: int, ended_before: int, up_to_seq: int | None, limit: int) -> list[str]:
        found: list[str] = []
        talks = {row.correlation_id for row in self._live.values() if row.state in OPEN}
        for ended, seq in self._archived_of.get(queue_id, ()):
            if ended > ended_before or len(found) >= limit:
                break
            message_id = self._ids[seq]
            kept = self._archive[message_id]
            if up_to_seq is not None and kept.last_event > up_to_seq:
                continue
            if kept.row.correlation_id not in talks:
                found.append(message_id)
        return found

    def walk(self, after: int | None, *, newest_first: bool) -> Iterator[tuple[Row, Content, bool]]:
        """All messages, live and archived, in the order of entry or against it; not copies."""
        if newest_first:
            seqs = self._entry.backwards(after)
        else:
            seqs = iter(self._entry) if after is None else self._entry.after(after)
        for seq in seqs:
            message_id = self._ids[seq]
            row = self._live.get(message_id)
            kept = row if row is not None else self._archive[message_id].row
            yield kept, self._contents[message_id], row is None
