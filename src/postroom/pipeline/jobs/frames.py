"""Files of a table as a Spark frame, wherever the lake lies, every page checked against its checksum."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from postroom.pipeline.lake.lake import Lake, LakeFile
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
    from postroom.pipeline.jobs.tasks import spread
    from postroom.pipeline.lake.remote import read_files

    named = [(file.uri, file.cut) for file in files]
    work = partial(read_files, named, table.schema, table.cut)
    return spread(spark, len(named)).mapInArrow(work, spark_schema(table))


def spark_schema(table: Table) -> "StructType":
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema, prefer_timestamp_ntz=False)
