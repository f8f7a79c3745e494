"""`/api/insights`, `/api/traces`, `/api/history` and `/api/pipeline`: what the lake says, without a JVM.

Requests are answered in threads from DuckDB; only a run of the pipeline is a process of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse

from postroom.api.openapi import AnswerModel, answers
from postroom.clock import Clock, SystemClock, iso
from postroom.errors import NotFound
from postroom.pipeline.errors import LakeMissing
from postroom.pipeline.lake.opening import open_lake

if TYPE_CHECKING:
    from postroom.pipeline.lake.lake import Lake
    from postroom.pipeline.serving.engine import QueryEngine
    from postroom.pipeline.sources.sqlite import SqliteSource

Day = Annotated[date | None, Query(description="A day, like 2026-11-01.")]
Limit = Annotated[int, Query(ge=1, le=500)]


class InsightUnknown(NotFound):
    """There is no insight "{topic}"; there are {known}."""

    code = "INSIGHT_NOT_FOUND"


class PipelineRunner(Protocol):
    """Whoever starts the pipeline in a process of its own."""

    def start(self, by: str, *more: str) -> int: ...

    def stop(self) -> bool: ...

    def state(self) -> dict[str, Any]: ...


class NoRuns(NotFound):
    """This house starts no runs of the pipeline. Start one yourself: postroom pipeline run"""

    code = "NO_RUNS"


class Archive:
    """The lake and the store beside it, as the routes need them."""

    def __init__(
        self, lake: str, store: str | None, runs: PipelineRunner | None = None, clock: Clock | None = None
    ) -> None:
        self._location = lake
        self._store = store
        self._runs = runs
        self.clock = clock or SystemClock()

    @property
    def lake(self) -> "Lake":
        return open_lake(self._location)

    @property
    def source(self) -> "SqliteSource | None":
        """None for a store that the pipeline cannot read yet; then the lake answers alone."""
        from postroom.pipeline.errors import SourceUnknown
        from postroom.pipeline.sources.sqlite import open_source

        try:
            found = open_source(self._store) if self._store else None
        except SourceUnknown:
            return None
        return found if found is not None and Path(found.path).is_file() else None

    @contextmanager
    def engine(self) -> "Iterator[QueryEngine]":
        lake = self.lake
        from postroom.pipeline.serving.engine import engine

        with engine(lake) as opened:
            yield opened

    @property
    def runs(self) -> PipelineRunner:
        if self._runs is None:
            raise NoRuns
        return self._runs

    def state(self) -> dict[str, Any]:
        """How the lake stands, what works on it now, and what will."""
        from postroom.pipeline.serving.status import status

        plans = self._runs.state() if self._runs is not None else None
        return {**status(self.lake, self.source), "house": plans}


# What the door and the lake may say to any of these.
REFUSALS = {status: told for status, told in answers(AnswerModel, 404, 409).items() if status != 200}


def routes(archive: Archive) -> APIRouter:
    api = APIRouter(tags=["insights"], responses=REFUSALS)

    @api.get("/api/pipeline/status")
    def status() -> dict[str, Any]:
        """How far the lake has come, and what a run that goes on now has done and has left to do."""
        return archive.state()

    @api.post("/api/pipeline/run", status_code=202)
    def run(full_refresh: bool = False) -> dict[str, int]:
        """Start a run, in a process of its own. Another one that goes on is a conflict."""
        return {"pid": archive.runs.start("api", *(["--full-refresh"] if full_refresh else []))}

    @api.post("/api/pipeline/stop")
    def stop() -> dict[str, bool]:
        """Interrupt the run that this house started. What it committed stays."""
        return {"stopped": archive.runs.stop()}

    @api.get("/api/insights/report", response_class=HTMLResponse)
    def report(since: Day = None, until: Day = None) -> HTMLResponse:
        """A page of everything below, to be read in a browser or kept."""
        with archive.engine() as engine:
            from postroom.pipeline.serving.insights import period
            from postroom.pipeline.serving.report import report as page

            return HTMLResponse(page(engine, period(engine, since, until), iso(archive.clock.now())))

    @api.get("/api/insights/{topic}")
    def insight(topic: str, since: Day = None, until: Day = None) -> Any:
        """One table of the lake: overview, agents, agent_days, queues, hours, days, channels, channel_days,
        costs, failures, handoffs, sla, runs, quarantine or expectations.
        """
        with archive.engine() as engine:
            from postroom.pipeline.serving import insights

            ask = topics().get(topic)
            if ask is None:
                raise InsightUnknown(topic=topic, known=", ".join(topics()))
            return ask(engine, insights.period(engine, since, until))

    @api.get("/api/traces")
    def traces(since: Day = None, until: Day = None, limit: Limit = 50) -> list[dict[str, Any]]:
        """Conversations, the newest first, with how long they took and what they cost."""
        with archive.engine() as engine:
            from postroom.pipeline.serving.insights import period
            from postroom.pipeline.serving.traces import traces as newest

            return newest(engine, period(engine, since, until), limit)

    @api.get("/api/traces/{trace_id:path}")
    def trace(trace_id: str, tenant: str | None = None) -> dict[str, Any]:
        """Everything of one conversation, from the lake and from what it does not have yet."""
        from postroom.pipeline.serving.traces import trace as find

        try:
            with archive.engine() as engine:
                return find(engine, archive.source, trace_id, tenant)
        except LakeMissing:
            return find(None, archive.source, trace_id, tenant)

    @api.get("/api/history/search")
    def search(
        q: str,
        agent: str | None = None,
        channel: str | None = None,
        sender: str | None = None,
        since: Day = None,
        limit: Limit = 50,
    ) -> list[dict[str, Any]]:
        """What was said, by words; from the lake and from what it does not have yet."""
        from postroom.pipeline.serving.history import Search
        from postroom.pipeline.serving.history import search as find

        wanted = Search(
            words=tuple(q.split()), agent=agent, channel=channel, sender=sender, since=since, limit=limit
        )
        try:
            with archive.engine() as engine:
                return find(engine, archive.source, wanted)
        except LakeMissing:
            return find(None, archive.source, wanted)

    return api


def topics() -> dict[str, Callable[..., Any]]:
    from postroom.pipeline.serving import insights

    names = (
        "overview", "agents", "agent_days", "queues", "hours", "days", "channels", "channel_days", "costs",
        "failures", "handoffs", "sla",
    )  # fmt: skip
    return {
        **{name: getattr(insights, name) for name in names},
        "runs": lambda engine, _: insights.runs(engine),
        "quarantine": lambda engine, _: insights.quarantine(engine),
        "expectations": lambda engine, _: insights.expectations(engine),
    }
