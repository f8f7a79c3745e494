"""Whatever is broken is named or set aside; nothing is lost, and the next run goes on."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from postroom.clock import SECOND, ManualClock
from postroom.errors import StoreCorrupt
from postroom.kernel.ledger import EventDraft
from postroom.pipeline.errors import LakeFull, LakeTooNew, LedgerGap, OtherLedger, PipelineBusy
from postroom.pipeline.generator.month import MonthPlan, generate
from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.crew import Crew
from postroom.pipeline.jobs.progress import silent
from postroom.pipeline.jobs.run import Summary
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.jobs.silver import live
from postroom.pipeline.lake.lake import Lake, named
from postroom.pipeline.lake.lease import hold_lease
from postroom.pipeline.lake.tables import (
    BRONZE,
    LEDGER,
    MESSAGE_LIFE,
    QUARANTINE,
    Table,
)
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.serving.insights import period
from postroom.pipeline.serving.report import report
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from postroom.stores.sqlite import SqliteStore
from tests.spark.lakes import END, copied, copy_of, fill, fill_bronze, rows, same


def change(source: SqliteSource, sql: str, *values: Any) -> None:
    db = apsw.Connection(source.path)
    db.execute(sql, values)
    db.close()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def appended(store: SqliteSource, *events: tuple[int, str, str, dict[str, Any]]) -> None:
    """Events with a right hash, however little sense they make: time, type, message, data."""
    opened = SqliteStore(Path(store.path))
    tx: Any = opened.begin()
    for moment, kind, message, data in events:
        place = ("default", "shop", "orders", message, None, None, "test")
        tx.append([EventDraft(moment, kind, *place, json.dumps(data))])
    opened.commit(tx)
    opened.close()


class Troubled(NamedTuple):
    """A month in which everything went wrong that a run can set aside, and the lake a run made of it."""

    store: SqliteSource
    lake: Lake
    done: Summary
    head: int
    altered: int
    touched: str
    """The message that the altered event is about."""
    missing: int
    odd: int
    """The first of the events that nobody could have written."""


STAMP = END // 1000
IDS = [f"{STAMP >> 16:08x}-{STAMP & 0xFFFF:04x}-7000-8000-00000000000{n}" for n in range(3)]


@pytest.fixture(scope="module")
def troubled(spark: Any, month: SqliteSource, tmp_path_factory: pytest.TempPathFactory) -> Troubled:
    folder = tmp_path_factory.mktemp("troubled")
    store, lake = copy_of(month, folder), Lake(str(folder / "lake"))
    head, day = store.snapshot().head, 86_400 * SECOND
    new = {"state": "pending", "attempts": 0, "type": "order", "tier": "normal", "bytes": 2}
    appended(
        store,
        (END, "message.teleported", IDS[0], {"state": "pending", "attempts": 1}),
        (END, "message.claimed", IDS[0], {"state": "limbo", "attempts": 1}),
        (END, "galaxy.collapsed", IDS[0], {}),
        # The clock goes back by a week between publishing and end, and then on into another century.
        (END, "message.published", IDS[1], new),
        (END - 7 * day, "message.claimed", IDS[1], {"state": "claimed", "attempts": 1}),
        (END - 7 * day, "message.completed", IDS[1], {"state": "completed", "attempts": 1}),
        (END + 40_000 * day, "message.published", IDS[2], new),
        (END + 40_001 * day, "message.claimed", IDS[2], {"state": "claimed", "attempts": 1}),
    )
    db = apsw.Connection(store.path)
    [(altered, touched)] = db.execute(
        "SELECT seq, message_id FROM ledger WHERE type = 'message.completed' LIMIT 1 OFFSET 30"
    )
    [(missing,)] = db.execute("SELECT seq FROM ledger WHERE type = 'record.turn' LIMIT 1 OFFSET 20")
    db.execute("UPDATE ledger SET data = json_set(data, '$.attempts', 77) WHERE seq = ?", (altered,))
    db.execute("DELETE FROM ledger WHERE seq = ?", (missing,))
    db.close()
    done = fill(spark, lake, store)
    return Troubled(store, lake, done, store.snapshot().head, altered, touched, missing, head + 1)


def test_what_is_altered_missing_unknown_or_out_of_time_is_set_aside_with_its_reason(
    troubled: Troubled,
) -> None:
    found = {(row["key"], row["reason"]) for row in rows(troubled.lake, QUARANTINE)}
    missing = troubled.missing
    assert found == {
        (str(troubled.altered), "its content or place does not match its hash"),
        (str(missing + 1), f"events {missing} to {missing} are missing"),
        (str(troubled.odd), "unknown event type message.teleported"),
        (str(troubled.odd + 1), "unknown state limbo"),
        (IDS[1], "its times are out of order"),
    }
    assert troubled.done.quarantined == len(found)


def test_the_run_goes_on_and_bronze_has_everything_as_it_was(troubled: Troubled) -> None:
    assert troubled.done.position == troubled.head == troubled.odd + 7
    expected = [seq for seq in range(1, troubled.head + 1) if seq != troubled.missing]
    assert sorted(row["seq"] for row in rows(troubled.lake, LEDGER)) == expected
    with engine(troubled.lake) as light:
        assert "<svg" in report(light, period(light), "now")


def test_nothing_is_built_on_an_altered_event_and_all_other_lives_are_as_they_were(
    troubled: Troubled, filled: Lake
) -> None:
    lives = {row["message_id"]: row for row in rows(troubled.lake, MESSAGE_LIFE)}
    assert lives[troubled.touched]["outcome"] == "open"
    assert lives[IDS[1]]["outcome"] == "completed"
    assert lives[IDS[2]]["published_at"].year == 2136
    whole = [row for row in rows(filled, MESSAGE_LIFE) if row["message_id"] != troubled.touched]
    assert [lives[row["message_id"]] for row in whole] == whole


def test_a_run_that_is_killed_while_it_sets_aside_sets_it_aside_the_next_time(
    spark: Any, troubled: Troubled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = copied(troubled.lake, tmp_path / "lake", without=(MESSAGE_LIFE, QUARANTINE))
    clock = ManualClock()
    at = Context(Crew(spark, 0), lake, troubled.store, clock, silent, RunLog(lake, clock))
    target = lake.positions(LEDGER)

    def dies(*_: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Context, "quarantine", dies)
    with pytest.raises(KeyboardInterrupt):
        live(at, target)
    monkeypatch.undo()
    live(at, target)
    found = {(row["table"], row["key"], row["reason"]) for row in rows(lake, QUARANTINE)}
    known = {(row["table"], row["key"], row["reason"]) for row in rows(troubled.lake, QUARANTINE)}
    assert found == {each for each in known if "hash" not in each[2] and "missing" not in each[2]}


def test_what_is_known_is_not_found_again(spark: Any, troubled: Troubled) -> None:
    before = rows(troubled.lake, QUARANTINE)
    assert fill(spark, troubled.lake, troubled.store).quarantined == 0
    assert rows(troubled.lake, QUARANTINE) == before


def test_a_page_of_the_store_that_cannot_be_read_is_named_and_nothing_is_committed(
    spark: Any, month: SqliteSource, filled: Lake, lake: Lake, tmp_path: Path
) -> None:
    store = copy_of(month, tmp_path)
    db = apsw.Connection(store.path)
    size = db.pragma("page_size")
    [(page,)] = db.execute(
        "SELECT pageno FROM dbstat WHERE name = 'ledger' AND pagetype = 'leaf' LIMIT 1 OFFSET 9"
    )
    db.close()
    with Path(store.path).open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    with pytest.raises(StoreCorrupt, match="Restore the newest backup"):
        fill(spark, lake, store)
    assert lake.open(LEDGER) is None
    fill_bronze(spark, lake, copy_of(month, tmp_path / "restored"))
    same(lake, filled, BRONZE)


def test_another_store_is_refused(spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    generate(other, MonthPlan(end=END, days=0.5, per_day=50, seed=8))
    with pytest.raises(OtherLedger, match="restored from a backup"):
        fill(spark, filled, open_source(str(other)))
    store = copy_of(month, tmp_path)
    change(store, "UPDATE ledger SET hash = zeroblob(32) WHERE seq = (SELECT max(seq) FROM ledger)")
    with pytest.raises(OtherLedger, match="another hash"):
        fill(spark, filled, store)


def test_events_that_left_the_store_too_early_are_told(
    spark: Any, month: SqliteSource, lake: Lake, tmp_path: Path
) -> None:
    store = copy_of(month, tmp_path)
    change(
        store,
        "UPDATE figures SET n = 50, hash = (SELECT hash FROM ledger WHERE seq = 50) WHERE name = 'anchor'",
    )
    change(store, "DELETE FROM ledger WHERE seq <= 50")
    with pytest.raises(LedgerGap, match="Events 1 to 50"):
        fill(spark, lake, store)


def test_no_store_of_ours_is_named(spark: Any, lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(StoreCorrupt):
        fill(spark, lake, open_source(str(tmp_path / "x.db")))


def test_what_a_missing_newest_version_held_is_taken_in_again(
    spark: Any, later: SqliteSource, filled: Lake, grown: Lake, tmp_path: Path
) -> None:
    """Without its newest version a table is what it was before."""
    lake = copied(grown, tmp_path / "lake")
    sorted(log_of(lake, MESSAGE_LIFE).glob("*.json"))[-1].unlink()
    same(lake, filled, (MESSAGE_LIFE,))
    fill(spark, lake, later)
    same(lake, grown)


def log_of(lake: Lake, table: Table) -> Path:
    return Path(str(lake.folder)) / table.name / "_delta_log"


def test_a_newer_table_is_refused(spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path) -> None:
    lake = copied(filled, tmp_path / "lake")
    log = log_of(lake, LEDGER)
    version = lake.must_open(LEDGER).version() + 1
    (log / f"{version:020d}.json").write_text(
        json.dumps({"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}}) + "\n"
    )
    with pytest.raises(LakeTooNew, match="Upgrade Postroom"):
        fill(spark, lake, month)


def test_a_full_disk_is_named_and_leaves_a_lake_that_goes_on(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bronze is there, and the disk is full where the first step after it commits."""
    lake, commit = copied(filled, tmp_path / "lake", without=(MESSAGE_LIFE,)), Lake.commit

    def full(self: Lake, table: Any, *args: Any, **more: Any) -> None:
        if table is MESSAGE_LIFE:
            with named(self, table):
                raise OSError(28, "No space left on device")
        commit(self, table, *args, **more)

    monkeypatch.setattr(Lake, "commit", full)
    with pytest.raises(LakeFull, match="free some space"):
        fill(spark, lake, month)
    assert lake.open(MESSAGE_LIFE) is None
    monkeypatch.undo()
    fill(spark, lake, month)
    same(lake, filled)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
def test_a_disk_that_really_fills_is_named_and_once_it_has_room_the_run_goes_on(
    spark: Any, month: SqliteSource, filled: Lake, small_disk: Path
) -> None:
    lake = Lake(str(small_disk / "lake"))
    with pytest.raises(LakeFull, match="free some space"):
        fill(spark, lake, month)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    fill(spark, lake, month)
    assert rows(lake, MESSAGE_LIFE) == rows(filled, MESSAGE_LIFE)
    assert rows(lake, LEDGER) == rows(filled, LEDGER)


def test_two_runs_at_once_are_refused(spark: Any, month: SqliteSource, lake: Lake) -> None:
    with hold_lease(lake, ManualClock()), pytest.raises(PipelineBusy, match="Another run"):
        fill(spark, lake, month)
