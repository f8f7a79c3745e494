"""The benchmark's large store is a store like any other, whatever columns and tables stores have today."""

from pathlib import Path

from benchmarks.lakes.multiply import multiply

from postroom.kernel.ledger import GENESIS
from postroom.pipeline.bronze.chain import ChainCheck
from postroom.pipeline.bronze.packed import Packed
from postroom.pipeline.sources.sqlite import SqliteSource


def test_copies_of_a_store_in_a_file_are_chained_as_its_own_events(
    month: SqliteSource, tmp_path: Path
) -> None:
    first = month.snapshot()
    made = multiply(Path(month.path), tmp_path / "large.db", first.head + 1)
    assert made == 2 * first.head
    large = SqliteSource(str(tmp_path / "large.db"))
    check = ChainCheck(0, GENESIS)
    for batch in large.packed(0, made):
        check.add(Packed(batch))
    check.end(made)
    assert check.breaks == []
    assert large.snapshot().records == 2 * first.records
    ended = sum(batch.num_rows for batch in large.ended(0, made))
    assert ended == 2 * sum(batch.num_rows for batch in month.ended(0, first.head))
