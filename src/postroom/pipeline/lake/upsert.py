"""Rows of one part of a table, written in the place of older ones: only files that hold such rows are written
anew."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date

import msgspec
import pyarrow as pa

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.files import FileWriter, WrittenFile
from postroom.pipeline.lake.reading import read_rows
from postroom.pipeline.lake.snapshot import LakeFile
from postroom.pipeline.lake.tables import BY_NAME

ROWS_PER_FILE = 500_000
_BETWEEN = "\x1f"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A table that is filled: where it lies, and the files of each part in which older rows may be."""

    table: str
    uri: str
    old: dict[str | None, list[LakeFile]] = {}


class OldRows(msgspec.Struct, frozen=True):
    """What the files to be replaced hold: rows with one of the keys looked for, and others, which stay."""

    files: list[LakeFile]
    same: list[pa.Table]
    others: list[pa.Table]


def find_old(target: Target, cut: str | None, by: tuple[str, ...], keys: pa.Array) -> OldRows:
    """Files of a part with a row that has one of these keys. Of the others at most the key is read."""
    table = BY_NAME[target.table]
    found = OldRows([], [], [])
    for file in in_range(target.old.get(cut, []), by[0], keys) if len(by) == 1 else target.old.get(cut, []):
        hit = pc.is_in(keys_of(read_rows(file, table, by), by), value_set=keys)
        if pc.any(hit).as_py():
            rows = read_rows(file, table)
            found.files.append(file)
            found.same.append(rows.filter(hit))
            found.others.append(rows.filter(pc.invert(hit)))
    return found


def in_range(files: Sequence[LakeFile], column: str, keys: pa.Array) -> list[LakeFile]:
    """Files that may hold one of these keys, by the range of the column that is noted for each."""
    ordered = keys.sort()

    def may_hold(file: LakeFile) -> bool:
        low, high = file.low.get(column), file.high.get(column)
        if low is None or high is None:
            return True
        place = _first_from(ordered, low)
        return place < len(ordered) and ordered[place].as_py() <= high

    return [file for file in files if may_hold(file)]


def _first_from(ordered: pa.Array, low: str) -> int:
    begin, end = 0, len(ordered)
    while begin < end:
        middle = (begin + end) // 2
        begin, end = (middle + 1, end) if ordered[middle].as_py() < low else (begin, middle)
    return begin


def keys_of(rows: pa.Table, names: Sequence[str]) -> pa.Array:
    """One value for each row by which it can be looked up, of one column or of several."""
    if len(names) == 1:
        return rows[names[0]].combine_chunks()
    columns = [rows[name].combine_chunks().cast(pa.string()) for name in names]
    return pc.binary_join_element_wise(*columns, _BETWEEN, null_handling="replace", null_replacement="")


def write_part(target: Target, cut: str | None, tables: Iterable[pa.Table]) -> list[WrittenFile]:
    """These rows in new files of a part, which nobody sees before their commit."""
    table = BY_NAME[target.table]
    written: list[WrittenFile] = []
    writer: FileWriter | None = None
    for rows in tables:
        if not rows.num_rows:
            continue
        if writer is not None and writer.rows >= ROWS_PER_FILE:
            written.append(writer.close())
            writer = None
        if writer is None:
            part = (table.cut, cut) if table.cut else None
            writer = FileWriter(target.uri, table.schema, part, table.tracked)
        writer.write(rows)
    if writer is not None:
        written.append(writer.close())
    return written


def parts_of(rows: pa.Table, cut: str) -> Iterator[tuple[str | None, pa.Table]]:
    """A table's rows by the value of its cut."""
    column = rows[cut]
    values = pc.unique(column)
    for value in values:
        python = value.as_py()
        if len(values) == 1:
            part = rows
        elif python is None:
            part = rows.filter(pc.is_null(column))
        else:
            part = rows.filter(pc.equal(column, value))
        yield (python.isoformat() if isinstance(python, date) else python), part
