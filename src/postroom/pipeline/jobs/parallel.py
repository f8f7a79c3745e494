"""Steps that do not need each other, at the same time: while one is planned, another is computed."""

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.pipeline.jobs.session import LazySession

AT_ONCE = 6
CANCEL_EVERY_S = 0.1
T = TypeVar("T")
Begin = Callable[..., "Future[Any]"]


@contextlib.contextmanager
def together(spark: "SparkSession | LazySession") -> Iterator[Begin]:
    """A function that begins a step. When the block is left all have ended; the first that failed is told."""
    begun: list[Future[Any]] = []
    with ThreadPoolExecutor(AT_ONCE, "pipeline") as pool:

        def begin(step: Callable[..., Any], *args: Any) -> "Future[Any]":
            future = pool.submit(step, *args)
            begun.append(future)
            return future

        try:
            yield begin
            for future in begun:
                if future in wait(begun, return_when=FIRST_EXCEPTION).done:
                    future.result()
        except BaseException:
            # Also when somebody presses Ctrl-C: nobody waits for work whose result is not wanted.
            pool.shutdown(wait=False, cancel_futures=True)
            # Again and again: a step may be about to begin its next job.
            while running := [future for future in begun if not future.done()]:
                _cancel(spark)
                wait(running, timeout=CANCEL_EVERY_S)
            raise


def interruptible(
    spark: "SparkSession | LazySession", work: Callable[[], T], interrupted: Callable[[], None] = lambda: None
) -> T:
    """Work in a thread of its own: an interrupt then meets nobody in the middle of a word with the JVM, and
    the jobs that run are cancelled in an orderly way. `interrupted` tells the work of it."""
    with ThreadPoolExecutor(1, "pipeline") as pool:
        future = pool.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            interrupted()
            while not future.done():
                _cancel(spark)
                wait([future], timeout=CANCEL_EVERY_S)
            raise


def _cancel(spark: "SparkSession | LazySession") -> None:
    from postroom.pipeline.jobs.session import LazySession

    with contextlib.suppress(Exception):
        if isinstance(spark, LazySession):
            if spark.started is None:
                return
            spark = spark.started
        context = getattr(spark, "_sc", None)
        if context is not None:
            context.cancelAllJobs()
        else:
            spark.interruptAll()
