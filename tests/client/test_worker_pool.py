"""A pool of workers over HTTP: each message is worked on once, claims are kept, and failures are told."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.client import AsyncClient, Message, ServiceError, Unworkable, WorkerPool
from postroom.client.completion_batch import CompletionBatch
from postroom.errors import InvalidField
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


async def test_many_are_completed_in_one_call_and_the_refused_one_alone_is_refused(
    client: AsyncClient,
) -> None:
    await publish(client, 3)
    [first, second, third] = await client.claim("default/jobs", batch_size=3)
    await client.release(second)
    answers = await client.complete_many([(first, {"n": 1}), (second, None), (third, None), (third, None)])
    assert [answer.message_id for answer in answers] == [first.id, second.id, third.id, third.id]
    assert [answer.status for answer in answers] == [200, 409, 200, 200]
    assert answers[0].message is not None
    assert answers[0].message.result == {"n": 1}
    assert answers[1].error is not None
    assert answers[1].error["code"] == "SCAIQUEUE_CLAIM_LOST"
    states = [(await client.get("default", each.id)).state for each in (first, second, third)]
    assert states == ["completed", "pending", "completed"]


async def test_messages_of_two_scopes_are_not_one_call(client: AsyncClient) -> None:
    await client.create_scope("other")
    await client.create_queue("other/jobs")
    await client.publish("default/jobs", 1)
    await client.publish("other/jobs", 2)
    claimed = [*await client.claim("default/jobs"), *await client.claim("other/jobs")]
    with pytest.raises(InvalidField, match="2 scopes"):
        await client.complete_many([(message, None) for message in claimed])


async def test_work_that_ends_together_is_completed_together(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await publish(client, 20)
    sizes: list[int] = []
    together = client.complete_many
    all_at_work = asyncio.Event()
    at_work = 0

    async def note(done: Any) -> Any:
        sizes.append(len(done))
        return await together(done)

    async def work(message: Message) -> int:
        nonlocal at_work
        at_work += 1
        if at_work == 20:
            all_at_work.set()
        await all_at_work.wait()
        return message.body

    monkeypatch.setattr(client, "complete_many", note)
    pool = WorkerPool(client, "default/jobs", work, at_once=20, wait_s=0.2)
    await run_until(pool, lambda: pool.completed == 20)
    assert max(sizes) >= 10, sizes


async def test_a_service_that_knows_no_completion_of_many_gets_each_alone(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await publish(client, 10)

    async def unknown(done: Any) -> Any:
        return await client.request("POST", "/scopes/default/messages/unknown", {})

    monkeypatch.setattr(client, "complete_many", unknown)
    pool = WorkerPool(client, "default/jobs", lambda message: None, at_once=10, wait_s=0.2)
    await run_until(pool, lambda: pool.completed == 10)
    assert {(await client.get("default", each)).state for each in ids} == {"completed"}


async def test_a_result_that_cannot_be_sent_keeps_no_other_from_being_completed(client: AsyncClient) -> None:
    await publish(client, 3)
    claimed = await client.claim("default/jobs", batch_size=3)
    batch = CompletionBatch(client)
    results: list[Any] = [1, object(), 3]
    done = (batch.complete(message, result) for message, result in zip(claimed, results, strict=True))
    async with asyncio.timeout(60):
        first, refused, last = await asyncio.gather(*done, return_exceptions=True)
    assert (first, last) == (None, None)
    assert isinstance(refused, Exception)
    states = [(await client.get("default", each.id)).state for each in claimed]
    assert states == ["completed", "claimed", "completed"]
