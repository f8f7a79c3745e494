"""The schema, by numbered steps, each once however many processes open the store together."""

import psycopg

from postroom.errors import StoreCorrupt, StoreFailed, StoreHalfMoved, StoreTooNew
from postroom.stores.postgres.dialect import HERE
from postroom.stores.sql.migrations import read_steps
from postroom.stores.sql.transfer import MARK

LEAST_SERVER = 130000


def steps() -> dict[int, str]:
    return read_steps(HERE)


def check_whole(db: psycopg.Connection, place: str) -> None:
    """A move into it was not cut off."""
    if db.execute("SELECT 1 FROM meta WHERE name = $1", (MARK,)).fetchall():
        raise StoreHalfMoved(path=place)


def migrate(db: psycopg.Connection, place: str) -> None:
    """Bring the tables of the current schema to the newest version."""
    if db.info.server_version < LEAST_SERVER:
        raise StoreFailed(
            path=place, reason=f"PostgreSQL 13 or later is needed, not {db.info.server_version}"
        )
    [encoding, schema] = _one(db, "SELECT current_setting('server_encoding'), current_schema()")
    if encoding != "UTF8":
        raise StoreFailed(path=place, reason=f"the database must be in UTF8, not in {encoding}")
    if schema is None:
        raise StoreFailed(path=place, reason="the schema of its search_path is not there; create it first")
    known = steps()
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(hashtext('postroom'), hashtext(current_schema()))")
        version = read_version(db, place)
        if version > max(known):
            raise StoreTooNew(path=place, found=version, known=max(known))
        for number, script in known.items():
            if number > version:
                db.execute(script.encode())
                db.execute(
                    "INSERT INTO meta VALUES ('schema', $1) ON CONFLICT (name) DO UPDATE SET value = $1",
                    (str(number),),
                )


def read_version(db: psycopg.Connection, place: str) -> int:
    """0 where there are no tables yet."""
    names = ("meta", "messages")
    there = ", ".join(f"to_regclass(format('%I.{name}', current_schema()))" for name in names)
    meta, messages = _one(db, f"SELECT {there}")
    if meta is None and messages is None:
        return 0
    found = (
        db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() if meta is not None else None
    )
    if found is None or not found[0].isdigit():
        raise StoreCorrupt(path=place, problem="it has tables of another program")
    return int(found[0])


def _one(db: psycopg.Connection, sql: str) -> tuple[object, ...]:
    row = db.execute(sql.encode()).fetchone()
    assert row is not None
    return row
