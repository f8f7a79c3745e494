"""The bar from below: a plain psycopg loop that writes the same rows into the same tables, and nothing else.

It learns from a room what is written for one message. What is the same in all of them stands in the
statements as a literal, the ledger's hash too: it does not check, count, wake or chain. That raises the bar.
"""

import contextlib
import pickle
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

import postroom
from benchmarks.databases.participant import BATCH
from benchmarks.queueing.letter import BODY, QUEUE, decode, encode, room_options
from postroom.ids import RandomIds

BARE = "bare psycopg"
Seen = dict[str, dict[str, Any]]
Claimed = tuple[int, str, bytes]

LOOK = {
    "messages": "SELECT * FROM messages",
    "contents": "SELECT * FROM contents",
    "ledger": "SELECT * FROM ledger ORDER BY seq DESC LIMIT 1",
}
TIMES = ("created_at", "updated_at", "claimed_at", "finished_at", "sort_key", "time")
LEASES = ("due_at", "lease_until")
# By which statements know a message: its number and its id; a time is $3.
NUMBERED = "unnest($1::bigint[], $2::text[]) AS t (seq, id)"
CLAIM = """
WITH picked AS MATERIALIZED (SELECT seq FROM messages WHERE line = {line} AND state = 'pending'
    ORDER BY sort_key, seq LIMIT {batch} FOR UPDATE SKIP LOCKED)
UPDATE messages m SET {sets} FROM picked p, contents c WHERE m.seq = p.seq AND c.seq = p.seq
RETURNING m.seq, m.id, c.body
"""


def _look(db: psycopg.Connection) -> Seen:
    with db.cursor(row_factory=dict_row) as cursor:
        return {table: cursor.execute(query.encode()).fetchall()[0] for table, query in LOOK.items()}


def _value(name: str, value: Any, seen: Seen, clock: str) -> str:
    """The SQL that makes this value anew for another message at another time."""
    if value == seen["messages"]["id"]:
        return "t.id"
    if value is not None and name in TIMES:
        return clock
    if value is not None and name in LEASES:
        return f"{clock} + 30000000"
    return sql.Literal(value).as_string()


def _insert(table: str, seen: Seen, **instead: str) -> str:
    row = seen[table]
    values = [instead.get(name) or _value(name, value, seen, "$3::bigint") for name, value in row.items()]
    return f"INSERT INTO {table} ({', '.join(row)}) SELECT {', '.join(values)} FROM {NUMBERED}"


def _sets(before: Seen, after: Seen, clock: str) -> str:
    rows = before["messages"], after["messages"]
    changed = [name for name in rows[0] if rows[0][name] != rows[1][name]]
    return ", ".join(f"{name} = {_value(name, rows[1][name], after, clock)}" for name in changed)


class BareLoop:
    def __init__(self, db: psycopg.Connection, seen: Sequence[Seen]) -> None:
        published, claimed, completed = seen
        event = {"seq": "nextval('bare_events')"}
        self._db = db
        self._ids = RandomIds()
        self._insert_message = _insert("messages", published, seq="t.seq")
        self._insert_content = _insert("contents", published, seq="t.seq", body="$4::bytea")
        self._published = _insert("ledger", published, **event)
        self._claimed = _insert("ledger", claimed, **event)
        self._completed = _insert("ledger", completed, **event)
        line = published["messages"]["line"]
        self._claim = CLAIM.format(line=line, batch=BATCH, sets=_sets(published, claimed, "$1::bigint"))
        sets = _sets(claimed, completed, "$2::bigint")
        self._complete = f"UPDATE messages SET {sets} WHERE seq = ANY($1::bigint[])"

    def _execute(self, text: str, values: Sequence[Any] = ()) -> "psycopg.Cursor[Any]":
        return self._db.execute(text.encode(), values)

    def publish_batch(self, size: int) -> None:
        now = time.time_ns() // 1000
        ids = self._ids.make(size, now)
        with self._db.pipeline():
            self._execute("BEGIN")
            rows = self._execute("SELECT nextval('message_numbers') FROM generate_series(1, $1)", (size,))
            known = ([number for (number,) in rows.fetchall()], ids, now)
            self._execute(self._insert_message, known)
            self._execute(self._insert_content, (*known, encode(BODY)))
            self._execute(self._published, known)
            self._execute("COMMIT")

    def step(self, done: Sequence[Claimed]) -> list[Claimed]:
        """Complete what is done and claim the next, in one transaction."""
        now = time.time_ns() // 1000
        with self._db.pipeline():
            self._execute("BEGIN")
            if done:
                numbers, ids, _ = map(list, zip(*done, strict=True))
                self._execute(self._complete, (numbers, now))
                self._execute(self._completed, (numbers, ids, now))
            claimed: list[Claimed] = self._execute(self._claim, (now,)).fetchall()
            if claimed:
                numbers, ids, _ = map(list, zip(*claimed, strict=True))
                self._execute(self._claimed, (numbers, ids, now))
            self._execute("COMMIT")
        for _, _, body in claimed:
            decode(body)
        return claimed

    async def publish(self, count: int) -> None:
        for _ in range(count // BATCH):
            self.publish_batch(BATCH)

    async def publish_one(self) -> None:
        self.publish_batch(1)

    async def drain(self) -> int:
        done, batch = 0, self.step(())
        while batch:
            done += len(batch)
            batch = self.step(batch)
        return done


def _learn(url: str, db: psycopg.Connection) -> list[Seen]:
    """What a room writes for a message that is published, claimed and completed. It is gone afterwards."""
    with postroom.open_sync(url, **room_options(housekeeping=False)) as room:
        room.create_queue(QUEUE, exist_ok=True)
        room.publish(QUEUE, BODY)
        seen = [_look(db)]
        [job] = room.claim(QUEUE)
        seen.append(_look(db))
        room.complete(job)
        seen.append(_look(db))
    for table in LOOK:
        db.execute(f"DELETE FROM {table}".encode())
    return seen


@contextlib.asynccontextmanager
async def open_bare(url: str) -> AsyncIterator[BareLoop]:
    """Who is first learns, and leaves what it learnt to the others."""
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as db:
        if db.execute("SELECT to_regclass('bare_events')").fetchall()[0][0] is None:
            seen = _learn(url, db)
            db.execute("CREATE SEQUENCE bare_events CACHE 100")
            db.execute("CREATE TABLE bare_seen (seen bytea)")
            db.execute("INSERT INTO bare_seen VALUES ($1)", (pickle.dumps(seen),))
        else:
            seen = pickle.loads(db.execute("SELECT seen FROM bare_seen").fetchall()[0][0])
        yield BareLoop(db, seen)
