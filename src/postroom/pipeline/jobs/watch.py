"""Staying with the store: a run whenever there is something new, in one warm session."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from postroom.clock import Clock
from postroom.pipeline.jobs.progress import Told, silent
from postroom.pipeline.jobs.run import Options, Summary, run
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import LEDGER, RECORDS
from postroom.pipeline.sources.sqlite import SqliteSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def watch(
    spark: "SparkSession",
    lake: Lake,
    source: SqliteSource,
    clock: Clock,
    stop: threading.Event,
    *,
    every_s: float = 10.0,
    told: Told = silent,
    done: Callable[[Summary], None] = lambda _: None,
) -> None:
    while not stop.is_set():
        snapshot = source.snapshot()
        behind = snapshot.head > lake.positions(LEDGER).ledger
        if behind or snapshot.records > lake.positions(RECORDS).records:
            done(run(spark, lake, source, clock, Options(), told))
        stop.wait(every_s)
