"""The two database servers, and what tests do to each of them from outside."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pymysql

from postroom.stores.mariadb import store as mariadb_stores
from postroom.stores.mariadb.connection import MariadbWriteConnection
from postroom.stores.postgres import store as postgres_stores
from postroom.stores.postgres.connection import PostgresWriteConnection
from tests import conftest, mariadb_server, postgres_server


@dataclass(frozen=True)
class ServerKind:
    name: str
    url: Callable[[Path], str]
    fetch: Callable[[str, str], list[tuple[Any, ...]]]
    """Rows of a statement, at an address."""
    waiting: str
    """How many transactions wait for a lock."""
    kill_connections: Callable[[str], None]
    restart: Callable[[bool], None]
    """With True, as after a power cut."""
    stores: Any
    """The module of the store."""
    store_class: Any
    connection_class: Any
    lost: Callable[[], Exception]
    """The driver's error when a connection breaks."""
    away: Any
    """What asking for the fate of a commit answers while the server is away."""


def _fetch_postgres(url: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        return db.execute(sql.encode()).fetchall()


def _fetch_mariadb(url: str, sql: str) -> list[tuple[Any, ...]]:
    server = mariadb_server.shared_server()
    assert server is not None
    return list(server.execute(sql, "room"))


def _kill_postgres(url: str) -> None:
    _fetch_postgres(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'",
    )


def _kill_mariadb(url: str) -> None:
    others = _fetch_mariadb(
        url, "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = 'room'"
    )
    server = mariadb_server.shared_server()
    assert server is not None
    for (number,) in others:
        # It may have gone by itself.
        with contextlib.suppress(pymysql.err.OperationalError):
            server.execute(f"KILL {number}")


def _restart_postgres(cut: bool) -> None:
    server = postgres_server.shared_server()
    assert server is not None
    server.stop("immediate" if cut else "fast")
    server.start()


def _restart_mariadb(cut: bool) -> None:
    server = mariadb_server.shared_server()
    assert server is not None
    server.stop(kill=cut)
    server.start()


KINDS = (
    ServerKind(
        "postgres",
        conftest.postgres_url,
        _fetch_postgres,
        "SELECT count(*) FROM pg_locks WHERE NOT granted",
        _kill_postgres,
        _restart_postgres,
        postgres_stores,
        postgres_stores.PostgresStore,
        PostgresWriteConnection,
        lambda: psycopg.OperationalError("the connection was lost"),
        "the server is away",
    ),
    ServerKind(
        "mariadb",
        conftest.mariadb_url,
        _fetch_mariadb,
        "SELECT CAST(variable_value AS INTEGER) FROM information_schema.global_status"
        " WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'",
        _kill_mariadb,
        _restart_mariadb,
        mariadb_stores,
        mariadb_stores.MariadbStore,
        MariadbWriteConnection,
        lambda: pymysql.err.OperationalError(2013, "Lost connection to server during query"),
        None,
    ),
)
