"""What a PostgreSQL server says of itself and of a store on it."""

import psycopg

from postroom.stores.postgres.connection import CONNECT_S
from postroom.stores.postgres.errors import classify
from postroom.stores.postgres.migrate import read_version, steps
from postroom.stores.postgres.store import name_place
from postroom.stores.sql.info import StoreInfo, StoreState
from postroom.stores.sql.tables import BOUNDED_BY

SETTINGS = ("synchronous_commit", "fsync", "full_page_writes", "autovacuum", "max_connections")


def read_state(url: str) -> StoreState:
    place = name_place(url)
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_S) as db:
            [(now,)] = db.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchall()
            return StoreState(schema=read_version(db, place), newest=max(steps()), now=now)
    except psycopg.Error as error:
        raise classify(error, place)[1] from error


def read_info(url: str) -> StoreInfo:
    place = name_place(url)
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=CONNECT_S) as db:
            found = db.execute(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)", (list(SETTINGS),)
            )
            settings = {name: str(value) for name, value in found}
            names = list(BOUNDED_BY)
            sql = "SELECT relname::text, pg_total_relation_size(oid) FROM pg_class WHERE relname = ANY(%s)"
            sizes = dict(db.execute(f"{sql} AND relnamespace = current_schema()::regnamespace", (names,)))
            rows = {
                name: db.execute(f"SELECT count(*) FROM {name}".encode()).fetchall()[0][0]  # noqa: S608 - ours
                for name in names
                if name in sizes
            }
            kind = f"PostgreSQL {db.info.parameter_status('server_version')}"
    except psycopg.Error as error:
        raise classify(error, place)[1] from error
    warnings = [
        f"{name} is off: a power cut may lose what was accepted; set it on"
        for name in ("synchronous_commit", "fsync", "full_page_writes")
        if settings.get(name) == "off"
    ]
    if settings.get("autovacuum") == "off":
        warnings.append("autovacuum is off: tables grow for ever; set it on")
    return StoreInfo(
        place=place,
        kind=kind,
        bytes=sum(sizes.values()),
        rows=rows,
        settings=settings,
        warnings=warnings,
    )
