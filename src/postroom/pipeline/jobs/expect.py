"""Checking what a run has written against what its tables must be like; what breaks it is set aside and told.

Only parts of the lake that the run changed are looked at, by DuckDB on the driver, after all commits.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from postroom.clock import SECOND, Clock
from postroom.pipeline.jobs.quarantine import QuarantineFinding
from postroom.pipeline.jobs.run_log import append_rows
from postroom.pipeline.lake.expectations import CHECKED, EXPECTED, UNIQUE, UP_TO_DATE
from postroom.pipeline.lake.lake import Lake, LakeFile, Positions
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import ALL, CHUNKS, EXPECTATIONS, MESSAGE_LIFE, RECORDS, TURNS, Table
from postroom.pipeline.serving.engine import QueryEngine, engine

MOST_EXAMPLES = 20
ROWS_AT_ONCE = 500_000
MOST_ROWS = 10_000_000
REFERS = "belongs to a conversation that is there"


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """One expectation of one table: how many rows break it, and the keys of some of them."""

    table: str
    expectation: str
    broken: int
    examples: list[str] = []

    @property
    def sentence(self) -> str:
        rows = f"{self.broken:,} row{'s' if self.broken != 1 else ''}"
        told = f", for example {self.examples[0]}" if self.examples else ""
        return f"{self.table}: expected that {self.expectation}, and {rows} did not keep it{told}."


def check_lake(lake: Lake, changed: Mapping[str, Sequence[str]], target: Positions) -> list[CheckResult]:
    """`changed` are the files that were written, by table."""
    found: list[CheckResult] = []
    with engine(lake) as light:
        for table in ALL:
            light.narrow(table, [])  # a column may have the name of a table that nobody asks for
        for table in CHECKED:
            if changed.get(table.name):
                found += _check(light, lake, table, set(changed[table.name]))
                found.append(_far_enough(lake, table, target))
    return found


def find_unchecked(
    lake: Lake, written: Mapping[str, Sequence[str]], stood: Positions
) -> dict[str, Sequence[str]]:
    """Files to be checked by table: what was written, and what runs left behind that ended before they had
    checked it. `stood` is where the lake was when this run began."""
    found, seen = dict(written), lake.snapshot(EXPECTATIONS)
    unknown = seen.exists and seen.positions == Positions()  # written before positions were noted
    if unknown or seen.positions.covers(stood):
        return found
    for table in CHECKED:
        column = _position_in(table)
        after = seen.positions.records if table in (RECORDS, TURNS) else seen.positions.ledger
        left = [
            file.path
            for file in lake.files(table)
            if column is None or file.high.get(column) is None or file.high[column] > after
        ]
        found[table.name] = sorted({*found.get(table.name, ()), *left})
    return found


def _position_in(table: Table) -> str | None:
    """The column that tells up to which event or record a file goes. Messages are numbered on their own."""
    if "ended_seq" in table.tracked:
        return "ended_seq"
    return table.tracked[0] if table.tracked else None


def findings(results: Sequence[CheckResult]) -> list[QuarantineFinding]:
    return [
        QuarantineFinding(table=each.table, key=key, reason=f"expected that {each.expectation}")
        for each in results
        for key in each.examples
    ]


def _check(light: QueryEngine, lake: Lake, table: Table, changed: set[str]) -> list[CheckResult]:
    every = lake.files(table)
    new = [file for file in every if file.path in changed]
    cuts = {file.cut for file in new}
    looked_at = [file for file in every if file.cut in cuts] if table.cut else new
    totals: dict[str, CheckResult] = {}
    for files in _portions(looked_at, table):
        for each in _check_files(light, lake, table, files):
            known = totals.get(each.expectation)
            totals[each.expectation] = each if known is None else _together(known, each)
    crossing = [] if table.cut else _crossing(table, every, new)
    if crossing:
        rows, paths = sum(file.rows for file in crossing), [file.path for file in crossing[:MOST_EXAMPLES]]
        found = CheckResult(table=table.name, expectation=UNIQUE, broken=rows, examples=paths)
        totals[UNIQUE] = _together(totals[UNIQUE], found)
    return list(totals.values())


def _portions(files: Sequence[LakeFile], table: Table) -> Iterator[list[LakeFile]]:
    """Whole parts of a table, a bounded number of rows at a time."""
    parts: dict[str, list[LakeFile]] = {}
    for file in files:
        parts.setdefault(file.cut or "" if table.cut else file.path, []).append(file)
    portion: list[LakeFile] = []
    for part in parts.values():
        if portion and sum(file.rows for file in (*portion, *part)) > ROWS_AT_ONCE:
            yield portion
            portion = []
        portion = [*portion, *part]
    if portion:
        yield portion


def _together(one: CheckResult, other: CheckResult) -> CheckResult:
    examples = [*one.examples, *other.examples][:MOST_EXAMPLES]
    return msgspec.structs.replace(one, broken=one.broken + other.broken, examples=examples)


def _check_files(
    light: QueryEngine, lake: Lake, table: Table, files: list[LakeFile]
) -> Iterator[CheckResult]:
    """All in one question: asking costs more than answering where little has changed."""
    light.narrow(table, files)
    expected = EXPECTED[table.name]
    conditions = expected.conditions()
    asked = [f"count(*) FILTER (WHERE {each.broken})" for each in conditions]
    key = ", ".join(table.key)
    twice = f"SELECT {key}, count(*) - 1 AS n FROM {table.short} GROUP BY {key} HAVING count(*) > 1"  # noqa: S608 - declared
    missing = ""
    # One part that is too large is not held against itself.
    if sum(file.rows for file in files) <= MOST_ROWS:
        asked.append(f"(SELECT coalesce(sum(n), 0) FROM ({twice}))")  # noqa: S608
        if expected.refers is not None:
            names, other = expected.refers
            cuts = {file.cut for file in files}
            light.narrow(other, [file for file in lake.files(other) if file.cut in cuts])
            same = " AND ".join(f"o.{name} IS NOT DISTINCT FROM {table.short}.{name}" for name in names)
            missing = f"NOT EXISTS (SELECT 1 FROM {other.short} o WHERE {same})"  # noqa: S608
            asked.append(f"(SELECT count(*) FROM {table.short} WHERE {missing})")  # noqa: S608
    named = ", ".join(f"{each} AS c{number}" for number, each in enumerate(asked))
    [row] = light.rows(f"SELECT {named} FROM {table.short}")  # noqa: S608
    answers = list(map(int, row.values()))
    for each, broken in zip(conditions, answers, strict=False):
        yield _result(light, table, each.name, broken, f"{table.short} WHERE {each.broken}")
    for name, broken in zip((UNIQUE, REFERS), answers[len(conditions) :], strict=False):
        among = f"{table.short} WHERE {missing}" if name is REFERS else f"({twice})"
        yield _result(light, table, name, broken, among)


def _result(light: QueryEngine, table: Table, name: str, broken: int, among: str) -> CheckResult:
    examples: list[str] = []
    if broken:
        sql = f"SELECT {_key(table)} AS key FROM {among} LIMIT {MOST_EXAMPLES}"  # noqa: S608 - declared
        examples = [row["key"] for row in light.rows(sql)]
    return CheckResult(table=table.name, expectation=name, broken=broken, examples=examples)


def _crossing(table: Table, every: Sequence[LakeFile], new: Sequence[LakeFile]) -> list[LakeFile]:
    """Tables without parts grow by ranges of numbers, which must not cross those of before."""
    paths = {file.path for file in new}
    before = [file for file in every if file.path not in paths]
    return [file for file in new if any(_cross(table, file, other) for other in before)]


def _cross(table: Table, one: LakeFile, other: LakeFile) -> bool:
    """Every row of bronze comes with a number of its own, and each run with higher ones than the last."""
    column = "ended_seq" if "ended_seq" in table.tracked else table.key[0]
    low, high = one.low.get(column), one.high.get(column)
    other_low, other_high = other.low.get(column), other.high.get(column)
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return low <= other_high and other_low <= high


def _far_enough(lake: Lake, table: Table, target: Positions) -> CheckResult:
    wanted = target
    if table in (MESSAGE_LIFE, CHUNKS):
        wanted = Positions(target.ledger)
    elif table is TURNS:
        wanted = Positions(0, target.records)
    late = not lake.positions(table).covers(wanted)
    return CheckResult(table=table.name, expectation=UP_TO_DATE, broken=int(late))


def _key(table: Table) -> str:
    return f"concat_ws(' ', {', '.join(table.key)})"


def standing(lake: Lake) -> list[dict[str, Any]]:
    """How every expectation stands, as it was last found; `since` when."""
    rows = [
        row
        for file in lake.files(EXPECTATIONS)
        for batch in read_batches(file.uri)
        for row in batch.to_pylist()
    ]
    newest = {(row["table"], row["expectation"]): row for row in sorted(rows, key=lambda row: row["since"])}
    return [newest[name] for name in sorted(newest)]


def keep(
    lake: Lake,
    results: Sequence[CheckResult],
    run_id: str,
    clock: Clock,
    target: Positions | None = None,
) -> None:
    """Only what has changed is written down, so that it stays short; `target` is how far all was checked."""
    before = {(row["table"], row["expectation"]): row["broken"] for row in standing(lake)}
    moment = datetime.fromtimestamp(clock.now() / SECOND, UTC)
    rows = [
        {
            "table": each.table, "expectation": each.expectation, "broken": each.broken,
            "example": each.examples[0] if each.examples else None, "since": moment, "run_id": run_id,
        }
        for each in results
        if before.get((each.table, each.expectation)) != each.broken
    ]  # fmt: skip
    if rows:
        append_rows(lake, EXPECTATIONS, rows, target)
    elif target is not None and lake.positions(EXPECTATIONS) != target:
        lake.commit(EXPECTATIONS, [], target)
