"""Questions to the lake, answered from DuckDB without a JVM; what the lake does not have yet comes from the
store.

The pipeline's packages are loaded only when something is asked.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from postroom.app.pipeline_runs import PipelineRuns
from postroom.clock import Clock, iso
from postroom.errors import NotFound
from postroom.pipeline.errors import LakeMissing
from postroom.pipeline.lake.opening import open_lake
from postroom.services.insights import NoLakeReader

if TYPE_CHECKING:
    from postroom.pipeline.lake.lake import Lake
    from postroom.pipeline.serving.engine import QueryEngine
    from postroom.pipeline.sources.sqlite import SqliteSource

Row = dict[str, Any]
TOPICS = (
    "overview", "agents", "agent_days", "queues", "hours", "days", "latency", "channels", "channel_days",
    "costs", "failures", "handoffs", "sla",
)  # fmt: skip
OF_ALL_TIME = ("runs", "quarantine", "expectations")


class InsightUnknown(NotFound):
    """There is no insight "{topic}"; there are {known}."""

    code = "INSIGHT_NOT_FOUND"


class StoreLakeReader:
    """`store` is the URL of the store beside the lake; without `runs`, none can be started."""

    def __init__(self, lake: str, store: str | None, clock: Clock, runs: PipelineRuns | None = None) -> None:
        self._location = lake
        self._store = store
        self._clock = clock
        self._runs = runs

    @property
    def _lake(self) -> "Lake":
        return open_lake(self._location)

    @property
    def _source(self) -> "SqliteSource | None":
        """None for a store that the pipeline cannot read; then the lake answers alone."""
        from postroom.pipeline.errors import SourceUnknown
        from postroom.pipeline.sources.server import ServerSource
        from postroom.pipeline.sources.sqlite import open_source

        try:
            found = open_source(self._store) if self._store else None
        except SourceUnknown:
            return None
        if found is None or isinstance(found, ServerSource):
            return found
        return found if Path(found.path).is_file() else None

    @contextmanager
    def _engine(self) -> "Iterator[QueryEngine]":
        lake = self._lake
        from postroom.pipeline.serving.engine import engine

        with engine(lake) as opened:
            yield opened

    def _with_what_there_is(self, question: "Callable[[QueryEngine | None], Any]") -> Any:
        """Without a lake, the store answers alone."""
        try:
            with self._engine() as engine:
                return question(engine)
        except LakeMissing:
            return question(None)

    @property
    def _pipeline(self) -> PipelineRuns:
        if self._runs is None:
            raise NoLakeReader
        return self._runs

    def state(self) -> Row:
        """How the lake stands, what works on it now, and what will."""
        from postroom.pipeline.serving.status import status

        plans = self._runs.state() if self._runs is not None else None
        return {**status(self._lake, self._source), "house": plans}

    def start_run(self, by: str, *, full_refresh: bool) -> int:
        return self._pipeline.start(by, *(["--full-refresh"] if full_refresh else []))

    def stop_run(self) -> bool:
        return self._pipeline.stop()

    def report(self, since: date | None, until: date | None) -> str:
        with self._engine() as engine:
            from postroom.pipeline.serving.insights import period
            from postroom.pipeline.serving.report import report

            return report(engine, period(engine, since, until), iso(self._clock.now()))

    def insight(self, topic: str, since: date | None, until: date | None) -> Any:
        with self._engine() as engine:
            from postroom.pipeline.serving import insights

            if topic in OF_ALL_TIME:
                return getattr(insights, topic)(engine)
            if topic not in TOPICS:
                raise InsightUnknown(topic=topic, known=", ".join((*TOPICS, *OF_ALL_TIME)))
            return getattr(insights, topic)(engine, insights.period(engine, since, until))

    def traces(self, since: date | None, until: date | None, limit: int) -> list[Row]:
        with self._engine() as engine:
            from postroom.pipeline.serving.insights import period
            from postroom.pipeline.serving.traces import traces

            return traces(engine, period(engine, since, until), limit)

    def trace(self, trace_id: str, tenant: str | None) -> Row:
        from postroom.pipeline.serving.traces import trace

        return self._with_what_there_is(lambda engine: trace(engine, self._source, trace_id, tenant))

    def search(
        self,
        words: tuple[str, ...],
        *,
        agent: str | None,
        channel: str | None,
        sender: str | None,
        since: date | None,
        limit: int,
    ) -> list[Row]:
        from postroom.pipeline.serving.history import Search, search

        wanted = Search(words=words, agent=agent, channel=channel, sender=sender, since=since, limit=limit)
        return self._with_what_there_is(lambda engine: search(engine, self._source, wanted))
