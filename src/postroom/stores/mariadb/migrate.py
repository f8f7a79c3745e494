"""The schema, by numbered steps. MariaDB commits each statement of a step by itself, so one that was cut off
is run again from its beginning; one process at a time does it."""

import re
from typing import Any

import pymysql

from postroom.errors import StoreCorrupt, StoreFailed, StoreHalfMoved, StoreTooNew
from postroom.stores.mariadb.connection import MariadbReadConnection, render, run
from postroom.stores.mariadb.dialect import HERE
from postroom.stores.mariadb.errors import code_of
from postroom.stores.sql.migrations import read_steps
from postroom.stores.sql.transfer import MARK

LEAST_SERVER = (10, 6)
LOCK_S = 60
NO_TABLE, NO_COLUMN = 1146, 1054


def steps() -> dict[int, str]:
    return read_steps(HERE)


def check_whole(db: "pymysql.Connection[Any]", place: str) -> None:
    """A move into it was not cut off."""
    if MariadbReadConnection(db).fetch("SELECT 1 FROM meta WHERE name = ?", (MARK,)):
        raise StoreHalfMoved(path=place)


def migrate(db: "pymysql.Connection[Any]", place: str) -> None:
    """Bring the tables of the database to the newest version."""
    reads = MariadbReadConnection(db)
    [(told,)] = reads.fetch("SELECT VERSION()")
    found = re.match(r"(\d+)\.(\d+)", told)
    if "mariadb" not in told.lower() or found is None or (int(found[1]), int(found[2])) < LEAST_SERVER:
        raise StoreFailed(path=place, reason=f"MariaDB 10.6 or later is needed, not {told}")
    known = steps()
    lock = "CONCAT('postroom.', MD5(DATABASE()))"
    if reads.fetch(f"SELECT GET_LOCK({lock}, ?)", (LOCK_S,)) != [(1,)]:
        raise StoreFailed(path=place, reason="another process brings its tables up to date; try again")
    try:
        version = read_version(reads, place)
        if version > max(known):
            raise StoreTooNew(path=place, found=version, known=max(known))
        for number, script in known.items():
            if number > version:
                run(db, [script.strip().removesuffix(";").encode()])
                run(db, [render(db, "REPLACE INTO meta VALUES ('schema', ?)", (str(number),))])
    finally:
        reads.fetch(f"SELECT RELEASE_LOCK({lock})")


def read_version(reads: MariadbReadConnection, place: str) -> int:
    """A step that was cut off has left its tables, and no number."""
    try:
        found = dict(reads.fetch("SELECT name, value FROM meta"))
    except pymysql.MySQLError as error:
        if code_of(error) not in (NO_TABLE, NO_COLUMN):
            raise
        if code_of(error) == NO_TABLE and not reads.fetch("SHOW TABLES LIKE 'messages'"):
            return 0
        found = {}
    number = found.get("schema", "0" if "begun" in found else "")
    if not number.isdigit():
        raise StoreCorrupt(path=place, problem="it has tables of another program")
    return int(number)
