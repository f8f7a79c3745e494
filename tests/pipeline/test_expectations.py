"""What breaks an expectation is counted, set aside with its key, and told wherever people look."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import ManualClock
from postroom.pipeline.jobs.expect import CheckResult, check_lake, find_unchecked, findings, keep, standing
from postroom.pipeline.lake.expectations import CHECKED, EXPECTED, UNIQUE, UP_TO_DATE
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import (
    ALL,
    EXPECTATIONS,
    HANDOFFS,
    LEDGER,
    MESSAGE_LIFE,
    MESSAGES,
    QUEUE_HOUR,
    SLA,
    SPANS,
    TRACES,
    Table,
)
from postroom.pipeline.serving import insights
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.serving.insights import Period
from postroom.pipeline.serving.report import report
from postroom.pipeline.serving.status import status
from tests.pipeline.tiny import put

DAY = date(2026, 11, 30)
HOUR = datetime(2026, 11, 30, 10, tzinfo=UTC)
LIFE = {"state": "completed", "outcome": "completed", "last_seq": 1, "day": DAY, "attempts": 1}
HERE = Positions(1, 1)
EVENT = {"type": "message.published", "tenant": "t", "hash": b"h"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def checked(lake: Lake, table: Table, target: Positions = HERE) -> dict[str, CheckResult]:
    """Of all files of a table, as if they had just been written."""
    changed = {table.name: [file.path for file in lake.files(table)]}
    return {each.expectation: each for each in check_lake(lake, changed, target)}


def broken(lake: Lake, table: Table) -> dict[str, list[str]]:
    return {name: each.examples for name, each in checked(lake, table).items() if each.broken}


def test_every_table_that_a_run_writes_has_its_expectations_and_they_are_about_its_columns() -> None:
    for table in CHECKED:
        expected = EXPECTED[table.name]
        named = {
            *expected.never_null,
            *expected.at_least,
            *expected.at_most,
            *expected.one_of,
            *expected.sums,
        }
        parts = {part for each in expected.sums.values() for part in each}
        assert (named | parts) <= set(table.schema.names), table.name
        assert len(expected.conditions()) > 0


def test_rows_that_are_as_declared_break_nothing(lake: Lake) -> None:
    put(lake, MESSAGE_LIFE, {**LIFE, "message_id": "a"}, {**LIFE, "message_id": "b", "outcome": "open"})
    results = checked(lake, MESSAGE_LIFE)
    assert not [each for each in results.values() if each.broken]
    assert {UNIQUE, UP_TO_DATE, "message_id is there", "outcome is known"} <= set(results)


def test_each_kind_of_break_is_found_with_the_keys_of_its_rows(lake: Lake) -> None:
    put(
        lake,
        MESSAGE_LIFE,
        {**LIFE, "message_id": "fine"},
        {**LIFE, "message_id": "twice"},
        {**LIFE, "message_id": "twice"},
        {**LIFE, "message_id": "negative", "attempts": -1},
        {**LIFE, "message_id": "strange", "outcome": "eaten"},
        {**LIFE, "message_id": "nowhere", "state": None},
    )
    assert broken(lake, MESSAGE_LIFE) == {
        "attempts is at least 0": ["negative"],
        "outcome is known": ["strange"],
        "state is there": ["nowhere"],
        UNIQUE: ["twice"],
    }


def test_times_out_of_all_ranges_and_numbers_that_come_twice_are_found_in_bronze(lake: Lake) -> None:
    put(lake, LEDGER, {**EVENT, "seq": 1, "time": 5}, {**EVENT, "seq": 2, "time": 2**62})
    assert broken(lake, LEDGER) == {"time is at most 7258118400000000": ["2"]}
    old = {file.path for file in lake.files(LEDGER)}
    put(lake, LEDGER, {**EVENT, "seq": 2, "time": 6}, {**EVENT, "seq": 3, "time": 7})
    [new] = [file.path for file in lake.files(LEDGER) if file.path not in old]
    results = {each.expectation: each for each in check_lake(lake, {LEDGER.name: [new]}, Positions(1, 1))}
    assert results[UNIQUE].examples == [new], "a file whose numbers another has already"


def test_sums_and_references_are_held_against_each_other(lake: Lake) -> None:
    counts = {"completed": 1, "dead": 0, "expired": 0, "cancelled": 0, "open": 0}
    place = {"day": DAY, "hour": HOUR, "tenant": "t", "scope": "s"}
    put(
        lake,
        QUEUE_HOUR,
        {**place, **counts, "queue": "right", "messages": 1},
        {**place, **counts, "queue": "wrong", "messages": 2},
    )
    [(name, keys)] = broken(lake, QUEUE_HOUR).items()
    assert name == "messages is the sum of its parts"
    assert keys[0].endswith("t s wrong")
    put(lake, TRACES, {"tenant": "t", "trace_id": "a", "root_id": "m", "messages": 1, "day": DAY})
    put(
        lake,
        SPANS,
        {"tenant": "t", "trace_id": "a", "span_id": "m", "state": "completed", "day": DAY},
        {"tenant": "u", "trace_id": "a", "span_id": "n", "state": "completed", "day": DAY},
    )
    assert broken(lake, SPANS) == {"belongs to a conversation that is there": ["u a n"]}


def test_a_table_that_did_not_come_as_far_as_the_store_was_is_told(lake: Lake) -> None:
    put(lake, MESSAGE_LIFE, {**LIFE, "message_id": "a"}, positions=Positions(7, 0))
    assert checked(lake, MESSAGE_LIFE, Positions(7, 3))[UP_TO_DATE].broken == 0
    assert checked(lake, MESSAGE_LIFE, Positions(8, 3))[UP_TO_DATE].broken == 1


def test_only_parts_that_changed_are_read(lake: Lake) -> None:
    put(lake, MESSAGE_LIFE, {**LIFE, "message_id": "old", "day": date(2026, 10, 1)})
    [old] = lake.files(MESSAGE_LIFE)
    Path(old.uri).write_bytes(b"whoever opens it fails")
    put(lake, MESSAGE_LIFE, {**LIFE, "message_id": "new"})
    new = [file.path for file in lake.files(MESSAGE_LIFE) if file.path != old.path]
    assert check_lake(lake, {MESSAGE_LIFE.name: new}, Positions(1, 1))


def test_what_a_run_wrote_that_died_before_it_was_checked_is_checked_by_the_next(lake: Lake) -> None:
    clock = ManualClock(1_800_000_000_000_000)
    put(lake, MESSAGE_LIFE, {**LIFE, "message_id": "a", "last_seq": 5}, positions=Positions(5, 5))
    put(lake, SLA, {"day": DAY, "tenant": "t", "scope": "s", "queue": "q"}, positions=Positions(5, 5))
    everything = find_unchecked(lake, {}, Positions(5, 5))
    assert everything[MESSAGE_LIFE.name], "nothing was ever checked"
    keep(lake, check_lake(lake, everything, Positions(5, 5)), "run1", clock, Positions(5, 5))
    [checked_life] = [file.path for file in lake.files(MESSAGE_LIFE)]
    assert find_unchecked(lake, {}, Positions(5, 5)) == {}
    # A run that commits, and dies before it has checked.
    put(lake, MESSAGE_LIFE, {**LIFE, "message_id": "b", "last_seq": 9}, positions=Positions(9, 9))
    put(
        lake, MESSAGES, {"seq": 2, "id": "b", "ended_seq": 9, "state": "completed"}, positions=Positions(9, 9)
    )
    left = find_unchecked(lake, {}, Positions(9, 9))
    assert left[MESSAGES.name], "its own number is far below that of the event that ended it"
    assert len(left[MESSAGE_LIFE.name]) == 1
    assert checked_life not in left[MESSAGE_LIFE.name]
    assert left[SLA.name] == [file.path for file in lake.files(SLA)], "of sums nobody knows which are new"
    keep(lake, check_lake(lake, left, Positions(9, 9)), "run2", clock, Positions(9, 9))
    assert find_unchecked(lake, {"x": ["y"]}, Positions(9, 9)) == {"x": ["y"]}


def test_it_is_told_in_status_insights_and_report_and_told_as_over(lake: Lake) -> None:
    clock = ManualClock(1_800_000_000_000_000)
    put(lake, HANDOFFS, {"tenant": "t", "trace_id": "a", "message_id": "m", "from_agent": "x", "day": DAY})
    for table in ALL:
        if not lake.exists(table):
            lake.commit(table, [], HERE)
    results = list(checked(lake, HANDOFFS).values())
    keep(lake, results, "run1", clock)
    files = len(lake.files(EXPECTATIONS))
    clock.advance(60)
    keep(lake, results, "run2", clock)
    assert len(lake.files(EXPECTATIONS)) == files, "what is as it was is not written again"
    told: dict[str, Any] = status(lake, None)["expectations"]
    assert told["checked"] == len(results)
    names = {(row["expectation"], row["broken"]) for row in told["broken"]}
    assert names == {("to_agent is there", 1), ("belongs to a conversation that is there", 1)}
    with engine(lake) as light:
        assert [row["broken"] for row in insights.expectations(light)][:3] == [1, 1, 0]
        page = report(light, Period(DAY, DAY), "now")
    assert "to_agent is there" in page
    assert {each.key for each in findings(results)} == {"t a m"}
    fixed = [CheckResult(table=each.table, expectation=each.expectation, broken=0) for each in results]
    clock.advance(60)
    keep(lake, fixed, "run3", clock)
    assert status(lake, None)["expectations"]["broken"] == []
    assert all(row["broken"] == 0 for row in standing(lake))
