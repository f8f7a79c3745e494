"""A store's rows, read past its port, and what must be true between its tables."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import apsw

from postroom.kernel import jsontext
from postroom.kernel.model import DEAD_LETTER
from postroom.kernel.rows import ROW_FIELDS, Row
from postroom.kernel.states import OPEN, State

COLUMNS = ", ".join(ROW_FIELDS)

# `meta` says whether the file was closed well, and runs how long they took: neither is history.
FINGERPRINTED = (
    *("scopes", "queues", "counts", "messages", "contents", "archive", "subscriptions", "records", "ledger"),
    *("chain", "sqlite_sequence", "documents WHERE kind <> 'postroom:run'"),
)


@dataclass
class Tables:
    live: list[Row]
    archived: list[Row]
    bodies: dict[str, Any]
    contents: set[int]
    counts: dict[tuple[int, int, str], int]
    queues: dict[int, tuple[str, bool, dict[str, Any]]]
    """Path, whether it is still there, and settings, by number."""
    subscriptions: set[int]
    records: Counter[tuple[str, str]]
    message_seq: int
    damage: str

    def by_id(self) -> dict[str, Row]:
        return {row.id: row for row in (*self.live, *self.archived)}


Fetch = Callable[[str], Iterable[tuple[Any, ...]]]


def read_file(db: apsw.Connection) -> Tables:
    """Of SQLite, which can also say whether the file is sound."""
    [(message_seq,)] = db.execute("SELECT message_seq FROM chain WHERE name = 'head'").fetchall()
    [(damage,)] = db.execute("PRAGMA integrity_check(1)").fetchall()
    assert isinstance(message_seq, int)
    return read(db.execute, message_seq, str(damage))


def read(fetch: Fetch, message_seq: int, damage: str = "ok") -> Tables:
    def rows(table: str) -> list[Row]:
        return [Row(*values) for values in fetch(f"SELECT {COLUMNS} FROM {table} ORDER BY seq")]

    bodies = dict(
        fetch(
            "SELECT m.id, c.body FROM messages m JOIN contents c ON c.seq = m.seq"
            " UNION ALL SELECT id, body FROM archive"
        )
    )
    queues = {
        id_: (f"{scope.partition('#')[0]}/{slug}", deleted is None, jsontext.decode(settings))
        for id_, scope, slug, deleted, settings in fetch(
            "SELECT q.id, s.slug, q.slug, q.deleted_at, q.settings"
            " FROM queues q JOIN scopes s ON s.id = q.scope_id"
        )
    }
    return Tables(
        live=rows("messages"),
        archived=rows("archive"),
        bodies={id_: None if body is None else jsontext.decode(body) for id_, body in bodies.items()},
        contents={seq for (seq,) in fetch("SELECT seq FROM contents")},
        counts={(q, s, state): n for q, s, state, n in fetch("SELECT * FROM counts")},
        queues=queues,
        subscriptions={id_ for (id_,) in fetch("SELECT id FROM subscriptions")},
        records=Counter((str(kind), str(key)) for kind, key in fetch("SELECT kind, key FROM records")),
        message_seq=message_seq,
        damage=damage,
    )


def fingerprint(db: apsw.Connection) -> int:
    """A number for everything that is history; equal numbers, equal history."""
    return hash(tuple(tuple(db.execute(f"SELECT * FROM {table}")) for table in FINGERPRINTED))


def check(tables: Tables) -> list[str]:
    problems = [] if tables.damage == "ok" else [f"file: {tables.damage}"]
    problems += _check_counts(tables)
    problems += _check_pairs(tables)
    problems += _check_keys(tables)
    for row in tables.live:
        problems += [f"row: {row.id} is {row.state} but {what}" for what in _wrong(row)]
    problems += _check_reach(tables)
    return problems


def _check_counts(tables: Tables) -> list[str]:
    def place(row: Row) -> tuple[int, int, str]:
        # Dead letters count together, whoever they were meant for.
        home = tables.queues[row.queue_id][0].endswith(f"/{DEAD_LETTER}")
        return row.queue_id, 0 if home else row.subscription_id or 0, row.state

    recount = Counter(place(row) for row in tables.live)
    return [
        f"counts: {key} is {tables.counts.get(key, 0)}, but there are {recount[key]}"
        for key in tables.counts.keys() | recount.keys()
        if tables.counts.get(key, 0) != recount[key]
    ]


def _check_pairs(tables: Tables) -> list[str]:
    seqs = [row.seq for row in tables.live]
    problems = [f"content: message {seq} has none" for seq in set(seqs) - tables.contents]
    problems += [f"content: {seq} belongs to no message" for seq in tables.contents - set(seqs)]
    ids = Counter(row.id for row in (*tables.live, *tables.archived))
    problems += [f"row: {id_} is there {n} times" for id_, n in ids.items() if n > 1]
    newest = max((row.seq for row in (*tables.live, *tables.archived)), default=0)
    if newest > tables.message_seq:
        problems.append(f"row: number {newest} was given, but the store remembers {tables.message_seq}")
    return problems


def _check_keys(tables: Tables) -> list[str]:
    keys = Counter(
        (row.origin_queue_id or row.queue_id, row.idempotency_key)
        for row in (*tables.live, *tables.archived)
        if row.idempotency_key is not None
    )
    return [f"key: {key} was accepted {n} times" for key, n in keys.items() if n > 1]


def _wrong(row: Row) -> list[str]:
    """What a row of its state may not look like."""
    problems = []
    if (row.state == State.CLAIMED) != (row.lease_until is not None):
        problems.append(f"its lease ends at {row.lease_until}")
    if row.state == State.CLAIMED and not (row.token and row.due_at == row.lease_until):
        problems.append(f"its token is {row.token} and it comes due at {row.due_at}")
    if row.state == State.DELAYED and row.token is not None:
        problems.append("still has a token")
    if row.state == State.DELAYED and (row.visible_at is None or row.due_at is None):
        problems.append("will never wake")
    if row.state not in OPEN and (row.due_at is not None or row.finished_at is None):
        problems.append(f"comes due at {row.due_at}, ended at {row.finished_at}")
    if row.state in OPEN and row.finished_at is not None:
        problems.append("has ended")
    if (row.state == State.DEAD) and row.origin_queue_id is None:
        problems.append("does not know where it came from")
    if row.token is not None and not row.token.startswith(f"{row.claims}-"):
        problems.append(f"its token {row.token} is not of claim {row.claims}")
    return problems


def _check_reach(tables: Tables) -> list[str]:
    """No open message may lie where nobody can ever get it."""
    deliveries = Counter(
        (row.parent_id, row.subscription_id)
        for row in tables.live
        if row.subscription_id is not None and row.state in OPEN
    )
    problems = [
        f"twice: subscriber {who} is to get {id_} {n} times" for (id_, who), n in deliveries.items() if n > 1
    ]
    open_parents = {id_ for id_, _ in deliveries}
    for row in tables.live:
        if row.state not in OPEN:
            continue
        path, there, settings = tables.queues[row.queue_id]
        if not there:
            problems.append(f"stuck: {row.id} is {row.state} in {path}, which was deleted")
        elif row.subscription_id is not None:
            if row.subscription_id not in tables.subscriptions:
                problems.append(f"stuck: {row.id} is {row.state} for a subscriber of {path} who left")
        elif settings["consumer_mode"] == "broadcast" and row.id not in open_parents:
            problems.append(f"stuck: {row.id} is {row.state} in {path}, but all its deliveries have ended")
    return problems
