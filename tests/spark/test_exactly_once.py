"""Runs that are cut short, at whatever point, end in the same tables as one that was not."""

import random
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.failures import SparkFailed
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import ALL, LEDGER, QUARANTINE, RUNS
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.conftest import fill, rows

COMPARED = [table for table in ALL if table not in (RUNS, QUARANTINE)]


class BrokenOff(BaseException):
    """Nothing may catch it."""


def same(one: Lake, other: Lake) -> None:
    for table in COMPARED:
        assert rows(one, table) == rows(other, table), table.name


def test_small_portions_make_the_same_tables_as_one_large_run(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    total = month.snapshot().head
    fill(spark, lake, month, at_once=total // 3 + 1)
    same(lake, filled)


def test_a_second_run_has_nothing_to_do(spark: Any, month: SqliteSource, filled: Lake) -> None:
    before = {table.name: lake_version(filled, table) for table in COMPARED}
    assert fill(spark, filled, month).events == 0
    assert {table.name: lake_version(filled, table) for table in COMPARED} == before


def lake_version(lake: Lake, table: Any) -> int:
    return lake.must_open(table).version()


def test_broken_off_before_or_after_any_commit(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right where a commit begins or has ended, again and again until the run comes through. These are
    exceptions within the process; for real kills see `test_kill`."""
    rng = random.Random(1)
    lake = Lake(str(tmp_path / "lake"))
    commit = Lake.commit
    left, stops = [0], 0

    def fragile(self: Lake, *args: Any, **more: Any) -> None:
        left[0] -= 1
        if left[0] == 0 and rng.random() < 0.5:
            raise BrokenOff
        commit(self, *args, **more)
        if left[0] <= 0:
            raise BrokenOff

    monkeypatch.setattr(Lake, "commit", fragile)
    at_once = month.snapshot().head // 2 + 1
    while stops < 5:
        left[0] = rng.choice((1, 2, 3))
        try:
            fill(spark, lake, month, at_once=at_once)
        except BrokenOff:
            stops += 1
        else:
            break
    monkeypatch.undo()
    fill(spark, lake, month, at_once=at_once)
    assert stops == 5
    same(lake, filled)


def test_a_killed_executor_fails_the_run_and_the_next_one_recovers(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postroom.pipeline.bronze import ingest

    work = ingest._work

    def suicidal(*args: Any) -> Any:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)
        yield from ()

    lake = Lake(str(tmp_path / "lake"))
    monkeypatch.setattr(ingest, "_work", suicidal)
    with pytest.raises(SparkFailed):
        fill(spark, lake, month)
    assert lake.open(LEDGER) is None
    monkeypatch.setattr(ingest, "_work", work)
    fill(spark, lake, month)
    same(lake, filled)
