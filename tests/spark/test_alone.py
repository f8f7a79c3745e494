"""What a run does in this process alone is row for row what Spark does, and as safe."""

import random
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import ManualClock
from postroom.pipeline.jobs.backfill import DayRange, backfill
from postroom.pipeline.jobs.crew import FEW_ROWS, Crew
from postroom.pipeline.jobs.retention import day_of
from postroom.pipeline.jobs.workers import LocalWorkers, SparkWorkers
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import BRONZE, GOLD, MEMORY, SILVER
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.judge import judge_gold
from tests.spark.lakes import END, copied, fill, same, same_later

NOBODY: Any = None
"""In the place of a session: whoever asks it for anything fails."""


class BrokenOff(BaseException):
    """Nothing may catch it."""


@pytest.fixture
def alone(month: SqliteSource, tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path / "alone"))
    fill(NOBODY, lake, month, few=FEW_ROWS)
    return lake


def test_a_lake_made_without_spark_is_the_one_that_spark_makes(alone: Lake, filled: Lake) -> None:
    same(alone, filled)
    judge_gold(alone)


def test_what_is_new_comes_out_as_by_spark_whoever_made_what_was_there(
    alone: Lake, filled: Lake, grown: Lake, later: SqliteSource, filled_later: Lake, tmp_path: Path
) -> None:
    theirs = copied(filled, tmp_path / "theirs")
    for lake in (alone, theirs):
        fill(NOBODY, lake, later, few=FEW_ROWS)
        same(lake, grown)
        same_later(lake, filled_later)


def test_all_built_anew_and_days_built_again_come_out_as_by_spark(
    alone: Lake, filled: Lake, month: SqliteSource
) -> None:
    fill(NOBODY, alone, month, few=FEW_ROWS, refresh=True)
    same(alone, filled)
    last = day_of(END)
    assert backfill(NOBODY, alone, month, ManualClock(END), DayRange(last, last)).broken == []
    same(alone, filled)


def commits(monkeypatch: pytest.MonkeyPatch, at: int, *, after: bool) -> None:
    """The commit with this number is broken off before anything of it is there, or after all of it is."""
    commit, numbers = Lake.commit, count(1)

    def fragile(self: Lake, *args: Any, **more: Any) -> None:
        number = next(numbers)  # steps run side by side
        if number == at and not after:
            raise BrokenOff
        commit(self, *args, **more)
        if number == at:
            raise BrokenOff

    monkeypatch.setattr(Lake, "commit", fragile)


def break_off(
    at: int, *, after: bool, month: SqliteSource, later: SqliteSource, folder: Path, grown: Lake
) -> None:
    """A first run and one that adds to it, each broken off at the same commit and begun again."""
    lake = Lake(str(folder / f"{at}{after}"))
    for store in (month, later):
        with pytest.MonkeyPatch.context() as patch:
            commits(patch, at, after=after)
            with pytest.raises(BrokenOff):
                fill(NOBODY, lake, store, few=FEW_ROWS)
        fill(NOBODY, lake, store, few=FEW_ROWS)
    same(lake, grown)


LAST = len((*BRONZE, *SILVER, *GOLD, *MEMORY))


def test_broken_off_at_any_commit_it_goes_on_to_the_same_tables(
    month: SqliteSource, later: SqliteSource, grown: Lake, tmp_path: Path
) -> None:
    rng = random.Random()
    at, after = rng.randint(1, LAST), rng.random() < 0.5
    break_off(at, after=after, month=month, later=later, folder=tmp_path, grown=grown)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_broken_off_at_every_commit_it_goes_on_to_the_same_tables(
    after: bool, month: SqliteSource, later: SqliteSource, grown: Lake, tmp_path: Path
) -> None:
    for at in range(1, LAST + 1):
        break_off(at, after=after, month=month, later=later, folder=tmp_path, grown=grown)


def test_spark_is_asked_for_where_several_could_share_the_work(spark: Any) -> None:
    crew = Crew(spark)
    assert isinstance(crew.of(FEW_ROWS), LocalWorkers)
    assert isinstance(crew.of(FEW_ROWS + 1), SparkWorkers)
    assert isinstance(crew.of(10 * FEW_ROWS, 1), LocalWorkers), (
        "a day's sums are one task, however long the day"
    )
    assert isinstance(Crew(spark, 0).of(1, 1), SparkWorkers)
