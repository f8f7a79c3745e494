"""A lake stays in shape by itself: small files are put together, old ones go, and readers notice nothing."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from postroom.clock import SECOND, ManualClock
from postroom.pipeline.jobs import upkeep
from postroom.pipeline.jobs.maintenance import compact
from postroom.pipeline.jobs.run_log import RunLog
from postroom.pipeline.jobs.upkeep import MANY_FILES, VACUUM_EVERY_S, keep_up
from postroom.pipeline.lake import rewrite
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import ALL, LEDGER, MESSAGE_LIFE, RUNS, Table
from postroom.pipeline.serving.engine import engine
from tests.pipeline.tiny import put, rows

NOW = 1_800_000_000 * SECOND
DAY_US = 86_400 * SECOND


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


def look_after(lake: Lake, clock: ManualClock, keep: dict[str, float] | None = None) -> list[str]:
    """The steps that were worth noting."""
    log = RunLog(lake, clock)
    keep_up(lake, clock, log, keep or {})
    log.save()
    return [f"{step.step} {step.status}" for step in log.steps]


def grow(lake: Lake, files: int, start: int = 0, age_days: int = 0) -> None:
    for number in range(start, start + files):
        put(lake, LEDGER, {"seq": number + 1, "time": NOW - age_days * DAY_US, "type": "x"})


def first_of_order(table: Table) -> pa.DataType:
    return table.schema.field(table.order[0]).type


def paths(lake: Lake, table: Table) -> set[str]:
    return {file.path for file in lake.files(table)}


def test_a_lake_with_few_files_is_left_alone(lake: Lake, clock: ManualClock) -> None:
    grow(lake, MANY_FILES - 1)
    before = paths(lake, LEDGER)
    assert look_after(lake, clock) == []
    assert paths(lake, LEDGER) == before


def test_events_that_lie_in_order_are_put_together_unsorted_and_others_are_sorted(
    lake: Lake, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    sort = rewrite._sorted
    monkeypatch.setattr(rewrite, "_sorted", lambda *given: (asked.append(1), sort(*given))[1])
    grow(lake, MANY_FILES)
    look_after(lake, clock)
    assert ([row["seq"] for row in rows(lake, LEDGER)], asked) == (list(range(1, MANY_FILES + 1)), [])
    put(lake, LEDGER, *({"seq": seq, "time": NOW, "type": "x"} for seq in (40, 30)))
    put(lake, LEDGER, {"seq": 35, "time": NOW, "type": "x"})
    compact(lake)
    found = [row["seq"] for row in rows(lake, LEDGER)]
    assert (found, asked) == (sorted(found), [1]), "ranges that cross, and rows out of order"


@pytest.mark.parametrize(
    "table",
    [table for table in ALL if pa.types.is_string(first_of_order(table))],
    ids=lambda table: table.short,
)
def test_files_of_a_table_whose_order_begins_with_a_text_are_sorted(lake: Lake, table: Table) -> None:
    day = {"day": date(2026, 11, 1), "month": "2026-11"}
    for text in ("c", "a", "b"):
        put(lake, table, {table.order[0]: text, **day})
    compact(lake, sort=True)
    assert [row[table.order[0]] for row in rows(lake, table)] == ["a", "b", "c"]
    compact(lake, sort=True)
    assert [row[table.order[0]] for row in rows(lake, table)] == ["a", "b", "c"], "one file too"


def test_many_small_files_become_one_and_whoever_reads_the_old_ones_goes_on(
    lake: Lake, clock: ManualClock
) -> None:
    grow(lake, MANY_FILES)
    position = lake.positions(LEDGER)
    with engine(lake) as reader:
        assert reader.rows("SELECT count(*) AS n FROM ledger") == [{"n": MANY_FILES}]
        assert look_after(lake, clock) == ["compact ok"]
        assert len(lake.files(LEDGER)) == 1
        assert reader.rows("SELECT count(*) AS n FROM ledger") == [{"n": MANY_FILES}]
    assert [row["seq"] for row in rows(lake, LEDGER)] == list(range(1, MANY_FILES + 1))
    assert lake.positions(LEDGER) == position
    assert look_after(lake, clock) == []


def test_what_is_too_much_for_one_time_waits_for_the_next(
    lake: Lake, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(lake, MANY_FILES)
    for number in range(MANY_FILES):
        put(lake, MESSAGE_LIFE, {"message_id": str(number), "day": date(2026, 11, 1), "last_seq": 1})
    monkeypatch.setattr(upkeep, "BYTES_AT_ONCE", sum(file.size for file in lake.files(LEDGER)))
    assert look_after(lake, clock) == ["compact ok"]
    assert (len(lake.files(LEDGER)), len(lake.files(MESSAGE_LIFE))) == (1, MANY_FILES)
    monkeypatch.undo()
    assert look_after(lake, clock) == ["compact ok"]
    assert len(lake.files(MESSAGE_LIFE)) == 1


def test_files_nobody_needs_go_once_a_day_and_only_after_a_week(lake: Lake, clock: ManualClock) -> None:
    grow(lake, 2)
    old = lake.files(LEDGER)
    put(lake, LEDGER, {"seq": 3, "time": NOW})
    lake.commit(LEDGER, [], None, removed=old)
    assert look_after(lake, clock) == []
    clock.advance(VACUUM_EVERY_S - 1)
    assert look_after(lake, clock) == []
    clock.advance(1)
    assert look_after(lake, clock) == ["vacuum ok"]
    assert all(Path(file.uri).exists() for file in old), "versions of the last week can still be read"
    assert look_after(lake, clock) == []


def test_rows_beyond_the_age_of_their_table_go_and_those_of_other_tables_stay(
    lake: Lake, clock: ManualClock
) -> None:
    put(
        lake,
        LEDGER,
        {"seq": 1, "time": NOW - 40 * DAY_US, "type": "old"},
        {"seq": 2, "time": NOW, "type": "new"},
    )
    put(lake, RUNS, {"run_id": "r", "step": "bronze", "started_at": None})
    put(lake, MESSAGE_LIFE, {"message_id": "a", "day": date(2020, 1, 1), "last_seq": 1})
    assert look_after(lake, clock, {LEDGER.name: 30 * 86_400.0}) == ["retain ok"]
    assert [row["type"] for row in rows(lake, LEDGER)] == ["new"]
    assert len(rows(lake, MESSAGE_LIFE)) == 1
    assert lake.positions(LEDGER) == Positions(1, 1)
    assert look_after(lake, clock, {LEDGER.name: 30 * 86_400.0}) == [], "once a day is enough"


def test_files_that_are_young_enough_are_not_opened(lake: Lake, clock: ManualClock) -> None:
    put(lake, LEDGER, {"seq": 1, "time": NOW, "type": "new"})
    [file] = lake.files(LEDGER)
    Path(file.uri).write_bytes(b"whoever opens it fails")
    assert look_after(lake, clock, {LEDGER.name: 30 * 86_400.0}) == ["retain ok"]
    assert look_after(lake, clock, {LEDGER.name: 30 * 86_400.0}) == []


def test_what_fails_is_noted_and_stops_nothing(
    lake: Lake, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(lake, MANY_FILES)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(upkeep, "compact", full)
    assert look_after(lake, clock) == ["compact failed"]
    monkeypatch.undo()
    assert look_after(lake, clock) == ["compact ok"]
