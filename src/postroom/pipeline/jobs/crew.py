"""Which workers a step gets: Spark's where there is work for several, this process where one task is all."""

from typing import TYPE_CHECKING

from postroom.pipeline.bronze.ingest import EVENTS_PER_FILE
from postroom.pipeline.jobs.workers import LocalWorkers, SparkWorkers, Workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.pipeline.jobs.session import LazySession

FEW_ROWS = EVENTS_PER_FILE
"""A step over so many rows would be one task: nobody could take a part of it over."""


class Crew:
    """Spark is started when the first step needs it, if any does."""

    def __init__(self, spark: "SparkSession | LazySession", few: int = FEW_ROWS) -> None:
        self.spark = spark
        self._few = few

    def of(self, rows: int, tasks: int | None = None) -> Workers:
        """`tasks` where it is known how many there are, however many rows each has."""
        alone = rows <= self._few or (tasks == 1 and self._few > 0)
        return LocalWorkers() if alone else SparkWorkers(self._session())

    def _session(self) -> "SparkSession":
        from postroom.pipeline.jobs.session import LazySession

        return self.spark.get() if isinstance(self.spark, LazySession) else self.spark
