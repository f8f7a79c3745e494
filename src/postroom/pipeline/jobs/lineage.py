"""Tells catalogs, as OpenLineage events, which tables each step read and wrote.

It must never fail a run, nor hold it up: whoever does not answer is not asked again.
"""

import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from postroom.clock import SECOND, Clock
from postroom.pipeline.errors import LineageMissing, LineageUnusable
from postroom.pipeline.jobs.expect import CheckResult
from postroom.pipeline.jobs.run_log import RunLog, RunStep
from postroom.pipeline.lake.descriptions import TABLES, describe_column, kind_of
from postroom.pipeline.lake.expectations import CHECKED
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import (
    BRONZE,
    CHUNKS,
    GOLD,
    HANDOFFS,
    LEDGER,
    MESSAGE_LIFE,
    MESSAGES,
    RECORDS,
    SPANS,
    TRACES,
    TURNS,
    Table,
)

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import InputDataset, OutputDataset

NAMESPACE = "postroom"
BY_ENVIRONMENT = "env"
"""In the place of an address: as the client's own settings say (OPENLINEAGE_URL, openlineage.yml)."""
PRODUCER = "https://pypi.org/project/postroom"
TIMEOUT_S = 5.0
_RUNS = uuid.UUID("6c1f6f2e-6f0b-5b0e-9d0a-6f1d2f3a4b5c")


class StepTables(msgspec.Struct, frozen=True):
    """What a step reads and writes."""

    reads: tuple[Table, ...]
    writes: tuple[Table, ...]


STEPS: dict[str, StepTables] = {
    "bronze": StepTables((), BRONZE),
    "message_life": StepTables((LEDGER,), (MESSAGE_LIFE,)),
    "turns_clean": StepTables((RECORDS,), (TURNS,)),
    "memory": StepTables((MESSAGES,), (CHUNKS,)),
    "conversations": StepTables((MESSAGE_LIFE, TURNS), (TRACES, SPANS, HANDOFFS)),
    "gold": StepTables((MESSAGE_LIFE, TURNS, TRACES, SPANS, HANDOFFS), GOLD),
    "expectations": StepTables(CHECKED, ()),
}
"""Steps without rows of their own (repair, compact, vacuum, retain) are not told."""


def check_lineage(where: str) -> None:
    """Before anything is begun: that it can be told at all."""
    if where:
        _client(where).close()


@contextmanager
def tell_lineage(
    where: str, job: str, lake: Lake, store: str, log: RunLog, clock: Clock, written: Mapping[str, list[str]]
) -> "Iterator[Lineage | None]":
    """A run as a whole, and every step within it; nothing without a place. `written` are the files of each
    table so far."""
    if not where:
        yield None
        return
    lineage = Lineage(_client(where), job, lake, store, log, clock, written)
    log.listeners.append(lineage)
    try:
        lineage.begin()
        try:
            yield lineage
        except BaseException as error:
            lineage.end(error)
            raise
        lineage.end(None)
    finally:
        lineage.close()


