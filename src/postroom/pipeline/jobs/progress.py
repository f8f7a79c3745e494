"""What a run tells while it works."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.pipeline.lake.lease import Lease

REPORT_EVERY_S = 0.5


class RunProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A step, how much of it is done, and how fast it goes. `total` 0 when that is not known."""

    step: str
    done: int = 0
    total: int = 0
    rate: float = 0.0
    finished: bool = False

    @property
    def left(self) -> int:
        return max(0, self.total - self.done)


Told = Callable[[RunProgress], None]


def silent(_: RunProgress) -> None:
    pass


def reported(lease: "Lease", told: Told) -> Told:
    """Also show other processes the newest word of each step, now and then."""
    last: list[float | str] = [0.0, ""]

    def tell(progress: RunProgress) -> None:
        told(progress)
        now = time.monotonic()
        if now - float(last[0]) >= REPORT_EVERY_S or progress.step != last[1] or progress.finished:
            last[:] = now, progress.step
            lease.report(msgspec.structs.asdict(progress))

    return tell


@contextmanager
def watched(spark: "SparkSession", told: Told, step: str, rows: int) -> Iterator[None]:
    """Tell how far the Spark jobs of a step are, by their tasks, while the block runs."""
    told(RunProgress(step=step, total=rows))
    done = threading.Event()
    begun = time.monotonic()
    thread = threading.Thread(target=_follow, args=(spark, told, step, rows, done, begun), daemon=True)
    tracker = getattr(spark, "_sc", None)
    if tracker is not None and told is not silent:
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join(2)
    seconds = max(time.monotonic() - begun, 1e-6)
    told(RunProgress(step=step, done=rows, total=rows, rate=rows / seconds, finished=True))


def _follow(
    spark: "SparkSession", told: Told, step: str, rows: int, done: threading.Event, begun: float
) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not done.wait(0.5):
        try:
            finished = total = 0
            for job in tracker.getActiveJobsIds():
                info = tracker.getJobInfo(job)
                for stage in info.stageIds if info else ():
                    state = tracker.getStageInfo(stage)
                    if state is not None:
                        finished += state.numCompletedTasks
                        total += state.numTasks
        except Exception:
            return  # the session is going away; the step itself will say why
        if total:
            share = finished / total
            so_far = int(rows * share)
            told(RunProgress(step=step, done=so_far, total=rows, rate=so_far / (time.monotonic() - begun)))
