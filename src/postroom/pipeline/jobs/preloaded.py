"""Spark's Python daemon with everything already imported: workers are forked from it and begin at once."""

import pandas  # noqa: F401 - Spark imports it in every worker
import pyarrow.parquet  # noqa: F401 - as do ours
from pyspark.daemon import manager

from postroom.pipeline.bronze import ingest  # noqa: F401 - what tasks are made of
from postroom.pipeline.jobs import conversation_tasks, gold_tasks, memory, silver  # noqa: F401

if __name__ == "__main__":
    manager()
