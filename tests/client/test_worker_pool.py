"""A pool of workers over HTTP: each message is worked on once, claims are kept, and failures are told."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.client import AsyncClient, Message, ServiceError, Unworkable, WorkerPool
from tests.api.queue.service import OWNER, Service, serving


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(tmp_path) as service:
        yield service


@pytest.fixture
async def client(service: Service) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(service.url, OWNER) as client:
        await client.create_queue("default/jobs", max_retries=3)
        yield client


async def publish(client: AsyncClient, count: int) -> list[str]:
    made = await client.publish_many("default/jobs", [{"body": n} for n in range(count)])
    return [message.id for message in made]


async def run_until(pool: WorkerPool, holds: Any) -> None:
    running = asyncio.create_task(pool.run())
    async with asyncio.timeout(60):
        while not holds():
            assert not running.done(), running
            await asyncio.sleep(0.01)
    pool.stop()
    await running


@pytest.mark.parametrize("plain", [False, True], ids=["coroutine", "plain"])
async def test_every_message_is_worked_on_once_with_its_result(client: AsyncClient, plain: bool) -> None:
    ids = await publish(client, 30)
    seen: list[int] = []

    def work(message: Message) -> dict[str, int]:
        seen.append(message.body)
        return {"twice": 2 * message.body}

    async def work_async(message: Message) -> dict[str, int]:
        return work(message)

    pool = WorkerPool(client, "default/jobs", work if plain else work_async, at_once=5, wait_s=0.2)
    await run_until(pool, lambda: pool.completed == 30)
    assert sorted(seen) == list(range(30))
    done = await client.get("default", ids[7])
    assert (done.state, done.result) == ("completed", {"twice": 14})


async def test_work_that_raises_will_be_tried_again_and_unworkable_will_not(client: AsyncClient) -> None:
    [first, second] = await publish(client, 2)

    async def work(message: Message) -> None:
        raise Unworkable("never") if message.body == 1 else ValueError("not yet")

    pool = WorkerPool(client, "default/jobs", work, wait_s=0.2)
    await run_until(pool, lambda: pool.failed == 2)
    later = await client.get("default", first)
    assert (later.state in ("pending", "delayed"), later.failure_reason) == (True, "not yet")
    dead = await client.get("default", second)
    assert (dead.state, dead.failure_reason) == ("dead_lettered", "never")


async def test_a_long_piece_of_work_keeps_its_claim(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    [number] = await publish(client, 1)
    beats = 0
    enough = asyncio.Event()
    extend = client.extend

    async def count(message: Message, seconds: float | None = None) -> Message:
        nonlocal beats
        beats += 1
        if beats == 3:
            enough.set()
        return await extend(message, seconds)

    async def work(message: Message) -> None:
        await enough.wait()

    monkeypatch.setattr(client, "extend", count)
    pool = WorkerPool(client, "default/jobs", work, lease_s=3, wait_s=0.2)
    await run_until(pool, lambda: pool.completed == 1)
    assert beats >= 3, "the lease alone would have ended"
    assert (await client.get("default", number)).attempts == 1


async def test_work_whose_claim_is_lost_is_dropped(client: AsyncClient, service: Service) -> None:
    await publish(client, 1)
    started, dropped = asyncio.Event(), asyncio.Event()
    held: list[Message] = []

    async def work(message: Message) -> None:
        held.append(message)
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            dropped.set()
            raise

    pool = WorkerPool(client, "default/jobs", work, lease_s=3, wait_s=0.2)
    running = asyncio.create_task(pool.run())
    async with asyncio.timeout(60):
        await started.wait()
        # Somebody else says that it is done.
        pool.stop()
        await client.complete(held[0])
        await dropped.wait()
        await running
    assert (pool.completed, pool.failed) == (0, 0)


class Flaky(httpx2.AsyncHTTPTransport):
    """Loses the first few requests."""

    def __init__(self, lost: int) -> None:
        super().__init__()
        self.lost = lost

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.lost:
            self.lost -= 1
            raise httpx2.ConnectError("away")
        return await super().handle_async_request(request)


async def test_a_service_that_is_away_is_waited_for(client: AsyncClient, service: Service) -> None:
    await publish(client, 3)
    async with AsyncClient(service.url, OWNER, transport=Flaky(2)) as flaky:
        pool = WorkerPool(flaky, "default/jobs", lambda message: None, at_once=3, wait_s=0.2)
        await run_until(pool, lambda: pool.completed == 3)


async def test_a_service_that_refuses_ends_the_pool(client: AsyncClient) -> None:
    pool = WorkerPool(client, "default/nothing", lambda message: None)
    with pytest.raises(ServiceError, match="QUEUE_NOT_FOUND"):
        await pool.run()


async def test_plain_functions_run_side_by_side(client: AsyncClient) -> None:
    await publish(client, 3)
    together = threading.Barrier(3)
    pool = WorkerPool(
        client, "default/jobs", lambda message: together.wait(60) and None, at_once=3, wait_s=0.2
    )
    await run_until(pool, lambda: pool.completed == 3)