class Lineage:
    """After the first event that nobody took, no other is sent, and `problem` says why."""

    def __init__(
        self,
        client: "OpenLineageClient",
        job: str,
        lake: Lake,
        store: str,
        log: RunLog,
        clock: Clock,
        written: Mapping[str, list[str]],
    ) -> None:
        self.problem: str | None = None
        self._client = client
        self._job = job
        self._lake = lake
        self._store = store
        self._log = log
        self._clock = clock
        self._written = written
        self._counted: dict[str, set[str]] = {}
        self._results: Sequence[CheckResult] = ()
        self._lock = threading.Lock()

    def begin(self) -> None:
        self._emit("START", self._job, self._run_id())

    def end(self, error: BaseException | None) -> None:
        self._emit("FAIL" if error else "COMPLETE", self._job, self._run_id(), problem=error)

    def close(self) -> None:
        self._client.close(timeout=TIMEOUT_S)

    def checked(self, results: Sequence[CheckResult]) -> None:
        self._results = results

    def step_begun(self, step: RunStep) -> None:
        if step.step in STEPS:
            self._emit("START", self._name(step), self._run_id(step), step=step)

    def step_ended(self, step: RunStep) -> None:
        tables = STEPS.get(step.step)
        if tables is None:
            return
        failed = step.status == "failed"
        self._emit(
            "FAIL" if failed else "COMPLETE", self._name(step), self._run_id(step),
            step=step, tables=tables, problem=step.problem if failed else None,
        )  # fmt: skip

    def _name(self, step: RunStep) -> str:
        return f"{self._job}.{step.step}"

    def _run_id(self, step: RunStep | None = None) -> str:
        """The same for the same run of the table `runs/steps`, so that one can be found by the other."""
        name = self._log.run_id
        if step is not None:
            name += f"/{next(n for n, each in enumerate(self._log.steps) if each is step)}"
        return str(uuid.uuid5(_RUNS, name))

    def _emit(
        self,
        kind: str,
        job: str,
        run_id: str,
        *,
        step: RunStep | None = None,
        tables: StepTables | None = None,
        problem: object = None,
    ) -> None:
        with self._lock:
            if self.problem is not None:
                return
            try:
                self._client.emit(self._event(kind, job, run_id, step, tables, problem))
            except Exception as error:  # of whatever kind: the run goes on
                first = (str(error).splitlines() or [""])[0][:200]
                self.problem = (
                    f"Lineage could not be told ({type(error).__name__}: {first}); the run went on."
                )

    def _event(
        self,
        kind: str,
        job: str,
        run_id: str,
        step: RunStep | None,
        tables: StepTables | None,
        problem: object,
    ) -> Any:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
        from openlineage.client.facet_v2 import error_message_run, job_type_job, parent_run

        facets: dict[str, Any] = {}
        if step is not None:
            facets["parent"] = parent_run.ParentRunFacet(
                run=parent_run.Run(runId=self._run_id()), job=parent_run.Job(NAMESPACE, self._job)
            )
        if problem is not None:
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(str(problem)[:500], "python")
        job_type = job_type_job.JobTypeJobFacet("BATCH", "SPARK", "TASK" if step else "JOB")
        return RunEvent(
            eventType=RunState(kind),
            eventTime=_iso(self._clock.now()),
            run=Run(run_id, facets),
            job=Job(NAMESPACE, job, {"jobType": job_type}),
            inputs=self._inputs(step, tables) if step and tables else [],
            outputs=[self._output(table) for table in tables.writes] if tables else [],
            producer=PRODUCER,
        )

    def _inputs(self, step: RunStep, tables: StepTables) -> "list[InputDataset]":
        from openlineage.client.event_v2 import InputDataset
        from openlineage.client.facet_v2 import data_quality_assertions_dataset as quality

        if step.step == "bronze":
            names = ("ledger", "messages", "records")
            return [InputDataset("file", f"{self._store}#{name}") for name in names]
        found = []
        for table in tables.reads:
            namespace, name = locate(self._lake.uri(table))
            kept = [
                quality.Assertion(
                    each.expectation, each.broken == 0, severity="warn", actual=f"{each.broken} rows break it"
                )
                for each in self._results
                if each.table == table.name and step.step == "expectations"
            ]
            looked: dict[str, Any] = (
                {"dataQualityAssertions": quality.DataQualityAssertionsDatasetFacet(kept)} if kept else {}
            )
            found.append(InputDataset(namespace, name, inputFacets=looked, facets=describe(table)))
        return found

    def _output(self, table: Table) -> "OutputDataset":
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import dataset_version_dataset, output_statistics_output_dataset

        snapshot = self._lake.snapshot(table)
        counted = self._counted.setdefault(table.name, set())
        new = set(self._written.get(table.name, ())) - counted
        counted |= new
        files = [file for file in snapshot.files if file.path in new]
        version = dataset_version_dataset.DatasetVersionDatasetFacet(str(snapshot.version))
        wrote = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
            rowCount=sum(file.rows for file in files),
            size=sum(file.size for file in files),
            fileCount=len(files),
        )
        namespace, name = locate(snapshot.uri)
        facets = {**describe(table), "version": version} if snapshot.exists else describe(table)
        return OutputDataset(namespace, name, facets=facets, outputFacets={"outputStatistics": wrote})


def describe(table: Table) -> dict[str, Any]:
    """Columns, types and meanings, as `pipeline describe` tells them."""
    from openlineage.client.facet_v2 import documentation_dataset, schema_dataset

    fields = [
        schema_dataset.SchemaDatasetFacetFields(
            each.name, kind_of(each.type), describe_column(table, each.name)
        )
        for each in table.schema
    ]
    told = f"One row is {TABLES[table.name]}."
    return {
        "schema": schema_dataset.SchemaDatasetFacet(fields),
        "documentation": documentation_dataset.DocumentationDatasetFacet(told),
    }


def locate(uri: str) -> tuple[str, str]:
    """Namespace and name of a table, as OpenLineage names files: by bucket and key, or by path."""
    place = urlsplit(uri)
    if place.scheme in ("", "file"):
        return "file", place.path
    return f"{place.scheme}://{place.netloc}", place.path.lstrip("/")


def _client(where: str) -> "OpenLineageClient":
    try:
        from openlineage.client import OpenLineageClient
        from openlineage.client.transport import get_default_factory
    except ImportError as error:
        raise LineageMissing(package=error.name or "openlineage-python") from error
    try:
        if where == BY_ENVIRONMENT:
            return OpenLineageClient()
        # Its own settings could add what the folder of this process says of some unrelated repository.
        alone = {"facets": {"source_code_location": {"disabled": True}}}
        return OpenLineageClient(transport=get_default_factory().create(_transport(where)), config=alone)
    except Exception as error:
        raise LineageUnusable(where=where, reason=str(error)) from error


def _transport(where: str) -> dict[str, Any]:
    if where.startswith(("http://", "https://")):
        key = os.environ.get("OPENLINEAGE_API_KEY")
        auth = {"auth": {"type": "api_key", "apiKey": key}} if key else {}
        return {"type": "http", "url": where, "timeout": TIMEOUT_S, "retry": {"total": 1}, **auth}
    if "://" in where:
        raise ValueError("it is neither http:// nor https:// nor a file")
    return {"type": "file", "log_file_path": where, "append": True}


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment / SECOND, UTC).isoformat()
