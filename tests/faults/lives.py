"""The life of every message as the ledger tells it, and what must be true of any such telling.

Knows no store: it reads events, so it holds for SQLite and for the store in memory alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from postroom.errors import LedgerBroken
from postroom.kernel.content_check import ContentCheck
from postroom.kernel.ledger import Event, Folded, fold, verify
from postroom.kernel.reader import Reader
from postroom.kernel.states import Change, State, allowed

ALL = 10**9


@dataclass
class Turn:
    """One claim: its number, and the events that followed until the next."""

    number: int
    seq: int
    after: list[Event] = field(default_factory=list)

    @property
    def end(self) -> Event | None:
        """The event that ended the claim; one that leaves the message claimed does not. A holder that was
        late and not replaced may complete all the same."""
        ended = [event for event in self.after if event.details["state"] != State.CLAIMED]
        late = (event for event in ended if event.type == Change.COMPLETED and event.details.get("late"))
        return next(late, ended[0] if ended else None)

    @property
    def extensions(self) -> int:
        return sum(event.type == Change.EXTENDED for event in self.after)


@dataclass
class Life:
    events: list[Event]
    turns: dict[int, Turn]
    state: State
    attempts: int
    place: str
    line: tuple[str, int]

    def count(self, change: Change) -> int:
        return sum(event.type == change for event in self.events)


def read(reader: Reader) -> tuple[list[Event], bool]:
    """The whole ledger, and whether it is whole: a pruned one begins in the middle."""
    anchor = reader.anchor()
    return reader.events(anchor.seq, ALL), anchor.seq == 0


def check_chain(reader: Reader, events: list[Event]) -> list[str]:
    try:
        verify(events, reader.anchor(), reader.head())
        contents = ContentCheck()
        for event in events:
            contents.follow(event)
        contents.compare(reader.reads)
    except (LedgerBroken, TypeError) as error:
        return [f"ledger: {error}"]
    times = [event.time for event in events]
    return [] if times == sorted(times) else ["ledger: time goes back"]


def check_fold(
    events: list[Event], start: dict[str, Folded], whole: bool, rows: dict[str, Folded], pruned: set[str]
) -> list[str]:
    """Folding the ledger gives the state of every row. A message pruned from the archive has no row.

    Of a ledger whose beginning was pruned, the fold goes on from where messages stood then."""
    try:
        folded = fold(events, dict(start), cut=not whole)
    except LedgerBroken as error:
        return [f"fold: {error}"]
    problems = []
    for id_, expected in folded.items():
        if id_ in pruned:
            continue
        row = rows.get(id_)
        if row is None:
            problems.append(f"fold: {id_} is {expected.state} in the ledger but has no row")
        elif row != expected:
            problems.append(f"fold: {id_} is {row} but the ledger says {expected}")
    return problems + [f"fold: {id_} has a row but no event" for id_ in rows.keys() - folded.keys()]


def lives(events: Iterable[Event]) -> tuple[dict[str, Life], list[str]]:
    """Every message's life, and the claims that overlap. The first event of a cut-off life is believed."""
    found: dict[str, Life] = {}
    problems: list[str] = []
    for event in events:
        if event.message_id is None or not event.type.startswith("message."):
            continue
        details = event.details
        change, state = Change(event.type), State(details["state"])
        life = found.get(event.message_id)
        if life is None:
            line = (f"{event.scope}/{details.get('from', event.queue)}", details.get("subscription", 0))
            life = found[event.message_id] = Life([], {}, state, details["attempts"], "", line)
        elif not allowed(life.state, change, state):
            problems.append(f"claims: {event.type} of {event.message_id} at {event.seq} while {life.state}")
        life.events.append(event)
        if change is Change.CLAIMED:
            number = max(life.turns, default=0) + 1
            life.turns[number] = Turn(number, event.seq)
            if len(life.events) > 1 and details["attempts"] != life.attempts + 1:
                problems.append(f"attempts: {event.message_id} went from {life.attempts} by a claim")
        elif life.turns:
            life.turns[max(life.turns)].after.append(event)
        life.state, life.attempts = state, details["attempts"]
        life.place = f"{event.scope}/{event.queue}"
    return found, problems


def check_attempts(found: dict[str, Life], most: dict[str, int]) -> list[str]:
    """No message is tried more often than its queue ever allowed; the first try is always free."""
    return [
        f"attempts: {id_} was tried {event.details['attempts']} times on {life.line[0]}"
        for id_, life in found.items()
        for event in life.events
        if event.details["attempts"] > max(1, most.get(life.line[0], 0))
    ]


class _Waiting:
    """Who waits on each line, by the time of entry; ties by the order of publishing."""

    def __init__(self) -> None:
        self.lines: dict[tuple[str, int], dict[str, tuple[int, int]]] = {}
        self.entered: dict[str, int] = {}
        self.published: dict[str, tuple[int, int]] = {}
        self.line_of: dict[str, tuple[str, int]] = {}
        self.anew = False
        """Whether a queue was just given another ordering: then its messages are placed by their age."""

    def note(self, event: Event) -> None:
        id_, details, change = event.message_id or "", event.details, Change(event.type)
        if change is Change.PUBLISHED:
            place = details.get("from", event.queue)
            self.line_of[id_] = (f"{event.scope}/{place}", details.get("subscription", 0))
            self.published[id_] = (event.time, event.seq)
            parent = details.get("parent") if "subscription" in details else None
            self.entered[id_] = self.entered.get(parent, event.time) if parent else event.time
        if id_ not in self.published:
            return
        if change is Change.REPLAYED:
            self.entered[id_] = event.time
        elif change is Change.REORDERED and self.anew:
            self.entered[id_] = self.published[id_][0]
        line = self.lines.setdefault(self.line_of[id_], {})
        if details["state"] == State.PENDING:
            line[id_] = (self.entered[id_], self.published[id_][1])
        else:
            line.pop(id_, None)


def check_order(events: Iterable[Event]) -> list[str]:
    """Every claim from a fifo queue took the one that had waited longest; none came from a paused queue."""
    waiting = _Waiting()
    ordering: dict[str, str | None] = {}
    closed: set[str] = set()
    problems = []
    for event in events:
        place = f"{event.scope}/{event.queue}"
        waiting.anew &= event.type == Change.REORDERED
        if event.type in ("queue.created", "queue.updated"):
            before, ordering[place] = ordering.get(place), event.details.get("ordering", ordering.get(place))
            waiting.anew = ordering[place] != before
        elif event.type == "queue.state":
            (closed.add if event.details["to"] in ("paused", "archived") else closed.discard)(place)
        if event.message_id is None or not event.type.startswith("message."):
            continue
        if event.type == Change.CLAIMED:
            line = waiting.lines.get(waiting.line_of.get(event.message_id, ("", 0)), {})
            mine = line.get(event.message_id)
            ahead = [id_ for id_, key in line.items() if mine is not None and key < mine]
            if ahead and ordering.get(place) == "fifo":
                problems.append(f"order: {event.message_id} was claimed at {event.seq} before {ahead[0]}")
            if place in closed:
                problems.append(f"order: {event.message_id} was claimed at {event.seq} from a closed queue")
        waiting.note(event)
    return problems
