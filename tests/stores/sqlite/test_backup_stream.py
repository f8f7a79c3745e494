"""Continuous backup: every commit is shipped, any moment comes back, and a part that is missing is found."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroom.clock import ManualClock
from postroom.errors import StoreCorrupt
from postroom.stores.sqlite import backup_stream
from postroom.stores.sqlite.backup_stream import (
    BackupStream,
    BackupTarget,
    NoSuchMoment,
    PartName,
    restore_stream,
)
from postroom.stores.sqlite.wal_frames import LogIndex, LogPosition, LogUnsteady, PageWrite, read_frames
from postroom.terminal.cli.backup_targets import FolderTarget, open_target
from postroom.terminal.cli.readonly import ReadOnlyFile
from postroom.terminal.cli.verify import verify
from tests.object_store import object_store

WRITER = """
import sys
import postroom
with postroom.open_sync(sys.argv[1], housekeeping=False) as room:
    room.create_queue("jobs", exist_ok=True)
    print("open", flush=True)
    for line in sys.stdin:
        count, size = map(int, line.split())
        for _ in range(count):
            room.publish("jobs", "x" * size)
        print("done", flush=True)
"""


class Writer:
    """Another process that owns the store: SQLite's locks belong to processes."""

    def __init__(self, store: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(store)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._await("open")

    def publish(self, count: int, size: int = 100) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{count} {size}\n")
        self._process.stdin.flush()
        self._await("done")

    def _await(self, word: str) -> None:
        assert self._process.stdout
        assert self._process.stdout.readline().strip() == word

    def kill(self) -> None:
        self._process.kill()
        self.end()

    def end(self) -> None:
        self._process.communicate(timeout=120)


@contextlib.contextmanager
def writing(store: Path) -> Iterator[Writer]:
    writer = Writer(store)
    try:
        yield writer
    finally:
        writer.end()


def messages_at(target: BackupTarget, folder: Path, at: int | None = None) -> int | None:
    """How many there were then; everything else about the copy is verified."""
    file = folder / "restored.db"
    restore_stream(target, "the target", file, at)
    with contextlib.closing(ReadOnlyFile(file, immutable=True)) as copy:
        copy.check_pages()
        with copy.look() as reader:
            return verify(reader).messages


def check_moments(store: Path, target: BackupTarget, clock: ManualClock) -> None:
    noted: dict[int, int] = {}
    published = 0
    with writing(store) as writer, contextlib.closing(BackupStream(store, target, clock)) as stream:
        stream.begin()
        # Large ones make the log begin anew, more than once.
        for count, size in ((3, 100), (1, 100), (25, 200_000), (2, 100), (25, 200_000), (1, 100)):
            writer.publish(count, size)
            published += count
            clock.advance(1)
            assert stream.ship() >= count or noted
            noted[clock.now()] = published
            clock.advance(1)
        assert stream.ship() == 0, "nothing new, nothing shipped"
    for moment, count in noted.items():
        assert messages_at(target, store.parent, moment) == count
    assert messages_at(target, store.parent) == published


def test_any_moment_comes_back_from_a_folder(tmp_path: Path, clock: ManualClock) -> None:
    check_moments(tmp_path / "room.db", FolderTarget(tmp_path / "shipped"), clock)


def test_any_moment_comes_back_from_an_object_store(tmp_path: Path, clock: ManualClock) -> None:
    with object_store() as bucket:
        check_moments(tmp_path / "room.db", open_target(f"{bucket}/backups/room"), clock)


def test_a_writer_that_is_killed_and_started_again_is_followed_without_a_gap(
    tmp_path: Path, clock: ManualClock
) -> None:
    store, target = tmp_path / "room.db", FolderTarget(tmp_path / "shipped")
    first = Writer(store)
    with contextlib.closing(BackupStream(store, target, clock)) as stream:
        stream.begin()
        first.publish(5)
        first.kill()
        with writing(store) as second:
            second.publish(4)
        clock.advance(1)
        stream.ship()
        with writing(store) as third:
            third.publish(3)
            clock.advance(1)
            stream.ship()
    assert messages_at(target, tmp_path) == 12


def test_a_missing_or_changed_part_is_found_and_no_moment_is_made_up(
    tmp_path: Path, clock: ManualClock
) -> None:
    store, folder = tmp_path / "room.db", tmp_path / "shipped"
    target = FolderTarget(folder)
    before = clock.now() - 1
    with writing(store) as writer, contextlib.closing(BackupStream(store, target, clock)) as stream:
        stream.begin()
        for _ in range(3):
            writer.publish(1)
            clock.advance(1)
            stream.ship()
    with pytest.raises(NoSuchMoment):
        messages_at(target, tmp_path, before)
    _, one, two, _ = sorted(folder.iterdir())
    kept = two.read_bytes()
    two.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    with pytest.raises(StoreCorrupt, match="not as it was written"):
        messages_at(target, tmp_path)
    two.write_bytes(kept)
    one.unlink()
    with pytest.raises(StoreCorrupt, match="is missing"):
        messages_at(target, tmp_path)


def test_old_parts_go_and_what_is_younger_can_still_be_had(tmp_path: Path, clock: ManualClock) -> None:
    store, target = tmp_path / "room.db", FolderTarget(tmp_path / "shipped")
    with writing(store) as writer, contextlib.closing(BackupStream(store, target, clock)) as stream:
        moments = []
        for _ in range(3):
            clock.advance(100)
            stream.begin()
            writer.publish(1)
            clock.advance(1)
            stream.ship()
            moments.append(clock.now())
        assert stream.prune(moments[1]) == 2
    assert messages_at(target, tmp_path, moments[1]) == 2
    with pytest.raises(NoSuchMoment):
        messages_at(target, tmp_path, moments[0])


def test_what_is_no_part_is_left_alone(tmp_path: Path, clock: ManualClock) -> None:
    for text in ("notes.txt", "12-base", "x-base-ab", "12-other-ab"):
        assert PartName.read(text) is None
    assert PartName.read("12-base-ab") == PartName("12-base-ab", 12, "base", "ab")


def test_who_begins_by_shipping_ships_a_whole_copy_and_can_close_twice(
    tmp_path: Path, clock: ManualClock
) -> None:
    store, target = tmp_path / "room.db", FolderTarget(tmp_path / "copies")
    writer = Writer(store)
    stream = BackupStream(store, target, clock)
    stream.close()
    assert stream.ship() == 0
    writer.publish(3)
    assert stream.ship() == 3
    assert stream.ship() == 0, "nothing is new"
    stream.close()
    stream.close()
    writer.end()


def test_frames_that_are_not_there_are_told_and_a_whole_copy_takes_their_place(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, target = tmp_path / "room.db", FolderTarget(tmp_path / "copies")
    writer = Writer(store)
    stream = BackupStream(store, target, clock)
    stream.begin()
    writer.publish(2)

    def torn(*_: object) -> list[PageWrite]:
        raise LogUnsteady

    with monkeypatch.context() as patch:
        patch.setattr(backup_stream, "read_frames", torn)
        assert stream.ship() == 0
    assert len([name for name in target.names() if "-base-" in name]) == 2
    stream.close()
    writer.end()


def test_a_log_that_never_holds_still_is_given_up(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "room.db"
    writer = Writer(store)
    stream = BackupStream(store, FolderTarget(tmp_path / "copies"), clock)

    def moving(index: LogIndex) -> LogPosition:
        raise LogUnsteady

    with monkeypatch.context() as patch:
        patch.setattr(LogIndex, "read", moving)
        patch.setattr(backup_stream, "STEADY_S", 0.05)
        with pytest.raises(StoreCorrupt):
            stream.begin()
    stream.close()
    writer.end()


def test_an_index_that_is_half_written_or_not_ready_is_read_again(tmp_path: Path) -> None:
    store = tmp_path / "room.db"
    index_file = tmp_path / "room.db-shm"
    for content in (b"", b"\0" * 200, bytes(range(200))):
        index_file.write_bytes(content)
        index = LogIndex(store)
        with pytest.raises(LogUnsteady):
            index.read()
        assert index.is_current
        index_file.unlink()
        assert not index.is_current
        index.close()


def test_a_log_that_ends_early_or_is_another_has_no_frames(tmp_path: Path) -> None:
    store = tmp_path / "room.db"
    log = tmp_path / "room.db-wal"
    until = LogPosition(b"saltsalt", 1, 1, 512)
    assert read_frames(store, 1, until) == []
    for content in (b"\0" * 40, b"\0" * 2000):
        log.write_bytes(content)
        with pytest.raises(LogUnsteady):
            read_frames(store, 0, until)
