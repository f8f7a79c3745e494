"""The folder of files is bounded, in time and in size."""

import os
from pathlib import Path

from tests.runtime.test_clock_watch import Machine

import postroom
from postroom.clock import SECOND
from postroom.office.combined_replies import ReplyCombiner
from postroom.office.file_retention import DAY_S, FileRetention
from postroom.office.ledger_follower import LedgerFollower
from postroom.office.turns.replies import ReplyRules
from postroom.runtime.clock_watch import REST_S

NOW_S = 1_800_000_000


def put(folder: Path, name: str, *, days_ago: float, size: int = 10) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    then = NOW_S - days_ago * DAY_S
    os.utime(path, (then, then))
    return path


def test_what_is_too_old_leaves_with_its_empty_folder(tmp_path: Path) -> None:
    old = put(tmp_path, "sent/turn-1/report.txt", days_ago=31)
    young = put(tmp_path, "sent/turn-2/report.txt", days_ago=29)
    assert FileRetention(folder=tmp_path, days=30).tidy(NOW_S * SECOND) == 1
    assert not old.parent.exists()
    assert young.exists()


def test_what_is_too_much_leaves_oldest_first(tmp_path: Path) -> None:
    files = [put(tmp_path, f"{age}.bin", days_ago=age, size=100) for age in (3, 1, 2)]
    assert FileRetention(folder=tmp_path, days=None, most_bytes=200).tidy(NOW_S * SECOND) == 1
    assert [path.exists() for path in files] == [False, True, True]


def test_without_a_limit_of_days_old_files_stay(tmp_path: Path) -> None:
    put(tmp_path, "old.bin", days_ago=10_000)
    assert FileRetention(folder=tmp_path, days=None).tidy(NOW_S * SECOND) == 0


def test_a_link_leaves_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    kept = put(tmp_path, "elsewhere/kept.txt", days_ago=100)
    shelf = tmp_path / "files"
    shelf.mkdir()
    (shelf / "link").symlink_to(kept)
    then = NOW_S - 100 * DAY_S
    os.utime(shelf / "link", (then, then), follow_symlinks=False)
    (shelf / "folder").symlink_to(kept.parent)
    FileRetention(folder=shelf, days=30).tidy(NOW_S * SECOND)
    assert kept.exists()
    assert not (shelf / "link").is_symlink()


def test_a_folder_that_is_not_there_is_tidy(tmp_path: Path) -> None:
    assert FileRetention(folder=tmp_path / "nowhere").tidy(NOW_S * SECOND) == 0


async def test_files_stay_while_the_clock_may_be_wrong(tmp_path: Path) -> None:
    machine, file = Machine(), put(tmp_path, "files/report.txt", days_ago=0)
    async with postroom.open(str(tmp_path / "room.db"), housekeeping=False) as room:
        shelf = FileRetention(folder=tmp_path / "files", days=30)
        clerk = LedgerFollower(
            room, ReplyCombiner(room, ReplyRules()), [], [], shelf=shelf, clock=machine.clock
        )
        room._core.clock_watch = machine.watch()
        machine.clock.advance(31 * DAY_S)
        await clerk.remove_old_files()
        assert file.exists()
        machine.run(REST_S)
        await clerk.remove_old_files()
        assert not file.exists(), "the clock is believed in the end"
