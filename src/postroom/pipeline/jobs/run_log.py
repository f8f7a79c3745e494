"""What each step of each run did, kept as a table of the lake."""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import pyarrow as pa

from postroom.clock import SECOND, Clock
from postroom.pipeline.lake.files import FileWriter
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import RUNS

if TYPE_CHECKING:
    from postroom.pipeline.jobs.expect import CheckResult


class RunStep(msgspec.Struct, kw_only=True):
    step: str
    started_at: int
    seconds: float = 0.0
    rows_in: int = 0
    rows_out: int = 0
    from_position: int = 0
    to_position: int = 0
    quarantined: int = 0
    status: str = "ok"
    problem: str | None = None


class StepListener(Protocol):
    """Hears of every step when it begins and when it has ended, and what was found of the expectations."""

    def step_begun(self, step: RunStep) -> None: ...
    def step_ended(self, step: RunStep) -> None: ...
    def checked(self, results: "Sequence[CheckResult]") -> None: ...


class RunLog:
    def __init__(self, lake: Lake, clock: Clock) -> None:
        self._lake = lake
        self._clock = clock
        self.run_id = uuid.uuid4().hex[:12]
        self.steps: list[RunStep] = []
        self.listeners: list[StepListener] = []

    @contextmanager
    def step(self, name: str, after: int = 0, up_to: int = 0) -> Iterator[RunStep]:
        step = RunStep(step=name, started_at=self._clock.now(), from_position=after, to_position=up_to)
        begun = time.monotonic()
        self.steps.append(step)
        for listener in self.listeners:
            listener.step_begun(step)
        try:
            yield step
        except BaseException as error:
            step.status, step.problem = "failed", f"{type(error).__name__}: {error}"[:500]
            raise
        finally:
            step.seconds = time.monotonic() - begun
            for listener in self.listeners:
                listener.step_ended(step)

    def tell_checked(self, results: "Sequence[CheckResult]") -> None:
        for listener in self.listeners:
            listener.checked(results)

    def save(self) -> None:
        if not self.steps:
            return
        rows = [{**msgspec.structs.asdict(step), "run_id": self.run_id} for step in self.steps]
        for row in rows:
            row["started_at"] = datetime.fromtimestamp(row["started_at"] / SECOND, UTC)
        append_rows(self._lake, RUNS, rows)


def append_rows(
    lake: Lake, table: Any, rows: list[dict[str, Any]], positions: Positions | None = None
) -> None:
    """A few rows from the driver itself."""
    writer = FileWriter(lake.uri(table), table.schema, None, table.tracked)
    writer.write(pa.Table.from_pylist(rows, table.schema))
    lake.commit(table, [writer.close()], positions)
