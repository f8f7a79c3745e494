"""A run costs what is new and comes out as if everything had been taken in at once, late events too."""

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import SECOND, ManualClock
from postroom.pipeline.jobs.retention import retain
from postroom.pipeline.jobs.run import Summary
from postroom.pipeline.jobs.watch import watch
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import GOLD, LEDGER, MEMORY, MESSAGE_LIFE, QUEUE_HOUR, SILVER
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.runtime import open_sync
from tests.spark.lakes import COMPARED, END, copied, copy_of, fill, rows, same, same_later


def test_late_events_and_new_mail_come_out_as_in_one_run(
    filled: Lake, grown: Lake, filled_later: Lake
) -> None:
    same_later(grown, filled_later)
    before = {file.path for file in filled.files(MESSAGE_LIFE)}
    assert before & {file.path for file in grown.files(MESSAGE_LIFE)}, (
        "days without news are not written again"
    )


def test_a_watch_takes_in_what_comes_while_the_store_is_open(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    store, lake = copy_of(month, tmp_path), copied(filled, tmp_path / "lake")
    before, stop = store.snapshot().head, threading.Event()
    seen: list[Summary] = []
    watcher = threading.Thread(
        target=watch,
        args=(spark, lake, store, ManualClock(), stop),
        kwargs={"every_s": 0.1, "done": seen.append},
    )
    with open_sync(f"sqlite:///{store.path}", clock=ManualClock(END), housekeeping=False) as room:
        watcher.start()
        try:
            room.publish("shop/orders", {"order": 1})
            head, end = store.snapshot().head, time.monotonic() + 240
            while lake.positions(LEDGER).ledger < head:
                assert time.monotonic() < end, "what came was not taken in for four minutes"
                assert watcher.is_alive(), "the watch ended by itself"
                time.sleep(0.05)
        finally:
            stop.set()
            watcher.join(240)
    assert not watcher.is_alive()
    assert sum(each.events for each in seen) == head - before > 0
    assert lake.positions(MESSAGE_LIFE).ledger == head


def test_sums_of_days_that_the_lake_let_go_stay_when_something_late_happens_to_them(
    spark: Any, later: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    """Of those days only the late message is left; sums of it alone would be wrong."""
    lake = copied(filled, tmp_path / "lake")
    end = max(row["day"] for row in rows(filled, QUEUE_HOUR)) + timedelta(days=1)
    moment = datetime(end.year, end.month, end.day, tzinfo=UTC)
    retain(lake, ManualClock(round(moment.timestamp()) * SECOND), keep_s=0)
    assert lake.files(MESSAGE_LIFE) == []
    fill(spark, lake, later)
    late = {file.cut or "" for file in lake.files(MESSAGE_LIFE)}
    assert min(late) < end.isoformat(), "something happened to a message of a day that was let go"
    for table in GOLD:
        assert [row for row in rows(lake, table) if row["day"] < end] == rows(filled, table), table.name


def test_whoever_reads_while_all_is_built_anew_finds_every_row_at_every_moment(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, commit = copied(filled, tmp_path / "lake"), Lake.commit
    seen: list[tuple[str, dict[str, int]]] = []

    def count() -> dict[str, int]:
        return {table.name: sum(file.rows for file in lake.files(table)) for table in COMPARED}

    def look(self: Lake, table: Any, *args: Any, **more: Any) -> None:
        commit(self, table, *args, **more)
        seen.append((table.name, count()))

    before = count()
    monkeypatch.setattr(Lake, "commit", look)
    fill(spark, lake, month, refresh=True)
    assert {name for name, _ in seen} >= {table.name for table in (*SILVER, *GOLD, *MEMORY)}
    assert [name for name, found in seen if found != before] == []
    same(lake, filled)
