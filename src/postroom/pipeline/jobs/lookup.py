"""Finding the few files of a table that hold certain keys, on the driver, by ranges and by key columns
alone."""

from bisect import bisect_left
from collections.abc import Sequence

import pyarrow as pa

from postroom.pipeline.jobs.context import read_columns
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import LakeFile
from postroom.pipeline.lake.tables import Table
from postroom.pipeline.lake.upsert import keys_of


def files_with(
    files: Sequence[LakeFile], table: Table, by: tuple[str, ...], keys: pa.Array
) -> list[LakeFile]:
    """Files with a row that has one of these keys."""
    found = []
    for file in in_range(files, by[0], keys) if len(by) == 1 else files:
        here = keys_of(read_columns([file], table, list(by)), by)
        if pc.any(pc.is_in(here, value_set=keys)).as_py():
            found.append(file)
    return found


def in_range(files: Sequence[LakeFile], column: str, keys: pa.Array) -> list[LakeFile]:
    """Files that may hold one of these keys, by the range of the column that is noted for each."""
    ordered = sorted(keys.to_pylist())

    def may_hold(file: LakeFile) -> bool:
        low, high = file.low.get(column), file.high.get(column)
        if low is None or high is None:
            return True
        place = bisect_left(ordered, low)
        return place < len(ordered) and ordered[place] <= high

    return [file for file in files if may_hold(file)]


def rows_with(
    file: LakeFile, table: Table, by: tuple[str, ...], keys: pa.Array, columns: Sequence[str]
) -> pa.Table:
    """The rows of a file that have one of these keys, with the columns of the key and some more."""
    rows = read_columns([file], table, [*by, *columns])
    return rows.filter(pc.is_in(keys_of(rows, by), value_set=keys))
