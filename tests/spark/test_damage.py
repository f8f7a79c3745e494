"""Damage in a file of the lake is found when it is read, told, and made good; nothing of it spreads."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pyarrow as pa
import pytest

from postroom.pipeline.errors import LakeDamaged
from postroom.pipeline.jobs.verify import verify_lake
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import (
    AGENT_DAY,
    CHUNKS,
    HANDOFFS,
    LEDGER,
    MESSAGE_LIFE,
    MESSAGES,
    QUARANTINE,
    QUEUE_HOUR,
    RECORDS,
    SPANS,
    TRACES,
    Table,
)
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.lakes import COMPARED, copied, copy_of, fill, rows, same, same_later


def overwrite(lake: Lake, table: Table, seed: int = 1, *, whole: bool = False) -> list[str]:
    """Sixteen bytes in the pages of the largest file, or of all files; the paths of those."""
    rng = random.Random(seed)
    files = sorted(lake.files(table), key=lambda file: -file.size)
    for file in files if whole else files[:1]:
        path = Path(file.uri)
        data = bytearray(path.read_bytes())
        # Pages come first; the end of the file only describes them.
        place = rng.randrange(4, len(data) // 2)
        data[place : place + 16] = rng.randbytes(16)
        path.write_bytes(data)
    return [file.path for file in (files if whole else files[:1])]


def without_damage(lake: Lake) -> tuple[Table, ...]:
    return tuple(table for table in COMPARED if not verify_lake(lake, tables=[table]))


def test_sixteen_bytes_in_files_of_silver_and_gold_change_no_row_and_are_told(
    spark: Any, filled: Lake, later: SqliteSource, filled_later: Lake, tmp_path: Path
) -> None:
    lake = copied(filled, tmp_path / "lake")
    hit = (MESSAGE_LIFE, SPANS, TRACES, HANDOFFS, QUEUE_HOUR, AGENT_DAY)
    broken = {table.name: overwrite(lake, table, whole=True) for table in hit}
    done = fill(spark, lake, later)
    same_later(lake, filled_later)
    told = " ".join(done.repaired)
    assert "silver/message_life was damaged; the table was built anew" in told
    aside = {row["table"]: row["key"] for row in rows(lake, QUARANTINE) if row["reason"] == "damaged file"}
    assert aside["silver/message_life"] in broken["silver/message_life"]
    assert set(aside) <= set(broken)
    assert {step.step for step in done.steps if step.status == "repaired"} == {"repair"}
    assert verify_lake(lake) == []


def test_bronze_that_is_damaged_gets_its_rows_from_the_store_again(
    spark: Any, filled: Lake, month: SqliteSource, tmp_path: Path
) -> None:
    """Met while silver is built from it; each of the three tables, from whatever of the file is whole and the store."""
    lake = copied(filled, tmp_path / "lake", without=(MESSAGE_LIFE, CHUNKS))
    for table in (LEDGER, MESSAGES):
        overwrite(lake, table)
    done = fill(spark, lake, month)
    assert len(done.repaired) == 2
    assert all("were taken from the store again" in each for each in done.repaired)
    same(lake, filled)


def test_looking_through_finds_what_no_run_would_read_and_repairs_it(
    spark: Any, filled: Lake, month: SqliteSource, tmp_path: Path
) -> None:
    lake = copied(filled, tmp_path / "lake")
    hit = (LEDGER, RECORDS, CHUNKS, AGENT_DAY)
    for table in hit:
        overwrite(lake, table)
    assert fill(spark, lake, month).repaired == [], "there is nothing new, so none of them is read"
    assert {each.data["table"] for each in verify_lake(lake)} == {table.name for table in hit}
    done = fill(spark, lake, month, scrub=True)
    assert len(done.repaired) == len(hit)
    assert verify_lake(lake) == []
    same(lake, filled)


def test_what_neither_the_file_nor_the_store_has_is_lost_and_told(
    spark: Any, filled: Lake, month: SqliteSource, tmp_path: Path
) -> None:
    """The store was pruned after the lake had it. All of bronze's other rows, and all other tables, stay."""
    store, lake = copy_of(month, tmp_path / "store"), copied(filled, tmp_path / "lake")
    db = apsw.Connection(store.path)
    gone = [row[0] for row in db.execute("SELECT id FROM records ORDER BY id LIMIT 40")]
    db.execute("DELETE FROM records WHERE id <= ?", (gone[-1],))
    db.close()
    overwrite(lake, RECORDS)
    done = fill(spark, lake, store, scrub=True)
    [told] = done.repaired
    assert "40 of its rows are lost: the store no longer has them" in told
    assert [row["reason"] for row in rows(lake, QUARANTINE) if row["table"] == RECORDS.name] == [
        "damaged file; 40 rows lost"
    ]
    assert [row for row in rows(filled, RECORDS) if row["id"] not in gone] == rows(lake, RECORDS)
    same(lake, filled, tuple(table for table in COMPARED if table is not RECORDS))


