"""Runs that are cut short, at whatever point, end in the same tables as one that was not."""

import random
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.errors import SparkFailed
from postroom.pipeline.jobs import bronze
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import BRONZE, LEDGER, Table
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.lakes import COMPARED, fill, fill_bronze, same


class BrokenOff(BaseException):
    """Nothing may catch it."""


def test_a_second_run_has_nothing_to_do(spark: Any, month: SqliteSource, filled: Lake) -> None:
    before = {table.name: lake_version(filled, table) for table in COMPARED}
    assert fill(spark, filled, month).events == 0
    assert {table.name: lake_version(filled, table) for table in COMPARED} == before


def lake_version(lake: Lake, table: Table) -> int:
    return lake.must_open(table).version()


def test_small_portions_broken_off_at_commits_make_the_same_tables_as_one_large_run(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right where a commit begins or has ended, five times. These are exceptions within the process; for real
    kills see `test_kill`."""
    rng = random.Random(1)
    lake = Lake(str(tmp_path / "lake"))
    commit, left = Lake.commit, [0]

    def fragile(self: Lake, *args: Any, **more: Any) -> None:
        left[0] -= 1
        if left[0] == 0 and rng.random() < 0.5:
            raise BrokenOff
        commit(self, *args, **more)
        if left[0] <= 0:
            raise BrokenOff

    monkeypatch.setattr(Lake, "commit", fragile)
    at_once = month.snapshot().head // 8 + 1
    for _ in range(5):
        left[0] = rng.choice((1, 2, 3))
        with pytest.raises(BrokenOff):
            fill(spark, lake, month, at_once=at_once)
    monkeypatch.undo()
    done = fill(spark, lake, month, at_once=at_once)
    assert [step.step for step in done.steps].count("bronze") > 1, "the last run, too, has several portions"
    same(lake, filled)


def test_a_killed_worker_fails_the_run_with_nothing_committed_and_the_next_one_recovers(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def suicidal(number: int) -> Any:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)

    lake = Lake(str(tmp_path / "lake"))
    monkeypatch.setattr(bronze, "Ingest", lambda *_: suicidal)
    with pytest.raises(SparkFailed):
        fill(spark, lake, month)
    assert lake.open(LEDGER) is None
    monkeypatch.undo()
    fill_bronze(spark, lake, month)
    same(lake, filled, BRONZE)
