"""Letting go of what is old: rows beyond an age leave the lake. Positions stay, so nothing comes in again.

Sums (gold) hold nothing that anybody wrote, and stay unless they are asked for too.
"""

from collections.abc import Callable, Collection, Iterator
from datetime import UTC, date, datetime
from typing import Any

import msgspec
import pyarrow as pa

from postroom.clock import SECOND, Clock
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter, WrittenFile
from postroom.pipeline.lake.lake import Lake, LakeFile
from postroom.pipeline.lake.lease import hold_lease
from postroom.pipeline.lake.reading import read_batches, read_declared
from postroom.pipeline.lake.tables import (
    BRONZE,
    CHUNKS,
    GOLD,
    LEDGER,
    MESSAGES,
    QUARANTINE,
    RECORDS,
    RUNS,
    SILVER,
    Table,
)

# What tells the age of a row, where the day is not what its files are cut by.
_MOMENT = {
    LEDGER.name: "time",
    MESSAGES.name: "updated_at",
    RECORDS.name: "created_at",
    QUARANTINE.name: "found_at",
    CHUNKS.name: "said_at",
    RUNS.name: "started_at",
}


# No row of a file is older than the least of these, which the log tells without opening it.
_LEAST = {LEDGER.name: "time", MESSAGES.name: "created_at", RECORDS.name: "created_at"}
LETTING_GO = (CHUNKS, *GOLD, *SILVER, QUARANTINE, RUNS, *BRONZE)


class Left(msgspec.Struct, frozen=True):
    """What went from a table, and what stays."""

    rows: int
    files: int
    kept: int


Told = Callable[[str, dict[str, Any]], None]


def retain(
    lake: Lake,
    clock: Clock,
    *,
    keep_s: float,
    gold: bool = False,
    only: Collection[str] = (),
    dry_run: bool = False,
    told: Told = lambda *_: None,
) -> dict[str, Left]:
    """Drop rows older than `keep_s`, of all tables or `only` of some. Their files go with the next vacuum
    that may."""
    before = clock.now() - round(keep_s * SECOND)
    tables = (CHUNKS, *(GOLD if gold else ()), *SILVER, QUARANTINE, RUNS, *BRONZE)
    if only:
        tables = tuple(table for table in LETTING_GO if table.name in only)
    done: dict[str, Left] = {}
    with hold_lease(lake, clock):
        for table in tables:
            if lake.open(table) is None:
                continue
            done[table.name] = let_go(lake, table, before, dry_run=dry_run)
            told(table.name, msgspec.structs.asdict(done[table.name]))
    return done


def let_go(lake: Lake, table: Table, before: int, *, dry_run: bool = False) -> Left:
    """Drop a table's rows from before a moment, under the lease that somebody holds."""
    removed: list[LakeFile] = []
    written: list[WrittenFile] = []
    rows = kept = 0
    for file in lake.files(table):
        old = _old_rows(table, file, before)
        kept += file.rows - old
        if not old:
            continue
        rows += old
        removed.append(file)
        if old < file.rows and not dry_run:
            written.append(_rest(lake, table, file, before))
    if removed and not dry_run:
        kept_from = max(before, lake.snapshot(table).kept_from)
        lake.commit(table, written, None, removed=removed, about={"reason": "retention"}, kept_from=kept_from)
    return Left(rows, len(removed), kept)


def _old_rows(table: Table, file: LakeFile, before: int) -> int:
    """How many rows of a file are too old; most files need not be opened for that."""
    if table.cut == "day":
        return file.rows if file.cut is not None and file.cut < day_of(before).isoformat() else 0
    if table.cut == "month" and file.cut is not None and file.cut > day_of(before).isoformat()[:7]:
        return 0
    least = file.low.get(_LEAST.get(table.name, ""))
    if least is not None and least >= before:
        return 0
    return sum(pc.sum(_old(table, batch, before)).as_py() or 0 for batch in _batches(table, file))


def _batches(table: Table, file: LakeFile) -> Iterator[pa.RecordBatch]:
    return read_batches(file.uri, [_MOMENT.get(table.name, "day")])


def _old(table: Table, rows: pa.RecordBatch | pa.Table, before: int) -> Any:
    """Which rows are too old. One without a time is kept: nobody knows its age."""
    name = _MOMENT.get(table.name)
    column = rows.column("day" if name is None else name)
    bound: Any = before
    if name is None:
        bound = pa.scalar(day_of(before), pa.date32())
    elif pa.types.is_timestamp(column.type):
        bound = pa.scalar(datetime.fromtimestamp(before / SECOND, UTC), column.type)
    return pc.fill_null(pc.less(column, bound), False)


def _rest(lake: Lake, table: Table, file: LakeFile, before: int) -> WrittenFile:
    cut = (table.cut, file.cut) if table.cut else None
    durable = table.layer == "bronze"
    writer = FileWriter(lake.uri(table), table.schema, cut, table.tracked, durable=durable)
    for part in read_declared(file.uri, table.schema):
        writer.write(part.filter(pc.invert(_old(table, part, before))))
    return writer.close()


def day_of(moment: int) -> date:
    return datetime.fromtimestamp(moment / SECOND, UTC).date()
