"""What is counted of messages everywhere in gold: how they ended, and how long they took."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.tables import MONEY
from postroom.pipeline.silver.events import whole

LENGTHS = {"wait": "wait_us", "work": "work_us", "total": "total_us"}
ENDS = ("outcome", "failures", "claims", *LENGTHS.values())
"""The columns that `ends` and lengths are taken of."""
Counts = dict[str, Any]
"""By column: a number or a condition for each row, to be added up. None of either adds nothing."""


class Groups:
    """Rows by the value of some columns; a missing value is a value too."""

    def __init__(self, rows: pa.Table, key: Sequence[str]) -> None:
        self._rows = rows
        self._key = key
        number = np.zeros(rows.num_rows, np.int64)
        for name in key:
            codes = whole(rows[name]).dictionary_encode("encode")
            number = number * (len(codes.dictionary) + 1) + codes.indices.to_numpy()
        _, first, self._number = np.unique(number, return_index=True, return_inverse=True)
        self.first = pa.array(first)
        """A place of each group: the first of its rows."""
        self._order = np.argsort(self._number, kind="stable")
        self._begins = np.searchsorted(self._number[self._order], np.arange(len(first)))

    def keys(self) -> dict[str, Any]:
        return {name: whole(self._rows[name]).take(self.first) for name in self._key}

    def total(self, values: Any) -> Any:
        """Numbers added up, or for how many rows a condition holds."""
        if not isinstance(values, np.ndarray):
            plain = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            values = pc.fill_null(plain.cast(pa.int64()), 0).to_numpy()
        return np.add.reduceat(values[self._order].astype(np.int64), self._begins)

    def money(self, values: pa.ChunkedArray) -> pa.Array:
        """Exact; nothing where no row has any."""
        spent = pa.table({"number": self._number, "usd": values})
        sums = spent.group_by("number", use_threads=False).aggregate([("usd", "sum")]).sort_by("number")
        return whole(sums["usd_sum"]).cast(MONEY)

    def spread(self, name: str, shares: Sequence[int]) -> list[pa.Array]:
        """Exact percentiles of a column, between the two nearest when no value is at the place."""
        column = whole(self._rows[name])
        known = column.is_valid().to_numpy(zero_copy_only=False)
        number, values = self._number[known], column.drop_null().to_numpy()
        values = values[np.lexsort((values, number))]
        count = np.bincount(number, minlength=len(self.first))
        begin = np.cumsum(count) - count
        there = count > 0
        found = []
        for share in shares:
            place = (count - 1) * (share / 100)
            low, high = np.floor(place), np.ceil(place)
            before, after = (values[(begin + each)[there].astype(np.int64)] for each in (low, high))
            between = before + (after - before) * (place - low)[there]
            spread = np.zeros(len(count))
            spread[there] = np.where(low[there] == high[there], before, between)
            found.append(pa.array(spread, mask=~there))
        return found


def ends(rows: pa.Table) -> Counts:
    outcome = whole(rows["outcome"])
    return {
        "messages": np.ones(rows.num_rows, np.int64),
        **{name: pc.equal(outcome, name) for name in ("completed", "dead", "expired", "cancelled", "open")},
        "failures": rows["failures"],
        "retried": pc.greater(rows["claims"], 1),
    }


def summed(
    rows: pa.Table,
    key: Sequence[str],
    counts: Counts,
    lengths: Mapping[str, str] | None = None,
    shares: tuple[int, ...] = (50, 95),
    money: Sequence[str] = (),
) -> pa.Table:
    """A row for each value of the key: counts, percentiles of some columns, and sums of money."""
    groups = Groups(rows, key)
    columns = groups.keys() | {name: groups.total(values) for name, values in counts.items()}
    for name, column in (lengths or {}).items():
        spread = groups.spread(column, shares)
        columns |= {f"{name}_p{share}_us": each for share, each in zip(shares, spread, strict=True)}
    columns |= {name: groups.money(rows[name]) for name in money}
    return pa.table(columns)


def with_month(rows: pa.Table) -> pa.Table:
    return rows.append_column("month", pc.strftime(rows["day"], format="%Y-%m"))
