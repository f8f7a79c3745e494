"""Opening a file: one owner, the right version, sound pages, and named errors when something is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import postroom
from postroom.errors import (
    StoreClosed,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    StoreInUse,
    StoreReadOnly,
    StoreTooNew,
    UnknownStore,
)
from postroom.kernel.facts import MEMO, first
from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite import store as sqlite_store
from postroom.stores.sqlite.migrate import migrate, newest, steps


def fill(path: Path, count: int = 3) -> None:
    with postroom.open_sync(str(path), housekeeping=False) as room:
        room.create_queue("jobs", exist_ok=True)
        room.publish_many("jobs", [{"n": n} for n in range(count)])


def raw(path: Path, sql: str, *bindings: object) -> None:
    db = apsw.Connection(str(path))
    db.execute(sql, bindings)
    db.close()


def test_a_second_owner_in_the_same_process_is_refused_by_name(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "room.db")
    with pytest.raises(StoreInUse, match=f"pid {os.getpid()}"):
        SqliteStore(tmp_path / "room.db")
    store.close()
    SqliteStore(tmp_path / "room.db").close()


def test_a_second_owner_in_another_process_is_refused_and_harms_nothing(tmp_path: Path) -> None:
    with postroom.open_sync(str(tmp_path / "room.db"), housekeeping=False) as room:
        room.create_queue("jobs")
        path = str(tmp_path / "room.db")
        program = f"import postroom\nwith postroom.open_sync({path!r}) as room: print('opened')"
        other = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False
        )
        assert other.returncode != 0
        assert f"is owned by another process (pid {os.getpid()})" in other.stderr
        room.publish("jobs", 1)
        assert room.counts("jobs").pending == 1


def test_a_database_of_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    fill(path)
    raw(path, f"PRAGMA user_version = {newest() + 1}")
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match="Upgrade Postroom"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    raw(path, "CREATE TABLE theirs (x)")
    with pytest.raises(StoreCorrupt, match="another program"):
        SqliteStore(path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    path.write_bytes(b"this is not a database, but it is long enough to look like one" * 100)
    with pytest.raises(StoreCorrupt):
        SqliteStore(path)


def test_damaged_pages_are_found_after_an_unclean_end(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    fill(path, 2000)
    raw(path, "UPDATE meta SET value = '0' WHERE name = 'clean'")
    data = bytearray(path.read_bytes())
    for page in range(20, len(data) // 4096 - 5):
        data[page * 4096 : page * 4096 + 64] = os.urandom(64)
    path.write_bytes(bytes(data))
    with pytest.raises(StoreCorrupt, match="Restore the newest backup"):
        SqliteStore(path)


def test_a_tampered_tail_of_the_ledger_is_found_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    fill(path)
    raw(path, "UPDATE ledger SET actor = 'somebody else' WHERE seq = (SELECT max(seq) FROM ledger)")
    with pytest.raises(StoreCorrupt, match="broken at event"):
        SqliteStore(path)


def test_a_folder_that_cannot_be_made_is_a_named_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreReadOnly, match="cannot be written"):
        SqliteStore(tmp_path / "file" / "room.db")


def test_a_read_only_file_is_a_named_error(tmp_path: Path) -> None:
    """As root the permissions do not bind, so SQLite is asked for an immutable connection instead."""
    path = tmp_path / "room.db"
    fill(path)
    store = SqliteStore(path)
    store._db.pragma("query_only", True)
    with pytest.raises(StoreReadOnly):
        write_memo(store)
    store._db.pragma("query_only", False)
    write_memo(store)
    store.close()


def write_memo(store: SqliteStore) -> None:
    tx = store.begin()
    try:
        tx.put_facts([(first(MEMO, "note", "x", 1), 0)])
        store.commit(tx)
    except StoreReadOnly:
        store.rollback(tx)
        raise


def test_a_full_disk_refuses_whole_requests_and_accepts_again_when_there_is_room(tmp_path: Path) -> None:
    with postroom.open_sync(str(tmp_path / "room.db"), housekeeping=False) as room:
        room.create_queue("jobs")
        room.publish("jobs", "first")
        store = room._core.store
        assert isinstance(store, SqliteStore)
        pages = store._db.pragma("page_count")
        store._db.pragma("max_page_count", pages + 5)
        with pytest.raises(StoreFull, match=r"disk of .* is full; nothing was written"):
            room.publish_many("jobs", ["x" * 1000] * 1000)
        assert room.counts("jobs").pending == 1
        store._db.pragma("max_page_count", 10**6)
        room.publish_many("jobs", ["x" * 1000] * 1000)
        assert room.counts("jobs").pending == 1001


def test_an_unknown_address_says_what_is_known() -> None:
    with pytest.raises(UnknownStore, match="sqlite:///"), postroom.open_sync("mysql://host/db"):
        pass


def schema_of(db: apsw.Connection) -> list[tuple[object, ...]]:
    return list(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"))


def test_a_migrated_database_equals_a_fresh_one(tmp_path: Path) -> None:
    """Every version that ever was, brought up step by step, ends in the schema of a new file."""
    fresh = SqliteStore(tmp_path / "fresh.db")
    wanted = schema_of(fresh._db)
    fresh.close()
    for version in range(1, newest() + 1):
        db = apsw.Connection(str(tmp_path / f"v{version}.db"))
        for number, script in steps().items():
            if number <= version:
                db.execute(script)
        db.pragma("user_version", version)
        db.pragma("application_id", 0x504F5354)
        migrate(db, str(tmp_path / f"v{version}.db"), tmp_path / "backups")
        assert schema_of(db) == wanted
        db.close()


def test_an_older_database_is_copied_aside_before_it_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "room.db"
    fill(path, 7)
    extra = {**steps(), newest() + 1: "CREATE TABLE later (x)"}
    monkeypatch.setattr("postroom.stores.sqlite.migrate.steps", lambda: extra)
    store = SqliteStore(path)
    try:
        assert store.backup_made is not None
        copy = apsw.Connection(str(store.backup_made))
        assert copy.pragma("user_version") == max(extra) - 1
        assert copy.execute("SELECT count(*) FROM messages").fetchone() == (7,)
        copy.close()
        assert store._db.execute("SELECT count(*) FROM later").fetchone() == (0,)
    finally:
        store.close()


def test_a_failed_migration_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "room.db"
    fill(path)
    broken = {**steps(), newest() + 1: "CREATE TABLE later (x); CREATE TABLE later (x)"}
    monkeypatch.setattr("postroom.stores.sqlite.migrate.steps", lambda: broken)
    with pytest.raises(postroom.PostroomError):
        SqliteStore(path)
    monkeypatch.undo()
    with postroom.open_sync(str(path), housekeeping=False) as room:
        assert room.counts("jobs").pending == 3


def test_a_backup_of_a_live_room_opens_and_holds_everything(tmp_path: Path) -> None:
    with postroom.open_sync(str(tmp_path / "room.db"), housekeeping=False) as room:
        room.create_queue("jobs")
        room.publish_many("jobs", range(500))
        store = room._core.store
        assert isinstance(store, SqliteStore)
        store.backup(tmp_path / "copy.db")
        room.publish("jobs", "after the copy")
    with postroom.open_sync(str(tmp_path / "copy.db"), housekeeping=False) as copy:
        assert copy.counts("jobs").pending == 500


def test_full_durability_is_the_default_and_relaxed_must_be_asked_for(tmp_path: Path) -> None:
    for durability, level in (("full", 2), ("relaxed", 1)):
        store = SqliteStore(tmp_path / f"{durability}.db", durability=durability)  # type: ignore[arg-type]
        assert store._db.pragma("synchronous") == level
        assert store._db.pragma("journal_mode") == "wal"
        store.close()
    default = SqliteStore(tmp_path / "default.db")
    assert default._db.pragma("synchronous") == 2
    default.close()


def test_folders_on_the_way_to_the_file_are_made(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "deeper" / "room.db"
    SqliteStore(path).close()
    assert path.is_file()


def test_a_file_that_cannot_be_opened_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    path.mkdir()
    for _ in range(2):  # a lock that stayed would be told the second time
        with pytest.raises(StoreReadOnly, match="unable to open"):
            SqliteStore(path)
    path.rmdir()
    SqliteStore(path).close()


def test_a_very_large_file_is_opened_without_reading_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What its pages are like is left to a person, who is told so."""
    path = tmp_path / "room.db"
    fill(path)
    raw(path, "UPDATE meta SET value = '0' WHERE name = 'clean'")
    monkeypatch.setattr(sqlite_store, "WHOLE_CHECK_BYTES", 0)
    SqliteStore(path).close()
    assert "was not closed" in caplog.text


