"""Parcels of one key meet in one place, whoever carries the tasks out."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from postroom.pipeline.jobs.workers import LocalWorkers, Parcel, _gathered, _packed


def count_to(number: int) -> Iterator[Parcel]:
    for each in range(number):
        yield str(each % 3), pa.table({"n": [each]})


def add(key: str, parts: list[pa.Table]) -> Iterator[Parcel]:
    yield f"sum of {key}", pa.table({"n": [sum(pa.concat_tables(parts)["n"].to_pylist())]})


def join(_: str, parts: list[pa.Table]) -> Iterator[Parcel]:
    yield "all", pa.concat_tables(parts)


def told(parcels: list[Parcel]) -> dict[str, list[Any]]:
    return {key: sorted(table["n"].to_pylist()) for key, table in parcels}


def test_all_parcels_of_a_key_are_gathered_and_what_is_made_of_them_again() -> None:
    workers = LocalWorkers()
    assert len(workers.collect(count_to, 4)) == 6
    assert told(workers.collect(count_to, 5, add)) == {"sum of 0": [3], "sum of 1": [3], "sum of 2": [4]}
    made = workers.collect(count_to, 5, lambda key, parts: ((key[:0], part) for part in parts), join)
    assert told(made) == {"all": [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]}
    assert workers.collect(count_to, 0, add) == []


def test_a_task_that_fails_fails_the_step() -> None:
    def broken(number: int) -> Iterator[Parcel]:
        raise ValueError(f"number {number}")

    with pytest.raises(ValueError, match="number 0"):
        LocalWorkers().collect(broken, 2)


def test_a_parcel_is_the_same_after_its_way_as_one_value() -> None:
    table = pa.table({"n": pa.array([1, None]), "text": ["a", None], "list": [["x"], None]})
    seen: list[pa.Table] = []

    def look(key: str, parts: list[pa.Table]) -> Iterator[Parcel]:
        seen.extend(parts)
        yield key, parts[0]

    list(_gathered(look, iter([_packed(("k", table)), _packed(("k", table.slice(1)))])))
    assert seen == [table, table.slice(1)]
