"""Opening a database: the right server, schema and version, and named errors when something is wrong."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pymysql
import pytest

from postroom.errors import (
    InvalidField,
    StoreClosed,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
)
from postroom.kernel.ports import StoreFault
from postroom.stores.mariadb import MariadbStore, migrate
from postroom.stores.mariadb.address import read_address
from postroom.stores.mariadb.connection import MariadbWriteConnection
from postroom.stores.mariadb.errors import PacketTooLarge, PoolDrained, PoolShut, classify
from postroom.stores.mariadb.info import read_info
from postroom.stores.sql.contention import CommitUnknown, MustWait, Overtaken
from tests.mariadb_server import MariadbServer, shared_server


@pytest.fixture
def server() -> MariadbServer:
    found = shared_server()
    if found is None:
        pytest.skip("MariaDB is not installed: apt-get install mariadb-server")
    return found


@pytest.fixture
def url(server: MariadbServer) -> Iterator[str]:
    """The address of an empty database, which goes with the test."""
    yield server.url("opening")
    server.execute("DROP DATABASE opening")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def test_a_database_of_a_newer_version_is_refused_and_not_touched(server: MariadbServer, url: str) -> None:
    MariadbStore(url).close()
    server.execute("UPDATE meta SET value = '9999' WHERE name = 'schema'", "opening")
    with pytest.raises(StoreTooNew, match="Upgrade Postroom"):
        MariadbStore(url)
    assert server.execute("SELECT value FROM meta WHERE name = 'schema'", "opening") == (("9999",),)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE messages (theirs int)",
        "CREATE TABLE meta (name text, value text)",
        "CREATE TABLE meta (their text)",
        "CREATE TABLE meta (name text, value text); INSERT INTO meta VALUES ('schema', 'theirs')",
    ],
)
def test_tables_of_another_program_are_refused(server: MariadbServer, url: str, sql: str) -> None:
    server.execute(sql, "opening")
    with pytest.raises(StoreCorrupt, match="another program"):
        MariadbStore(url)


def test_a_step_that_was_cut_off_is_run_again(server: MariadbServer, url: str) -> None:
    MariadbStore(url).close()
    server.execute(
        "DELETE FROM meta WHERE name = 'schema'; DROP TABLE due; DROP TRIGGER messages_dropped", "opening"
    )
    store = MariadbStore(url)
    with store.reader() as reads:
        assert reads.chain().head.seq == 0
    store.close()
    assert server.execute("SHOW TABLES LIKE 'due'", "opening") == (("due",),)


@pytest.mark.parametrize(
    ("least", "told"), [((99, 0), "MariaDB 10.6 or later is needed, not 1")], ids=["too old"]
)
def test_a_server_that_is_too_old_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch, least: tuple[int, int], told: str
) -> None:
    """No such server is at hand, so a later one is asked for than there is."""
    monkeypatch.setattr(migrate, "LEAST_SERVER", least)
    with pytest.raises(StoreFailed, match=told):
        MariadbStore(url)


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("mariadb://me@db.example", "names no database"),
        ("mariadb://me@db.example:port/room", "cannot be read"),
        ("mariadb://me@db.example/room?sslmode=verify-full", "has the option sslmode"),
        ("mariadb://me@localhost/room?unix_socket=/nowhere", "no server answers there"),
        ("mariadb://me:secret@127.0.0.1:9/room", "no server answers there"),
    ],
)
def test_an_address_that_leads_nowhere_is_named_without_its_password(address: str, told: str) -> None:
    with pytest.raises(StoreFailed, match=told) as caught:
        MariadbStore(address)
    assert "secret" not in str(caught.value)


def test_options_of_the_address_reach_the_driver() -> None:
    from postroom.stores.mariadb.address import read_address

    found = read_address("mariadb://m%40x:p%2Fw@db.example/room?ssl_ca=/ca.pem&ssl_verify_identity=1").options
    assert (found["user"], found["password"], found["host"]) == ("m@x", "p/w", "db.example")
    assert (found["ssl_ca"], found["ssl_verify_identity"], found["ssl_disabled"]) == ("/ca.pem", True, False)


def test_a_store_that_is_closed_says_so_and_closes_once(url: str) -> None:
    store = MariadbStore(url)
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.begin()
    with pytest.raises(StoreClosed), store.reader():
        pass
    with pytest.raises(PoolShut):
        store._pool.take()


def test_a_pool_in_use_is_waited_for_and_then_named(url: str) -> None:
    store = MariadbStore(url)
    try:
        store._pool._wait_s = 0
        taken = [store._pool.take() for _ in range(8)]
        with pytest.raises(PoolDrained):
            store._pool.take()
        store._pool._is_closed = True
        for db in taken:
            store._pool.give_back(db, lost=False)
        assert not any(db.open for db in taken)
    finally:
        store.close()


def test_what_is_larger_than_the_server_takes_is_refused_by_its_size(server: MariadbServer, url: str) -> None:
    with server.connect("opening") as db:
        connection = MariadbWriteConnection(db, most_bytes=1000)
        connection.begin("SELECT 1", "SELECT 2", 5)
        for _ in range(3):
            connection.write("SET @large = ?", ("x" * 900,))
        assert connection.fetch("SELECT LENGTH(@large)") == [(900,)], "in several packets"
        connection.write("SET @large = ?", ("x" * 2000,))
        with pytest.raises(PacketTooLarge, match="max_allowed_packet"):
            connection.fetch("SELECT 1")
        connection.rollback()


@pytest.mark.parametrize(
    ("error", "fault", "named"),
    [
        (Overtaken("x"), StoreFault.DUPLICATE, StoreFailed),
        (pymysql.err.IntegrityError(1062, "x"), StoreFault.DUPLICATE, StoreFailed),
        (pymysql.err.OperationalError(1114, "x"), StoreFault.FINAL, StoreFull),
        (PoolShut("x"), StoreFault.FINAL, StoreClosed),
        (PoolDrained("x"), StoreFault.RETRY, StoreFailed),
        (MustWait("x"), StoreFault.RETRY, StoreFailed),
        (pymysql.err.OperationalError(1213, "deadlock"), StoreFault.RETRY, StoreFailed),
        (pymysql.err.OperationalError(1205, "waited"), StoreFault.RETRY, StoreFailed),
        (pymysql.err.OperationalError(1020, "changed"), StoreFault.RETRY, StoreFailed),
        (pymysql.err.OperationalError(2013, "gone"), StoreFault.RETRY, StoreFailed),
        (pymysql.err.InterfaceError(0, ""), StoreFault.RETRY, StoreFailed),
        (CommitUnknown("x"), StoreFault.FINAL, StoreFailed),
        (PacketTooLarge("x"), StoreFault.FINAL, StoreFailed),
        (pymysql.err.OperationalError(1290, "read-only"), StoreFault.FINAL, StoreReadOnly),
        (pymysql.err.DataError(1406, "Data too long for column 'holder'"), StoreFault.FINAL, InvalidField),
        (pymysql.err.ProgrammingError(1064, "syntax"), StoreFault.FINAL, StoreFailed),
        (ZeroDivisionError(), StoreFault.FINAL, ZeroDivisionError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_error_says_whether_to_try_again_and_what_it_is(
    error: Exception, fault: StoreFault, named: type[Exception]
) -> None:
    found, exception = classify(error, "mariadb://here/room")
    assert (found, type(exception)) == (fault, named)


def test_a_server_that_hangs_up_is_named(listener: socket.socket) -> None:
    def hang_up() -> None:
        listener.accept()[0].close()

    thread = threading.Thread(target=hang_up)
    thread.start()
    try:
        with pytest.raises(StoreFailed, match=r"127\.0\.0\.1"):
            MariadbStore(f"mariadb://me@127.0.0.1:{listener.getsockname()[1]}/room")
    finally:
        thread.join()


def test_who_comes_while_another_makes_the_tables_is_told_to_try_again(
    server: MariadbServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "LOCK_S", 0)
    with contextlib.closing(read_address(url).connect()) as other, other.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(CONCAT('postroom.', MD5(DATABASE())), 0)")
        with pytest.raises(StoreFailed, match="brings its tables up to date"):
            MariadbStore(url)
    MariadbStore(url).close()


def test_settings_that_risk_messages_are_named(server: MariadbServer, url: str) -> None:
    MariadbStore(url).close()
    assert "power cut" in read_info(url).warnings[0]
    [(packet,)] = server.execute("SELECT @@global.max_allowed_packet")
    server.execute("SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL max_allowed_packet = 1048576")
    try:
        [told] = read_info(url).warnings
    finally:
        server.execute(f"SET GLOBAL innodb_flush_log_at_trx_commit = 2, GLOBAL max_allowed_packet = {packet}")
    assert "max_allowed_packet" in told
