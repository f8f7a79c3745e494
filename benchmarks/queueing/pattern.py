"""What a room writes for one message, learnt from a room, so that the bare loops write the very same rows.

A message is published, claimed and completed with the clock held still. Each stored value that is the id, the
number, the token or a time becomes a parameter of the bare statements; every other value stands in them as a
literal, the ledger's hash too: the bare loops do not chain, which makes the bar higher.
"""

import shutil
from pathlib import Path
from typing import Any

import apsw
import msgspec

import postroom
from benchmarks.queueing.letter import ACTOR, BODY, QUEUE, encode
from postroom.clock import ManualClock

LEASE_S = 30
LEASE_US = LEASE_S * 1_000_000


class Pattern(msgspec.Struct, frozen=True):
    """Statements with the parameters ?1 message number, ?2 id, ?3 time, ?4 body or token, ?5 event number."""

    file: Path
    line: int
    messages: int
    events: int
    insert_message: str
    insert_content: str
    insert_published: str
    claim: str
    insert_claimed: str
    complete: str
    insert_completed: str

    def copy_to(self, path: Path) -> None:
        """A file with our schema, the same places and one finished message."""
        shutil.copy(self.file, path)


class _Seen(msgspec.Struct):
    """The stored rows after one step."""

    now: int
    message: dict[str, Any]
    content: dict[str, Any]
    event: dict[str, Any]


def _row(db: apsw.Connection, sql: str) -> dict[str, Any]:
    cursor = db.execute(sql)
    names = [column[0] for column in cursor.get_description()]
    return dict(zip(names, next(cursor), strict=True))


def _look(file: Path, now: int) -> _Seen:
    db = apsw.Connection(str(file))
    try:
        return _Seen(
            now,
            _row(db, "SELECT * FROM messages"),
            _row(db, "SELECT * FROM contents"),
            _row(db, "SELECT * FROM ledger ORDER BY seq DESC"),
        )
    finally:
        db.close()


def learn(folder: Path) -> Pattern:
    file = folder / "pattern.db"
    clock = ManualClock()
    options: dict[str, Any] = {"actor": ACTOR, "clock": clock, "housekeeping": False}

    with postroom.open_sync(str(file), **options) as room:
        room.create_queue(QUEUE)
        clock.advance(10)
        room.publish(QUEUE, BODY)
    published = _look(file, clock.now())
    clock.advance(10)
    with postroom.open_sync(str(file), **options) as room:
        [job] = room.claim(QUEUE, lease=LEASE_S)
    claimed = _look(file, clock.now())
    clock.advance(10)
    with postroom.open_sync(str(file), **options) as room:
        room.complete(job)
    completed = _look(file, clock.now())

    return Pattern(
        file=file,
        line=published.message["line"],
        messages=published.message["seq"],
        events=completed.event["seq"],
        insert_message=_insert("messages", published.message, published, "?1"),
        insert_content=_insert("contents", published.content, published, "?1"),
        insert_published=_insert("ledger", published.event, published, "?5"),
        claim=_update(published, claimed) + " WHERE seq = ?1",
        insert_claimed=_insert("ledger", claimed.event, claimed, "?5"),
        complete=_update(claimed, completed) + " WHERE seq = ?1 AND token = ?4",
        insert_completed=_insert("ledger", completed.event, completed, "?5"),
    )


def _expression(value: Any, seen: _Seen) -> str:
    """The SQL that makes this value anew for another message at another time."""
    due = seen.now + LEASE_US
    if value == seen.message["id"]:
        return "?2"
    if value == seen.now:
        return "?3"
    if value == due:
        return f"?3 + {LEASE_US}"
    if value is not None and value in (seen.message["token"], encode(BODY)):
        return "?4"
    literal = apsw.format_sql_value(value)
    if isinstance(value, str) and str(due) in value:
        return literal.replace(str(due), f"' || (?3 + {LEASE_US}) || '")
    return literal


def _insert(table: str, row: dict[str, Any], seen: _Seen, number: str) -> str:
    values = [number if name == "seq" else _expression(value, seen) for name, value in row.items()]
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(values)})"


def _update(before: _Seen, after: _Seen) -> str:
    changed = [name for name, value in after.message.items() if value != before.message[name]]
    sets = [f"{name} = {_expression(after.message[name], after)}" for name in changed]
    return f"UPDATE messages SET {', '.join(sets)}"
