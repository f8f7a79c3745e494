"""What a run tells while it works."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from postroom.pipeline.jobs.workers import Workers
    from postroom.pipeline.lake.lease import LakeLease

REPORT_EVERY_S = 0.5
_GROUP = "spark.jobGroup.id"


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


def reported(lease: "LakeLease", told: Told) -> Told:
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
def watched(workers: "Workers", told: Told, step: str, rows: int) -> Iterator[None]:
    """Tell how far Spark's jobs of this block are, by their tasks. What was told never goes back."""
    told(RunProgress(step=step, total=rows))
    done = threading.Event()
    begun = time.monotonic()
    context = getattr(workers, "context", None)
    thread = None
    if context is not None and told is not silent:
        group = f"{step}-{time.monotonic_ns()}"
        # Steps run side by side: each follows only what its own thread begins.
        context.setLocalProperty(_GROUP, group)
        follower = StepFollower(context.statusTracker(), group, told, step, rows, begun)
        thread = threading.Thread(target=follower.follow, args=(done,), daemon=True)
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread is not None and context is not None:
            thread.join(2)
            context.setLocalProperty(_GROUP, None)
    seconds = max(time.monotonic() - begun, 1e-6)
    told(RunProgress(step=step, done=rows, total=rows, rate=rows / seconds, finished=True))


class StepFollower:
    """Looks at the jobs of one step from time to time. More of them may begin while some have ended."""

    def __init__(self, tracker: Any, group: str, told: Told, step: str, rows: int, begun: float) -> None:
        self._tracker = tracker
        self._group = group
        self._told = told
        self._step = step
        self._rows = rows
        self._begun = begun
        self._most = 0

    def follow(self, done: threading.Event) -> None:
        while not done.wait(REPORT_EVERY_S):
            try:
                self.look()
            except Exception:
                return  # the session is going away; the step itself will say why

    def look(self) -> None:
        finished = total = 0
        for job in self._tracker.getJobIdsForGroup(self._group):
            info = self._tracker.getJobInfo(job)
            for stage in info.stageIds if info else ():
                state = self._tracker.getStageInfo(stage)
                if state is not None:
                    finished += state.numCompletedTasks
                    total += state.numTasks
        if total:
            self._most = max(self._most, self._rows * finished // total)
            rate = self._most / max(time.monotonic() - self._begun, 1e-6)
            self._told(RunProgress(step=self._step, done=self._most, total=self._rows, rate=rate))
