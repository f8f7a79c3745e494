"""The other queues on PostgreSQL.

pgqueuer is driven in two ways: by its own worker, as programs use it, and at its queries, below that worker:
whole batches are taken and logged as done, and nothing else. procrastinate has no batches to take, so its own
worker runs with as many jobs at once as a batch has.
"""

import contextlib
import datetime
import uuid
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import procrastinate
from pgqueuer import PgQueuer
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.domain.models import Job
from pgqueuer.domain.types import QueueEntrypoint, QueueExecutionMode, QueueManagerId
from pgqueuer.ports.repository import EntrypointExecutionParameter

from benchmarks.databases.participant import BATCH
from benchmarks.queueing.letter import BODY, QUEUE, decode, encode

PGQUEUER = "pgqueuer's worker"
PGQUEUER_QUERIES = "pgqueuer's queries"
PROCRASTINATE = "procrastinate"
CONNECTIONS = 10
INSTALLED = "SELECT to_regclass('procrastinate_jobs') AS name"


class PgqueuerQueue:
    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def publish(self, count: int) -> None:
        for _ in range(count // BATCH):
            bodies: list[bytes | None] = [encode(BODY) for _ in range(BATCH)]
            await self._queries.enqueue([QUEUE] * BATCH, bodies, [0] * BATCH)

    async def publish_one(self) -> None:
        await self._queries.enqueue(QUEUE, encode(BODY))

    async def drain(self) -> int:
        done, manager = 0, QueueManagerId(uuid.uuid4())
        entrypoints = {QueueEntrypoint(QUEUE): EntrypointExecutionParameter(concurrency_limit=0)}
        lease = datetime.timedelta(seconds=30)
        while jobs := await self._queries.dequeue(BATCH, entrypoints, manager, None, lease):
            for job in jobs:
                decode(job.payload or b"")
            await self._queries.log_jobs([(job, "successful", None) for job in jobs])
            done += len(jobs)
        return done


@contextlib.asynccontextmanager
async def _open_queries(url: str) -> AsyncIterator[tuple[Queries, asyncpg.Pool]]:
    async with asyncpg.create_pool(url, min_size=1, max_size=CONNECTIONS) as pool:
        queries = Queries.from_asyncpg_pool(pool)
        if not await queries.schema_is_installed():
            await queries.install()
        yield queries, pool


@contextlib.asynccontextmanager
async def open_pgqueuer(url: str) -> AsyncIterator[PgqueuerQueue]:
    async with _open_queries(url) as (queries, _):
        yield PgqueuerQueue(queries)


class PgqueuerWorker(PgqueuerQueue):
    def __init__(self, queries: Queries, pool: asyncpg.Pool) -> None:
        super().__init__(queries)
        self._worker = PgQueuer.from_asyncpg_pool(pool)
        self._done = 0
        self._worker.entrypoint(QUEUE)(self._work)

    async def _work(self, job: Job) -> None:
        decode(job.payload or b"")
        self._done += 1

    async def drain(self) -> int:
        await self._worker.run(
            batch_size=BATCH, mode=QueueExecutionMode.drain, dequeue_timeout=datetime.timedelta(seconds=1)
        )
        return self._done


@contextlib.asynccontextmanager
async def open_pgqueuer_worker(url: str) -> AsyncIterator[PgqueuerQueue]:
    async with _open_queries(url) as (queries, pool):
        yield PgqueuerWorker(queries, pool)


class ProcrastinateQueue:
    def __init__(self, app: procrastinate.App) -> None:
        self._app = app
        self._done = 0
        self._task = app.task(queue=QUEUE, name="bench")(self._work)

    async def _work(self, body: dict[str, object]) -> None:
        self._done += 1

    async def publish(self, count: int) -> None:
        for _ in range(count // BATCH):
            jobs: list[dict[str, Any]] = [{"body": BODY}] * BATCH
            await self._task.batch_defer_async(*jobs)

    async def publish_one(self) -> None:
        await self._task.defer_async(body=BODY)

    async def drain(self) -> int:
        await self._app.run_worker_async(
            wait=False, concurrency=BATCH, listen_notify=False, install_signal_handlers=False
        )
        return self._done


@contextlib.asynccontextmanager
async def open_procrastinate(url: str) -> AsyncIterator[ProcrastinateQueue]:
    connector = procrastinate.PsycopgConnector(conninfo=url, max_size=CONNECTIONS)
    app = procrastinate.App(connector=connector)
    async with app.open_async():
        installed = await connector.execute_query_one_async(INSTALLED)
        if installed["name"] is None:
            await app.schema_manager.apply_schema_async()
        yield ProcrastinateQueue(app)
