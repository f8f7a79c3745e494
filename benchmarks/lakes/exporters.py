"""Simpler ways to get a ledger out of SQLite, for comparison."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from postroom.pipeline.lake.tables import LEDGER
from postroom.pipeline.sources.sqlite import SqliteSource


def arrow_export(source: SqliteSource, events: int, target: Path) -> None:
    """One process, rows as Arrow, straight into a Delta table."""
    batches = (batch for batch in source.ledger(0, events) if batch.num_rows)
    write_deltalake(str(target), pa.RecordBatchReader.from_batches(LEDGER.schema, batches))


def pandas_export(spark: Any, source: SqliteSource, events: int, target: Path) -> None:
    """The way of many notebooks: a cursor, a pandas frame, createDataFrame, Parquet."""
    import sqlite3

    import pandas as pd

    db = sqlite3.connect(f"file:{source.path}?mode=ro", uri=True)
    frame = pd.read_sql_query("SELECT * FROM ledger WHERE seq <= ?", db, params=[events])
    db.close()
    spark.createDataFrame(frame).write.parquet(str(target))