def test_a_damaged_table_is_found_after_an_unclean_end(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    fill(path)
    db = apsw.Connection(str(path))
    db.execute("UPDATE meta SET value = '0' WHERE name = 'clean'")
    [(root,)] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").fetchall()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = db.pragma("page_size")
    db.close()
    data = bytearray(path.read_bytes())
    # The first cell of the table points outside of its page.
    start = (int(str(root)) - 1) * size
    data[start + 8 : start + 10] = b"\x00\x01"
    path.write_bytes(bytes(data))
    with pytest.raises(StoreCorrupt, match="Restore the newest backup"):
        SqliteStore(path)


def test_a_store_that_is_closed_says_so_and_closes_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "room.db")
    store.close()
    store.close()
    with pytest.raises(StoreClosed):
        store.begin()
    with pytest.raises(StoreClosed), store.reader():
        pass


def test_a_name_that_only_deleted_scopes_have_finds_nothing(tmp_path: Path) -> None:
    with postroom.open_sync(str(tmp_path / "room.db"), housekeeping=False) as room:
        scope = room.create_scope("old")
        room.create_queue("old/jobs")
        room.delete_queue("old/jobs")
        room.delete_scope("old")
        inside = f"old#{scope.id}"
        assert room._core.read(lambda reader: reader.queues("default", inside)) == []
        assert room._core.read(lambda reader: reader.scope("default", inside)) is None


def test_another_file_layer_is_used_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    store = SqliteStore(path, vfs="unix-excl")
    write_memo(store)
    with store.reader() as reads:
        assert reads.chain().head.seq == 0
    store.close()
    with pytest.raises(StoreFailed, match="no such vfs"):
        SqliteStore(tmp_path / "other.db", vfs="no-such-layer")
    SqliteStore(path).close()