def test_a_log_that_cannot_be_read_is_set_aside_and_its_table_built_anew(
    spark: Any, filled: Lake, month: SqliteSource, tmp_path: Path
) -> None:
    """Without its first version a table is no table."""
    lake = copied(filled, tmp_path / "lake")
    lake.commit(MESSAGE_LIFE, [], lake.positions(MESSAGE_LIFE))
    log = Path(str(lake.folder)) / MESSAGE_LIFE.name / "_delta_log"
    (log / f"{0:020d}.json").unlink()
    with pytest.raises(LakeDamaged, match="silver/message_life"):
        lake.files(MESSAGE_LIFE)
    done = fill(spark, lake, month)
    assert done.repaired == ["The log of silver/message_life was damaged; the table was built anew."]
    same(lake, filled)


def test_a_log_of_bronze_is_built_anew_only_when_asked(
    spark: Any, filled: Lake, month: SqliteSource, tmp_path: Path
) -> None:
    """The store may no longer have what it told of."""
    lake = copied(filled, tmp_path / "lake")
    lake.commit(LEDGER, [], lake.positions(LEDGER))
    (Path(str(lake.folder)) / LEDGER.name / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(LakeDamaged, match="bronze/ledger") as told:
        fill(spark, lake, month)
    assert "--from-store" in str(told.value)
    fill(spark, lake, month, refresh=True, everything=True)
    same(lake, filled)


def half(paths: Sequence[Path]) -> None:
    for path in paths:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def test_files_that_were_cut_off_or_are_gone_are_repaired_as_well(
    spark: Any, filled: Lake, month: SqliteSource, tmp_path: Path
) -> None:
    lake = copied(filled, tmp_path / "lake", without=(SPANS, TRACES, HANDOFFS))
    lives = [Path(file.uri) for file in lake.files(MESSAGE_LIFE)]
    half(lives[:1])
    lives[1].unlink()
    half([Path(file.uri) for file in lake.files(RECORDS)])
    done = fill(spark, lake, month, scrub=True)
    assert len(done.repaired) >= 2
    same(lake, filled)


def test_every_file_that_is_written_has_checksums_that_are_checked(filled: Lake, tmp_path: Path) -> None:
    """Of forty places that are overwritten none makes a row read as something else. A few bytes of a file are
    nobody's, such as the bounds in a page's header: with those overwritten every row may come as it was."""
    lake = copied(filled, tmp_path / "lake")
    file = max(lake.files(LEDGER), key=lambda file: file.size)
    path, whole = Path(file.uri), Path(file.uri).read_bytes()
    intact = pa.Table.from_batches(read_batches(file.uri))
    rng = random.Random(2)
    found = unharmed = 0
    for _ in range(40):
        data, place = bytearray(whole), rng.randrange(4, len(whole) - 16)
        data[place : place + 16] = rng.randbytes(16)
        path.write_bytes(data)
        try:
            read = pa.Table.from_batches(read_batches(file.uri))
        except pa.ArrowInvalid as error:
            found += "is damaged" in str(error)
        else:
            unharmed += read.equals(intact)
    assert found + unharmed == 40
    assert found >= 35
