"""Opening a database: the right server, schema and version, and named errors when something is wrong."""

from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from psycopg import errors as pg
from psycopg_pool import PoolClosed, PoolTimeout

from postroom.errors import StoreClosed, StoreCorrupt, StoreFailed, StoreFull, StoreReadOnly, StoreTooNew
from postroom.kernel.ports import StoreFault
from postroom.stores.postgres import PostgresStore, migrate
from postroom.stores.postgres.errors import CommitUnknown, MustWait, Overtaken, classify
from tests.postgres_server import Server, shared_server


@pytest.fixture
def server() -> Server:
    found = shared_server()
    if found is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return found


@pytest.fixture
def schema(server: Server) -> Iterator[str]:
    """The address of an empty schema, which goes with the test."""
    yield server.url("opening")
    with psycopg.connect(server.address(), autocommit=True) as db:
        db.execute("DROP SCHEMA opening CASCADE")


def change(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(sql.encode())


def test_a_database_of_a_newer_version_is_refused_and_not_touched(schema: str) -> None:
    PostgresStore(schema).close()
    change(schema, "UPDATE meta SET value = '9999' WHERE name = 'schema'")
    with pytest.raises(StoreTooNew, match="Upgrade Postroom"):
        PostgresStore(schema)
    with psycopg.connect(schema) as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == ("9999",)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE messages (theirs int)",
        "CREATE TABLE meta (name text, value text)",
        "CREATE TABLE meta (name text, value text); INSERT INTO meta VALUES ('schema', 'theirs')",
    ],
)
def test_tables_of_another_program_are_refused(schema: str, sql: str) -> None:
    change(schema, sql)
    with pytest.raises(StoreCorrupt, match="another program"):
        PostgresStore(schema)


def test_a_schema_that_is_not_there_is_named(server: Server) -> None:
    url = f"{server.address()}&options={quote('-csearch_path=nowhere')}"
    with pytest.raises(StoreFailed, match="create it first"):
        PostgresStore(url)


def test_a_database_in_another_encoding_is_refused(server: Server) -> None:
    change(
        server.address(),
        "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
    )
    try:
        with pytest.raises(StoreFailed, match="must be in UTF8, not in SQL_ASCII"):
            PostgresStore(server.address().replace("/postgres?", "/ascii?"))
    finally:
        change(server.address(), "DROP DATABASE ascii WITH (FORCE)")


def test_a_server_that_is_too_old_is_refused(schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No such server is at hand, so a later one is asked for than there is."""
    monkeypatch.setattr(migrate, "LEAST_SERVER", 10**6)
    with pytest.raises(StoreFailed, match="13 or later is needed"):
        PostgresStore(schema)


def test_a_server_that_only_reads_is_named(schema: str) -> None:
    with pytest.raises(StoreReadOnly, match="read-only transaction"):
        PostgresStore(f"{schema}%20-cdefault_transaction_read_only%3Don")


def test_a_store_that_is_closed_says_so_and_closes_once(schema: str) -> None:
    store = PostgresStore(schema)
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.begin()


@pytest.mark.parametrize(
    ("error", "fault", "named"),
    [
        (Overtaken("x"), StoreFault.DUPLICATE, StoreFailed),
        (pg.UniqueViolation("x"), StoreFault.DUPLICATE, StoreFailed),
        (pg.DiskFull("x"), StoreFault.FINAL, StoreFull),
        (PoolClosed("x"), StoreFault.FINAL, StoreClosed),
        (PoolTimeout("x"), StoreFault.RETRY, StoreFailed),
        (MustWait("x"), StoreFault.RETRY, StoreFailed),
        (pg.DeadlockDetected("x"), StoreFault.RETRY, StoreFailed),
        (psycopg.OperationalError("gone"), StoreFault.RETRY, StoreFailed),
        (CommitUnknown("x"), StoreFault.FINAL, StoreFailed),
        (pg.InsufficientPrivilege("x"), StoreFault.FINAL, StoreReadOnly),
        (pg.SyntaxError("x"), StoreFault.FINAL, StoreFailed),
        (ZeroDivisionError(), StoreFault.FINAL, ZeroDivisionError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_error_says_whether_to_try_again_and_what_it_is(
    error: Exception, fault: StoreFault, named: type[Exception]
) -> None:
    found, exception = classify(error, "postgresql://here/room")
    assert (found, type(exception)) == (fault, named)
