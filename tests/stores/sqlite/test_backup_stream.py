"""Continuous backup: every commit is shipped, any moment comes back, and a part that is missing is found."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroom.clock import ManualClock
from postroom.errors import StoreCorrupt
from postroom.stores.sqlite.backup_stream import BackupStream, BackupTarget, NoSuchMoment, restore_stream
from postroom.terminal.cli.backup_targets import FolderTarget, open_target
from postroom.terminal.cli.readonly import ReadOnlyFile
from postroom.terminal.cli.verify import verify
from tests.pipeline.object_store import object_store

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
