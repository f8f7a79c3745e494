"""The typed client against the real service, in both kinds."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.client import AsyncClient, Client, ServiceError
from postroom.errors import InvalidField
from tests.api.queue.service import OWNER, Service, serving

SPEC = {"sections": [{"type": "decision", "field": "decision", "options": ["yes", "no"]}]}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(tmp_path) as service:
        yield service


async def test_the_asynchronous_client_does_a_whole_round(service: Service) -> None:
    async with AsyncClient(service.url, OWNER) as queue:
        await queue.create_scope("shop", display_name="Shop")
        await queue.create_queue("shop/orders", ordering="priority")
        await queue.create_queue("shop/premium")
        rule = await queue.create_rule(
            "shop",
            name="premium",
            source_queue_id="orders",
            expression='labels.tier == "premium"',
            action={"type": "route", "target_queue_id": "premium"},
        )
        assert rule.enabled
        tried = await queue.test_rules("shop", message={"labels": {"tier": "premium"}}, queue_id="orders")
        assert tried["matched"] == 1
        first = await queue.publish("shop/orders", {"n": 1}, idempotency_key="a", labels={"tier": "premium"})
        again = await queue.publish("shop/orders", {"n": 1}, idempotency_key="a", labels={"tier": "premium"})
        assert (first.id, first.queue) == (again.id, "premium")
        many = await queue.publish_many("shop/orders", [{"body": n} for n in range(3)])
        assert [message.body for message in many] == [0, 1, 2]
        [message] = await queue.claim("shop/premium", wait_s=5)
        message = await queue.extend(message, 60) and message
        done = await queue.complete(message, {"paid": True})
        assert (done.state, done.result) == ("completed", {"paid": True})
        [one] = await queue.claim("shop/orders")
        assert (await queue.release(one)).state == "pending"
        [one] = await queue.claim("shop/orders")
        assert (await queue.fail(one, "later", delay_s=0)).failure_reason == "later"
        assert (await queue.queue("shop/orders")).depth_pending == 3
        assert (await queue.get("shop", first.id)).state == "completed"
        page = await queue.messages("shop", limit=2)
        rest = await queue.messages("shop", limit=10, cursor=page.next_cursor)
        assert len(page.items) + len(rest.items) == 4
        assert {"message.published", "message.completed"} <= {
            step["event_type"] for step in await queue.trace("shop", first.id)
        }
        key = await queue.create_key("reader", "shop", permissions=["view"])
        assert key.secret
        assert [scope.slug for scope in (await queue.scopes()).items] == ["default", "shop"]
        assert "orders" in [found.slug for found in (await queue.queues("shop")).items]
        agents = await queue.request("GET", "/system-agents")
        assert agents["data"]


async def test_reviews_are_answered_with_the_mark_of_what_was_seen(service: Service) -> None:
    async with AsyncClient(service.url, OWNER) as queue:
        await queue.create_scope("shop")
        await queue.create_queue("shop/review")
        await queue.create_pattern("shop", "ask", SPEC)
        await queue.publish("shop/review", 1, hitl_spec={"pattern": "ask"})
        [review] = await queue.reviews("shop")
        assert review.seen
        assert (await queue.answer(review, decision="yes")).result == {"decision": "yes"}
        with pytest.raises(ServiceError) as caught:
            await queue.answer(review, decision="no")
        assert (caught.value.status, caught.value.service_code) == (409, "SCAIQUEUE_REVIEW_ANSWERED")


async def test_the_synchronous_client_speaks_the_same(service: Service) -> None:
    def work() -> str:
        with Client(service.url, OWNER) as queue:
            queue.create_scope("shop")
            queue.create_queue("shop/orders")
            queue.publish("shop/orders", {"n": 1})
            [message] = queue.claim("shop/orders")
            with pytest.raises(ServiceError) as caught:
                queue.create_scope("shop")
            assert caught.value.service_code == "SLUG_CONFLICT"
            return queue.complete(message).state

    assert await asyncio.to_thread(work) == "completed"


async def test_a_wrong_key_is_an_error_that_names_its_code(service: Service) -> None:
    async with AsyncClient(service.url, "prk_nonsense") as queue:
        with pytest.raises(ServiceError, match="AUTH_TOKEN_INVALID"):
            await queue.scopes()


async def test_too_many_requests_are_waited_for_and_lost_answers_repeated() -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.method)
        if len(seen) == 1:
            error = {"code": "RATE_LIMITED", "message": "slow down", "retry_after": 0.01}
            return httpx2.Response(429, json={"status": "error", "error": error})
        if len(seen) == 2:
            raise httpx2.ReadError("gone", request=request)
        return httpx2.Response(200, json={"status": "ok", "data": [], "has_more": False, "next_cursor": None})

    async with AsyncClient("http://x", "k", transport=httpx2.MockTransport(answer)) as queue:
        assert (await queue.scopes()).items == []
    assert len(seen) == 3


async def test_what_could_happen_twice_is_not_repeated() -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.path)
        raise httpx2.ReadError("gone", request=request)

    async with AsyncClient("http://x", "k", transport=httpx2.MockTransport(answer)) as queue:
        with pytest.raises(httpx2.ReadError):
            await queue.publish("a/b", 1)
        assert len(seen) == 1
        with pytest.raises(httpx2.ReadError):
            await queue.publish("a/b", 1, idempotency_key="k")
        assert len(seen) > 2, "with a key it does no harm"


@pytest.mark.parametrize("status", [200, 502])
async def test_what_is_not_from_the_service_is_an_error_with_its_status(status: int) -> None:
    seen: list[str] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.method)
        return httpx2.Response(status, text="<html>a proxy</html>")

    async with AsyncClient("http://x", "k", transport=httpx2.MockTransport(answer)) as queue:
        with pytest.raises(ServiceError, match="not JSON") as caught:
            await queue.scopes()
    assert caught.value.status == status
    assert (len(seen) > 1) is (status == 502), "a proxy whose house is gone is asked again"


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (502, {"error": None, "meta": None}),
        (429, {"error": {"code": "RATE_LIMITED", "retry_after": "soon"}, "meta": []}),
        (403, {"error": "blocked", "message": "by a proxy"}),
        (403, ["blocked"]),
        (200, {"login": "https://portal.example.org"}),
        (200, []),
        (200, None),
    ],
)
async def test_json_of_somebody_else_is_an_error_with_its_status_too(status: int, document: Any) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, json=document)

    transport = httpx2.MockTransport(answer)
    async with AsyncClient("http://x", "k", transport=transport, patience_s=0) as queue:
        with pytest.raises(ServiceError) as caught:
            await queue.scopes()
    assert caught.value.status == status


@pytest.mark.parametrize("odd", ["", ".", ".."])
async def test_a_name_that_would_lead_to_another_route_is_refused(odd: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise AssertionError(f"{request.url} was asked")

    async with AsyncClient("http://x", "k", transport=httpx2.MockTransport(answer)) as queue:
        for call in (queue.get("shop", odd), queue.queue(f"shop/{odd}"), queue.queues(odd)):
            with pytest.raises(InvalidField):
                await call
