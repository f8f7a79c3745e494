"""Whatever is broken is named or set aside; nothing is lost, and the next run goes on."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from postroom.clock import SECOND, ManualClock
from postroom.errors import StoreCorrupt
from postroom.kernel.ledger import Draft
from postroom.pipeline.failures import LakeDamaged, LakeFull, LakeTooNew, LedgerGap, OtherLedger, PipelineBusy
from postroom.pipeline.jobs.lock import locked
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import LEDGER, MESSAGE_LIFE, QUARANTINE
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.serving.insights import period
from postroom.pipeline.serving.report import report
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from postroom.stores.sqlite import SqliteStore
from tests.spark.conftest import END, copy_of, fill, rows


def change(source: SqliteSource, sql: str, *values: Any) -> None:
    db = apsw.Connection(source.path)
    db.execute(sql, values)
    db.close()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def test_altered_missing_and_unknown_events_go_to_quarantine_and_the_run_goes_on(
    spark: Any, month: SqliteSource, filled: Lake, lake: Lake, tmp_path: Path
) -> None:
    store = copy_of(month, tmp_path)
    db = apsw.Connection(store.path)
    [(tampered, touched)] = db.execute(
        "SELECT seq, message_id FROM ledger WHERE type = 'message.completed' LIMIT 1 OFFSET 30"
    )
    [(missing,)] = db.execute("SELECT seq FROM ledger WHERE type = 'record.turn' LIMIT 1 OFFSET 20")
    db.execute("UPDATE ledger SET data = json_set(data, '$.attempts', 77) WHERE seq = ?", (tampered,))
    db.execute("DELETE FROM ledger WHERE seq = ?", (missing,))
    db.close()
    done = fill(spark, lake, store)
    found = {(row["key"], row["reason"]) for row in rows(lake, QUARANTINE)}
    assert (str(tampered), "its content or place does not match its hash") in found
    assert (str(missing + 1), f"events {missing} to {missing} are missing") in found
    assert done.quarantined >= 2
    lives = {row["message_id"]: row for row in rows(lake, MESSAGE_LIFE)}
    whole = {row["message_id"]: row for row in rows(filled, MESSAGE_LIFE)}
    assert lives[touched]["outcome"] == "open", "nothing is built on an event that was altered"
    assert {k: v for k, v in lives.items() if k != touched} == {
        k: v for k, v in whole.items() if k != touched
    }
    assert fill(spark, lake, store).quarantined == 0, "what is known is not found again"


def appended(store: SqliteSource, *events: tuple[int, str, str, dict[str, Any]]) -> None:
    """Events with a right hash, however little sense they make: time, type, message, data."""
    opened = SqliteStore(Path(store.path))
    tx: Any = opened.begin()
    for moment, kind, message, data in events:
        place = ("default", "shop", "orders", message, None, None, "test")
        tx.append(Draft(moment, kind, *place, json.dumps(data)))
    opened.commit(tx)
    opened.close()


def test_unknown_types_and_states_and_clocks_that_jump_are_set_aside_and_harm_nothing_else(
    spark: Any, month: SqliteSource, filled: Lake, lake: Lake, tmp_path: Path
) -> None:
    store = copy_of(month, tmp_path)
    head = store.snapshot().head
    day, stamp = 86_400 * SECOND, END // 1000
    ids = [f"{stamp >> 16:08x}-{stamp & 0xFFFF:04x}-7000-8000-00000000000{n}" for n in range(3)]
    new = {"state": "pending", "attempts": 0, "type": "order", "tier": "normal", "bytes": 2}
    appended(
        store,
        (END, "message.teleported", ids[0], {"state": "pending", "attempts": 1}),
        (END, "message.claimed", ids[0], {"state": "limbo", "attempts": 1}),
        (END, "galaxy.collapsed", ids[0], {}),
        # The clock goes back by a week between publishing and end, and then on into another century.
        (END, "message.published", ids[1], new),
        (END - 7 * day, "message.claimed", ids[1], {"state": "claimed", "attempts": 1}),
        (END - 7 * day, "message.completed", ids[1], {"state": "completed", "attempts": 1}),
        (END + 40_000 * day, "message.published", ids[2], new),
        (END + 40_001 * day, "message.claimed", ids[2], {"state": "claimed", "attempts": 1}),
    )
    done = fill(spark, lake, store)
    assert done.position == head + 8
    found = {(row["key"], row["reason"]) for row in rows(lake, QUARANTINE)}
    assert found == {
        (str(head + 1), "unknown event type message.teleported"),
        (str(head + 2), "unknown state limbo"),
        (ids[1], "its times are out of order"),
    }
    assert done.quarantined == 3
    assert len(rows(lake, LEDGER)) == head + 8, "bronze has everything as it was"
    lives = {row["message_id"]: row for row in rows(lake, MESSAGE_LIFE)}
    assert lives[ids[1]]["outcome"] == "completed"
    assert lives[ids[2]]["published_at"].year == 2136
    known = rows(filled, MESSAGE_LIFE)
    assert [lives[row["message_id"]] for row in known] == known
    with engine(lake) as light:
        report(light, period(light), "now")
    assert fill(spark, lake, store).quarantined == 0


def test_a_page_of_the_store_that_cannot_be_read_is_named_and_nothing_is_committed(
    spark: Any, month: SqliteSource, lake: Lake, tmp_path: Path
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
    fill(spark, lake, copy_of(month, tmp_path / "restored"))


def test_another_store_is_refused(spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path) -> None:
    from postroom.pipeline.generator.month import Plan, generate
    from tests.spark.conftest import END

    other = tmp_path / "other.db"
    generate(other, Plan(end=END, days=0.5, per_day=50, seed=8))
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


def copied(filled: Lake, target: Path) -> Lake:
    shutil.copytree(str(filled.folder), target)
    return Lake(str(target))


def test_a_damaged_file_is_named_and_a_refresh_builds_it_anew(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    lake = copied(filled, tmp_path / "lake")
    victim = Path(lake.files(MESSAGE_LIFE)[0].uri)
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
    with pytest.raises(LakeDamaged, match="silver/message_life"):
        fill(spark, forgetful(lake, "silver/spans", "silver/traces", "silver/handoffs"), month)
    fill(spark, lake, month, refresh=True)
    assert rows(lake, MESSAGE_LIFE) == rows(filled, MESSAGE_LIFE)


def test_a_damaged_file_of_bronze_is_named_and_built_anew_from_the_store(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    lake = copied(filled, tmp_path / "lake")
    for file in lake.files(LEDGER):
        path = Path(file.uri)
        path.write_bytes(path.read_bytes()[: file.size // 2])
    with pytest.raises(LakeDamaged, match="bronze/ledger") as told:
        fill(spark, lake, month)
    assert "--from-store" in str(told.value)
    fill(spark, lake, month, refresh=True, everything=True)
    assert rows(lake, LEDGER) == rows(filled, LEDGER)
    assert rows(lake, MESSAGE_LIFE) == rows(filled, MESSAGE_LIFE)


@pytest.mark.parametrize("gone", ["first", "newest"])
def test_a_missing_version_of_a_table_is_named_or_taken_in_again(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path, gone: str
) -> None:
    """Without its first version a table is no table; without its newest it is what it was before."""
    lake = copied(filled, tmp_path / "lake")
    for number in (1, 2):
        lake.commit(MESSAGE_LIFE, [], Positions(month.snapshot().head + number, 0))
    log = Path(str(lake.folder)) / MESSAGE_LIFE.name / "_delta_log"
    names = sorted(log.glob("*.json"))
    (names[0] if gone == "first" else names[-1]).unlink()
    if gone == "first":
        with pytest.raises(LakeDamaged, match="silver/message_life"):
            fill(spark, lake, month)
        fill(spark, lake, month, refresh=True)
    else:
        fill(spark, lake, month)
    assert rows(lake, MESSAGE_LIFE) == rows(filled, MESSAGE_LIFE)


def forgetful(lake: Lake, *tables: str) -> Lake:
    for name in tables:
        shutil.rmtree(Path(str(lake.folder)) / name)
    return lake


def test_a_newer_table_is_refused(spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path) -> None:
    lake = copied(filled, tmp_path / "lake")
    log = Path(str(lake.folder)) / LEDGER.name / "_delta_log"
    version = lake.must_open(LEDGER).version() + 1
    (log / f"{version:020d}.json").write_text(
        json.dumps({"protocol": {"minReaderVersion": 99, "minWriterVersion": 99}}) + "\n"
    )
    with pytest.raises(LakeTooNew, match="Upgrade Postroom"):
        fill(spark, lake, month)


def test_a_full_disk_is_named_and_leaves_a_lake_that_goes_on(
    spark: Any, month: SqliteSource, filled: Lake, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Lake.commit

    def full(self: Lake, table: Any, *args: Any, **more: Any) -> None:
        if table is MESSAGE_LIFE:
            from postroom.pipeline.lake.lake import named

            with named(self, table):
                raise OSError(28, "No space left on device")
        commit(self, table, *args, **more)

    monkeypatch.setattr(Lake, "commit", full)
    with pytest.raises(LakeFull, match="free some space"):
        fill(spark, lake, month)
    monkeypatch.undo()
    fill(spark, lake, month)
    assert rows(lake, MESSAGE_LIFE) == rows(filled, MESSAGE_LIFE)


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
    with locked(lake, ManualClock()), pytest.raises(PipelineBusy, match="Another run"):
        fill(spark, lake, month)
