"""Damaged files are taken out of their tables: bronze gets its rows back from the store, the rest is built
anew.

What can be had from neither is lost, and told so. Nothing of a damaged page ever reaches another table.
"""

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
import pyarrow as pa
import pyarrow.fs as pafs

from postroom.clock import SECOND
from postroom.pipeline.bronze.ingest import CLEAN
from postroom.pipeline.errors import LakeDamaged
from postroom.pipeline.jobs.context import Context, read_columns
from postroom.pipeline.jobs.quarantine import QuarantineFinding
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter, filesystem
from postroom.pipeline.lake.lake import Lake, LakeFile
from postroom.pipeline.lake.reading import read_what_is_whole
from postroom.pipeline.lake.tables import (
    ALL,
    BRONZE,
    HANDOFFS,
    LEDGER,
    MESSAGES,
    QUARANTINE,
    RECORDS,
    RUNS,
    SPANS,
    TRACES,
    Table,
)
from postroom.pipeline.lake.upsert import keys_of

MOST_REPAIRS = 50
_NUMBER = {LEDGER.name: "seq", MESSAGES.name: "ended_seq", RECORDS.name: "id"}
_TOGETHER = (TRACES, SPANS, HANDOFFS)
_FILE = re.compile(
    r"reading file (\S+?\.parquet)|(\S+?\.parquet) is damaged|does not exist: (\S+?\.parquet)", re.IGNORECASE
)


class Repair(msgspec.Struct, frozen=True):
    """What was wrong with a table, what was done, and how many rows nobody has any more."""

    table: str
    file: str | None
    problem: str
    lost: int = 0

    @property
    def sentence(self) -> str:
        place = f"The file {self.file} of {self.table}" if self.file else f"The log of {self.table}"
        if self.table in _NUMBER and not self.lost:
            return f"{place} was damaged; its rows were taken from the store again."
        if self.lost:
            return f"{place} was damaged; {self.lost:,} of its rows are lost: the store no longer has them."
        return f"{place} was damaged; the table was built anew."


def find_file(lake: Lake, text: str) -> tuple[Table, LakeFile] | None:
    """The file of the lake that an error is about, if it says so."""
    said = _FILE.search(text)
    place = next(filter(None, said.groups())) if said is not None else ""
    for table in ALL:
        if f"/{table.name}/" in place:
            for file in lake.files(table):
                if file.path.rpartition("/")[2] == place.rpartition("/")[2]:
                    return table, file
    return None


def repair(at: Context, damage: LakeDamaged) -> tuple[Context, Repair]:
    """The context to go on with. Damage that cannot be helped is raised again."""
    table = next((each for each in ALL if each.name == damage.data["table"]), None)
    if table is None:
        raise damage
    file = damage.file
    problem = damage.data["problem"]
    if file is None:
        # Its log: without bronze's nobody knows what the lake has; any other table is begun again.
        if table in BRONZE and table.name not in at.anew:
            raise damage
        set_log_aside(at, table)
        return _build_anew(at, table), Repair(table.name, None, problem)
    if table in (*BRONZE, QUARANTINE, RUNS):
        found = Repair(table.name, file.path, problem, _refill(at, table, file))
    else:
        found = Repair(table.name, file.path, problem)
        at = _build_anew(at, table)
    reason = f"damaged file; {found.lost:,} rows lost" if found.lost else "damaged file"
    at.quarantine(
        [QuarantineFinding(table=table.name, key=file.path, reason=reason, row={"problem": problem})]
    )
    return at, found


def _build_anew(at: Context, table: Table) -> Context:
    tables = {each.name for each in (_TOGETHER if table in _TOGETHER else (table,))}
    return msgspec.structs.replace(at, anew=at.anew | tables, replaced=at.replaced - tables)


def set_log_aside(at: Context, table: Table) -> None:
    """The table is one that was never there; its files belong to nobody and go with the next vacuum."""
    fs, path = filesystem(at.lake.uri(table))
    stamp = datetime.fromtimestamp(at.clock.now() / SECOND, UTC).strftime("%Y%m%dT%H%M%S")
    log, aside = f"{path}/_delta_log", f"{path}/_damaged_log_{stamp}"
    fs.create_dir(aside, recursive=True)
    pafs.copy_files(log, aside, fs, fs)
    fs.delete_dir(log)


def _refill(at: Context, table: Table, file: LakeFile) -> int:
    """Put the rows of a file that are still to be had, from it and from the store, in its place; what is
    lost."""
    others = _keys_beside(at.lake, table, file)
    writer: FileWriter | None = None
    seen = [others]
    for rows in _rows(at, table, file):
        keys = keys_of(rows, table.key)
        fresh = rows.filter(pc.invert(pc.is_in(keys, value_set=pa.concat_arrays(seen))))
        if fresh.num_rows:
            if writer is None:
                durable = table in BRONZE
                writer = FileWriter(at.lake.uri(table), table.schema, None, table.tracked, durable=durable)
            writer.write(fresh)
            seen.append(keys_of(fresh, table.key))
    written = [writer.close()] if writer is not None else []
    at.lake.commit(table, written, None, removed=[file], about={"reason": "repair"})
    return max(0, file.rows - sum(each.rows for each in written))


def _rows(at: Context, table: Table, file: LakeFile) -> Iterator[pa.Table]:
    yield from read_what_is_whole(file.uri, table.schema)
    column = _NUMBER.get(table.name)
    if column is None:
        return
    low, high = file.low.get(column), file.high.get(column)
    after = 0 if low is None else low - 1
    up_to = at.lake.positions(table).ledger if high is None else high
    ways = {LEDGER.name: at.source.ledger, MESSAGES.name: at.source.ended, RECORDS.name: at.source.records}
    for batch in ways[table.name](after, up_to):
        if batch.num_rows:
            yield CLEAN[table.name](batch).select(table.schema.names).cast(table.schema)


def _keys_beside(lake: Lake, table: Table, file: LakeFile) -> pa.Array:
    """Keys in files whose range crosses that of this one: what the store gives again may be in them."""
    column = _NUMBER.get(table.name)
    found = [pa.array([], table.schema.field(table.key[0]).type if len(table.key) == 1 else pa.string())]
    for other in lake.files(table) if column else ():
        if other.path != file.path and _cross(file, other, column or ""):
            with contextlib.suppress(LakeDamaged):  # it has its own turn
                found.append(keys_of(read_columns([other], table, list(table.key)), table.key))
    return pa.concat_arrays(found)


def _cross(one: LakeFile, other: LakeFile, column: str) -> bool:
    low, high = one.low.get(column), one.high.get(column)
    other_low, other_high = other.low.get(column), other.high.get(column)
    if low is None or high is None or other_low is None or other_high is None:
        return True
    return low <= other_high and other_low <= high
