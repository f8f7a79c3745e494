"""Files of a table as a Spark frame, wherever the lake lies, every page checked against its checksum."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from postroom.pipeline.lake.lake import Lake, LakeFile
from postroom.pipeline.lake.reading import read_portions
from postroom.pipeline.lake.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def table_frame(spark: "SparkSession", lake: Lake, table: Table, files: Sequence[LakeFile]) -> "DataFrame":
    """With the declared columns, whatever else the files hold."""
    schema = spark_schema(table)
    if not files:
        return spark.createDataFrame([], schema)
    if lake.folder is None:
        return _read_by_workers(spark, table, files)
    reader = spark.read.schema(schema).option("basePath", lake.uri(table))
    checked = reader.option("parquet.page.verify-checksum.enabled", "true")
    return checked.parquet(*(file.uri for file in files))


def _read_by_workers(spark: "SparkSession", table: Table, files: Sequence[LakeFile]) -> "DataFrame":
    """From an object store, with Arrow: Spark itself would need jars for that."""
    numbers = spark.range(0, len(files), 1, len(files))
    return numbers.mapInArrow(partial(_read, list(files), table), spark_schema(table))


def _read(files: list[LakeFile], table: Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for rows in read_portions(files[number], table):
                yield from rows.to_batches()


def spark_schema(table: Table) -> "StructType":
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema, prefer_timestamp_ntz=False)
