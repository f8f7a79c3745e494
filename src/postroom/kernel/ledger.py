"""The append-only, hash-chained record of everything that happened.

An event's hash covers its own fields and the hash before it, so no event can be altered, removed or moved
without breaking the chain. Folding the ledger gives the state of every message.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from postroom.errors import LedgerBroken
from postroom.kernel import jsontext
from postroom.kernel.states import Change, State, allowed

_astuple = msgspec.structs.astuple
_sha256 = hashlib.sha256

GENESIS = b"\x00" * 32


class EventDraft(msgspec.Struct, frozen=True, gc=False):
    """An event before it has its place in the chain. Field order is column order."""

    time: int
    type: str
    tenant: str
    scope: str | None
    queue: str | None
    message_id: str | None
    correlation_id: str | None
    causation_id: str | None
    actor: str
    data: str


class Event(msgspec.Struct, frozen=True):
    """One line of the ledger: what happened, to what, by whom, chained to the line before by its hash.

    >>> id = room.publish("orders", 1).id
    >>> [event.message_id == id for event in room.events() if event.type == "message.published"]
    [True]
    """

    seq: int
    time: int
    type: str
    tenant: str
    scope: str | None
    queue: str | None
    message_id: str | None
    correlation_id: str | None
    causation_id: str | None
    actor: str
    data: str
    previous_hash: bytes
    hash: bytes

    @property
    def details(self) -> dict[str, Any]:
        return jsontext.decode(self.data)


class Head(msgspec.Struct, frozen=True):
    """A place in the chain: an event's number and hash. Its time keeps the ledger's clock from going back."""

    seq: int = 0
    hash: bytes = GENESIS
    time: int = 0


def link(seq: int, draft: tuple[Any, ...], previous: bytes) -> bytes:
    return _sha256(previous + jsontext.encode((seq, *draft))).digest()


def encode_rest(draft: EventDraft) -> bytes:
    """What its hash covers after number and time, which only the commit knows."""
    return jsontext.encode(_astuple(draft)[1:])[1:]


class PlacedEvents(msgspec.Struct, frozen=True):
    """Where events come to stand in the chain: their numbers, times and hashes."""

    numbers: range
    times: list[int]
    hashes: list[bytes]

    def parts(self, most: int) -> "Iterator[PlacedEvents]":
        for start in range(0, len(self.numbers), most):
            some = slice(start, start + most)
            yield PlacedEvents(self.numbers[some], self.times[some], self.hashes[some])


class Chaining:
    """Numbers and chains drafts after a head, one by one; `head` is then the new one."""

    __slots__ = ("_hash", "_seq", "_time")

    def __init__(self, head: Head) -> None:
        self._seq, self._hash, self._time = head.seq, head.hash, head.time

    @property
    def head(self) -> Head:
        return Head(self._seq, self._hash, self._time)

    def place(self, times: Sequence[int], rests: Iterable[bytes]) -> "PlacedEvents":
        """The next events, of which `encode_rest` was told before. In the ledger time never goes back."""
        first, latest = self._seq + 1, self._time
        placed = PlacedEvents(range(first, first + len(times)), [max(time, latest) for time in times], [])
        hash_, append = self._hash, placed.hashes.append
        for seq, time, rest in zip(placed.numbers, placed.times, rests, strict=True):
            hash_ = _sha256(b"%b[%d,%d,%b" % (hash_, seq, time, rest)).digest()
            append(hash_)
        if times:
            self._seq, self._hash, self._time = placed.numbers[-1], hash_, placed.times[-1]
        return placed

    def row(self, draft: EventDraft) -> tuple[Any, ...]:
        """As (seq, fields…, hash)."""
        self._seq = seq = self._seq + 1
        fields = (seq, *_astuple(draft))
        self._hash = hash_ = _sha256(self._hash + jsontext.encode(fields)).digest()
        self._time = draft.time
        return (*fields, hash_)


def seal(drafts: Iterable[EventDraft], head: Head) -> tuple[list[tuple[Any, ...]], Head]:
    """All of them at once: the rows, and the new head."""
    chaining = Chaining(head)
    return list(map(chaining.row, drafts)), chaining.head


def unroll(rows: Iterable[tuple[Any, ...]], previous: bytes) -> Iterator[Event]:
    """Rows as stored, with each event's previous hash filled in."""
    for row in rows:
        fields: Any = (*row[:-1], previous, row[-1])
        yield Event(*fields)
        previous = row[-1]


def verify(events: Iterable[Event], anchor: Head, head: Head) -> int:
    """Walk the chain from `anchor` to `head`; raise `LedgerBroken` at the first event that does not fit."""
    seq, previous = anchor.seq, anchor.hash
    for event in events:
        if event.seq != seq + 1:
            raise LedgerBroken(seq=event.seq, problem=f"event {seq + 1} is missing")
        fields = msgspec.structs.astuple(event)[1:11]
        if event.previous_hash != previous or link(event.seq, fields, previous) != event.hash:
            raise LedgerBroken(seq=event.seq, problem="its content or place does not match its hash")
        seq, previous = event.seq, event.hash
    if seq != head.seq or previous != head.hash:
        raise LedgerBroken(
            seq=seq + 1, problem=f"the chain ends at {seq}, but {head.seq} events were written"
        )
    return seq - anchor.seq


class Folded(msgspec.Struct):
    """What the ledger says about one message."""

    place: str
    state: State
    attempts: int


def fold(
    events: Iterable[Event], start: dict[str, Folded] | None = None, *, cut: bool = False
) -> dict[str, Folded]:
    """The state of every message from its events alone; an event that its state forbids is a break.

    `start` is how messages stood before the first of the events. With `cut` there were events before it, so
    the first that is told of an unknown message, which is gone since, is believed.
    """
    messages = {} if start is None else start
    for event in events:
        if event.message_id is None or not event.type.startswith("message."):
            continue
        known = messages.get(event.message_id)
        try:
            details = event.details
            change, target, attempts = Change(event.type), State(details["state"]), int(details["attempts"])
        except (ValueError, KeyError, TypeError, msgspec.DecodeError) as error:
            raise LedgerBroken(seq=event.seq, problem=f"it cannot be read ({error!r})") from None
        unknown = cut and known is None and change is not Change.PUBLISHED
        if not unknown and not allowed(known.state if known else None, change, target):
            source = known.state if known else "not there"
            raise LedgerBroken(
                seq=event.seq, problem=f"{event.type} to {target} does not follow from {source}"
            )
        place = f"{event.scope}/{event.queue}"
        messages[event.message_id] = Folded(place, target, attempts)
    return messages
