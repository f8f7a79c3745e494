"""A store that lost something, was put back or rewritten is found at the next start."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import apsw
import pytest

import postroom
from postroom.errors import LedgerBroken, StoreMoved, StoreRewritten, StoreRolledBack, StoreVanished
from postroom.stores.sqlite.heads import SignedHeads
from postroom.terminal.cli.readonly import ReadOnlyFile
from postroom.terminal.cli.verify import verify


def publish(path: Path, *bodies: object) -> None:
    with postroom.open_sync(f"sqlite:///{path}", housekeeping=False) as room:
        room.create_queue("jobs", exist_ok=True)
        for body in bodies:
            room.publish("jobs", body)


def wait_until(holds: object, problem: str) -> None:
    assert callable(holds)
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, problem
        time.sleep(0.02)


def test_a_store_that_was_closed_opens_again_and_its_heads_go_on(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    publish(path, 1)
    first = SignedHeads(path).read()
    publish(path, 2)
    later = SignedHeads(path).read()
    assert later[: len(first)] == first
    assert later[-1].seq > first[-1].seq
    assert (path.with_name("room.db.key").stat().st_mode & 0o777) == 0o600


def test_a_store_put_back_from_yesterday_is_found(tmp_path: Path) -> None:
    path, copy = tmp_path / "room.db", tmp_path / "copy.db"
    publish(path, 1)
    shutil.copyfile(path, copy)
    publish(path, 2, 3)
    shutil.copyfile(copy, path)
    with pytest.raises(StoreRolledBack, match="events are missing"):
        publish(path, 4)
    path.with_name("room.db.heads").unlink()
    publish(path, 4)


def test_a_store_that_has_vanished_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    publish(path, 1)
    path.rename(tmp_path / "x")
    with pytest.raises(StoreVanished, match="Put it back"):
        publish(path, 2)
    assert not path.exists()
    (tmp_path / "x").rename(path)
    publish(path, 2)


def test_a_rewritten_ledger_is_found(tmp_path: Path) -> None:
    path, other = tmp_path / "room.db", tmp_path / "other.db"
    publish(path, 1)
    publish(other, 1, 2, 3)
    shutil.copyfile(other, path)
    with pytest.raises(StoreRewritten, match="rewritten"):
        publish(path, 4)


def test_heads_that_nobody_signed_count_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    publish(path, 1)
    with path.with_name("room.db.heads").open("ab") as file:
        file.write(b'{"seq":999999,"hash":"00","time":1,"signature":"00"}\n{"seq":')
    publish(path, 2)


def test_acknowledged_messages_that_vanished_with_the_log_are_missed_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    code = (
        "import sys, postroom, time\n"
        "opened = postroom.open_sync(f'sqlite:///{sys.argv[1]}', housekeeping=False)\n"
        "room = opened.__enter__()\n"
        "room.create_queue('jobs')\n"
        "for n in range(50): room.publish('jobs', n)\n"
        "print('done', flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"done\n"
            heads = SignedHeads(path)
            wait_until(lambda: (last := heads.last()) is not None and last.seq > 50, "no head was noted")
        finally:
            process.send_signal(signal.SIGKILL)
    log = path.with_name("room.db-wal")
    os.truncate(log, log.stat().st_size // 2)
    with pytest.raises(StoreRolledBack):
        publish(path, 1)


def test_a_store_that_is_moved_while_it_is_open_accepts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    with postroom.open_sync(f"sqlite:///{path}", housekeeping=False) as room:
        room.create_queue("jobs")
        path.rename(tmp_path / "away.db")

        def refused() -> bool:
            try:
                room.publish("jobs", 1)
            except StoreMoved:
                return True
            return False

        wait_until(refused, "it went on")
        (tmp_path / "away.db").rename(path)
        wait_until(lambda: not refused(), "it is back, and accepts")
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert db.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    db.close()


def test_every_noted_head_is_compared_when_the_ledger_is_verified(tmp_path: Path) -> None:
    path, other = tmp_path / "room.db", tmp_path / "other.db"
    publish(path, 1)
    publish(path, 2)
    heads = {each.seq: each.hash for each in SignedHeads(path).read()}
    publish(other, *range(20))

    def check(store: Path) -> None:
        with contextlib.closing(ReadOnlyFile(store)) as file, file.look() as reader:
            verify(reader, heads=heads)

    check(path)
    with pytest.raises(LedgerBroken, match="rewritten"):
        check(other)
    heads[10_000] = "00"
    with pytest.raises(LedgerBroken, match="missing"):
        check(path)
