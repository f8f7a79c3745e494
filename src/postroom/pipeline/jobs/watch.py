"""Staying with the store: a run whenever there is something new.

A look costs a look at the store and nothing else, so it may be taken every second. A run that another process
is in the way of is tried again at the next look; any other failure ends the watch.
"""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from postroom.clock import Clock
from postroom.errors import Conflict, PostroomError
from postroom.pipeline.jobs.progress import Told, silent
from postroom.pipeline.jobs.run import NORMAL, Options, Summary, nothing_to_do, run
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.pipeline.jobs.session import LazySession

EVERY_S = 1.0


def watch(
    spark: "SparkSession | LazySession",
    lake: Lake,
    source: SqliteSource,
    clock: Clock,
    stop: threading.Event,
    *,
    every_s: float = EVERY_S,
    options: Options = NORMAL,
    told: Told = silent,
    done: Callable[[Summary], None] = lambda _: None,
    waits: Callable[[PostroomError], None] = lambda _: None,
) -> None:
    """`waits` is told who is in the way."""
    seen: tuple[int, int] | None = None
    while not stop.is_set():
        snapshot = source.snapshot()
        if (snapshot.head, snapshot.records) != seen:
            try:
                found = nothing_to_do(lake, source, options)
                if found is None:
                    found = run(spark, lake, source, clock, options, told)
                    done(found)
                seen = (found.position, found.records)
            except Conflict as error:
                waits(error)
        stop.wait(every_s)
