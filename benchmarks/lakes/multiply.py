"""Many months from one: a generated store is copied into a larger one, each copy later in time.

The copies go through the kernel's chaining, so the result is a store like any other: it verifies, and its
ledger folds to its rows. Making two million events one by one would take minutes.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw

from postroom.kernel.ledger import Chaining, EventDraft, Head
from postroom.stores.sqlite import SqliteStore

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_TIMES = {
    "created_at", "updated_at", "expires_at", "visible_at", "claimed_at", "lease_until", "finished_at",
    "due_at", "deadline", "delay_until",
}  # fmt: skip
_IDS = {"id", "correlation_id", "causation_id", "parent_id", "message_id"}
_TABLES = ("messages", "contents", "archive", "records")


class Copy:
    """How one copy differs: everything is later, and every name is another."""

    def __init__(self, number: int, span: int, events: int, messages: int, records: int) -> None:
        self.number = number
        self.shift = number * span
        self.events = number * events
        self.messages = number * messages
        self.records = number * records
        self._ids: dict[str | None, str | None] = {None: None}

    def id(self, text: str | None) -> str | None:
        """Most ids come again and again, so each is made once."""
        found = self._ids.get(text)
        if found is None and text is not None:
            found = self._ids[text] = self._made(text)
        return found

    def _made(self, text: str) -> str:
        if not self.number:
            return text
        if _UUID.fullmatch(text):
            stamp = int(text[:8] + text[9:13], 16) + self.shift // 1000
            head = f"{stamp:012x}"
            return f"{head[:8]}-{head[8:]}{text[13:]}"
        return f"{text}~{self.number}"

    def data(self, text: str) -> str:
        if self.number and '"key"' in text:
            text = text.replace('","record"', f'~{self.number}","record"')
        if self.number and '"parent"' in text:
            text = _UUID.sub(lambda match: self.id(match[0]) or "", text)
        return text

    def rows(self, table: str, names: list[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[list[Any]]:
        changed = [(place, self._change(table, name)) for place, name in enumerate(names)]
        wanted = [(place, change) for place, change in changed if change is not None]
        for row in rows:
            made = list(row)
            for place, change in wanted:
                if made[place] is not None:
                    made[place] = change(made[place])
            yield made

    def _change(self, table: str, name: str) -> Callable[[Any], Any] | None:
        if table == "records" and name == "id":
            return lambda value: value + self.records
        if name in _IDS:
            return self.id
        if name in _TIMES:
            return lambda value: value + self.shift
        if name == "seq":
            return lambda value: value + self.messages
        if name == "sort_key":
            return lambda value: value + self.shift if value > 0 else value
        if name == "archived_seq":
            return lambda value: value + self.events
        if name in ("idempotency_key", "key") and self.number:
            return lambda value: f"{value}~{self.number}"
        return None


def multiply(base: Path, target: Path, events: int, told: Callable[[int], None] = lambda _: None) -> int:
    """Copies of `base` until there are at least so many events; how many there are.

    A target that has some copies already gets the missing ones.
    """
    SqliteStore(target, durability="relaxed").close()
    db = apsw.Connection(str(target))
    db.pragma("synchronous", "off")
    db.pragma("cache_size", -262144)
    db.execute("ATTACH ? AS base", (str(base),))
    one = lambda sql: next(iter(db.execute(sql)))  # noqa: E731 - short and local
    count, first, last = one("SELECT count(*), min(time), max(time) FROM base.ledger")
    (messages,) = one("SELECT message_seq FROM base.chain WHERE name = 'head'")
    (records,) = one("SELECT coalesce(max(id), 0) FROM base.records")
    seq, hash_, time = one("SELECT n, hash, time FROM figures WHERE name = 'head'")
    chaining = Chaining(Head(seq, hash_, time))
    day = 86_400_000_000
    span = ((last - first) // day + 1) * day
    for number in range(seq // count, -(-events // count)):
        with db:
            _add(db, Copy(number, span, count, messages, records), chaining)
        told(chaining.head.seq)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (made,) = one("SELECT seq FROM chain WHERE name = 'head'")
    db.close()
    return made


def _add(db: apsw.Connection, copy: Copy, chaining: Chaining) -> None:
    for table in ("scopes", "queues", "subscriptions", "documents"):
        names = ", ".join(_columns(db, table))
        db.execute(f"INSERT OR REPLACE INTO {table} ({names}) SELECT {names} FROM base.{table}")
    db.execute(
        "INSERT OR REPLACE INTO figures SELECT queue_id, subscription_id, name, n * ?, NULL, NULL, NULL"
        " FROM base.figures WHERE queue_id > 0",
        (copy.number + 1,),
    )
    db.executemany(
        "INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        map(chaining.row, _drafts(db, copy)),
    )
    for table in _TABLES:
        names = _columns(db, table)
        rows = db.execute(f"SELECT {', '.join(names)} FROM base.{table}")
        marks = ", ".join("?" * len(names))
        db.executemany(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", copy.rows(table, names, rows)
        )
    (messages,) = next(iter(db.execute("SELECT message_seq FROM base.chain WHERE name = 'head'")))
    db.execute(
        "UPDATE figures SET n = ?, hash = ?, time = ?, message_seq = ? WHERE name = 'head'",
        (chaining.head.seq, chaining.head.hash, chaining.head.time, messages * (copy.number + 1)),
    )


def _columns(db: apsw.Connection, table: str) -> list[str]:
    """Those that are stored; what SQLite works out itself is not named."""
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def _drafts(db: apsw.Connection, copy: Copy) -> Iterator[EventDraft]:
    make, data, shift = copy.id, copy.data, copy.shift
    for event in db.execute("SELECT * FROM base.ledger ORDER BY seq"):
        _, time, kind, tenant, scope, queue, message, talk, cause, actor, text, _ = event
        yield EventDraft(
            time + shift,
            kind,
            tenant,
            scope,
            queue,
            make(message),
            make(talk),
            make(cause),
            actor,
            data(text),
        )
