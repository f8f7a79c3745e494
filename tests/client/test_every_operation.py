"""The client has a method for every operation of /v1, in both kinds: all are called on a real house."""

import asyncio
import inspect
import pickle
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.client import AsyncClient, Client, ServiceError
from postroom.client.errors import refused
from postroom.errors import Conflict, Invalid, NotFound, QueueNotFound, SlugTaken
from tests.api.house import TOKEN, opened

SPEC = {"sections": [{"type": "decision", "field": "decision", "options": ["yes", "no"]}]}
HOOK = "https://hooks.example.org/postroom"


class AwaitedClient:
    """The synchronous client with the methods of the other one, so that both play the same."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)
        if name == "follow_stream":

            async def follow(*args: Any, **options: Any) -> AsyncIterator[Any]:
                for event in await asyncio.to_thread(lambda: list(method(*args, **options))):
                    yield event

            return follow

        async def call(*args: Any, **options: Any) -> Any:
            return await asyncio.to_thread(method, *args, **options)

        return call


@asynccontextmanager
async def open_client(kind: str, url: str) -> AsyncIterator[Any]:
    if kind == "asynchronous":
        async with AsyncClient(url, TOKEN) as client:
            yield client
    else:
        with Client(url, TOKEN) as client:
            yield AwaitedClient(client)


async def play_places(c: Any) -> None:
    await c.create_tenant("acme", display_name="Acme")
    assert "acme" in [each["slug"] for each in await c.tenants()]
    await c.set_rates("acme", key=120)
    await c.create_scope("spare")
    assert (await c.update_scope("spare", description="not needed")).description == "not needed"
    for change in ("pause", "resume", "drain", "archive", "unarchive"):
        await getattr(c, f"{change}_scope")("spare")
    assert (await c.scope("spare")).state == "active"
    await c.create_queue("spare/old")
    for change in ("pause", "resume", "drain", "archive", "unarchive"):
        await getattr(c, f"{change}_queue")("spare/old")
    assert (await c.update_queue("spare/old", max_depth=7)).max_depth == 7
    await c.delete_queue("spare/old")
    await c.delete_scope("spare")
    await c.create_scope("shop")
    await c.create_queue("shop/orders")
    await c.create_queue("shop/news", consumer_mode="broadcast")
    assert [each.slug for each in await c.scopes(limit=1)] == ["default"]
    assert {each.slug for each in await c.queues("shop", limit=50)} >= {"orders", "news"}
    assert (await c.queue("shop/orders")).depth_pending == 0
    await c.create_schema("shop", "order", {"type": "object", "required": ["order"]})
    [schema] = await c.schemas("shop", name="order", limit=5)
    assert (await c.schema("shop", "order", schema["version"]))["name"] == "order"
    await c.put_schedule("shop", "nightly", "orders", body={"report": 1}, cron="0 3 * * *")
    [schedule] = await c.schedules("shop")
    assert (await c.schedule("shop", "nightly"))["name"] == schedule["name"]
    run = await c.run_schedule("shop", "nightly")
    await c.cancel(await c.get("shop", run["id"]), "a trial")
    await c.delete_schedule("shop", "nightly")


async def play_messages(c: Any) -> None:
    first = await c.publish("shop/orders", {"order": 1}, idempotency_key="a", correlation_id="order-1")
    await c.publish_many("shop/orders", [{"body": n} for n in range(3)])
    assert (await c.get("shop", first.id)).body == {"order": 1}
    assert len((await c.messages("shop", correlation_id="order-1")).items) == 1
    assert len((await c.queue_messages("shop/orders", state="pending", limit=2)).items) == 2
    taken = await c.claim("shop/orders", batch_size=4, wait_s=5)
    await c.extend(taken[0], 60)
    await c.complete(taken[0], {"paid": True})
    [again] = await c.complete_many([(taken[0], {"paid": True})])
    assert again.status == 200
    assert (await c.release(taken[1])).state == "pending"
    assert (await c.snooze(taken[2], 3600, "closed")).state == "pending"
    dead = await c.fail(taken[3], "refused", retry=False)
    assert dead.state == "dead_lettered"
    again = await c.replay(dead)
    [again] = [each for each in await c.claim("shop/orders", batch_size=4) if each.id == again.id]
    await c.discard(await c.fail(again, "refused", retry=False))
    assert (await c.replay_dead("shop", limit=10)) == {"replayed": []}
    assert "message.completed" in [step["event_type"] for step in await c.trace("shop", "order-1")]
    made = await c.subscribe("shop/news", "mailer")
    [found] = await c.subscriptions("shop")
    assert (await c.subscription("shop", made["id"]))["name"] == found["name"] == "mailer"
    await c.check_seen("shop", made["id"], key="order-1")
    await c.unsubscribe("shop", made["id"])


async def play_streams(c: Any) -> None:
    stream = (await c.open_stream("shop", queue_id="orders"))["id"]
    await c.append_chunks("shop", stream, [{"sequence": 0, "data": "Dear "}, {"sequence": 1, "data": "Ann"}])
    assert [each["data"] for each in await c.chunks("shop", stream, limit=9, wait_s=0)] == ["Dear ", "Ann"]
    assert stream in [each["id"] for each in await c.streams("shop")]
    assert (await c.stream("shop", stream))["state"] == "open"
    await c.close_stream("shop", stream, 2)
    events = [event async for event in c.follow_stream("shop", stream)]
    assert [(event.kind, event.data.get("data")) for event in events[:2]] == [
        ("chunk", "Dear "),
        ("chunk", "Ann"),
    ]
    assert events[-1].kind == "closed"
    other = (await c.open_stream("shop"))["id"]
    assert (await c.abort_stream("shop", other, "gave up"))["state"] == "aborted"
    with pytest.raises(NotFound):
        [event async for event in c.follow_stream("shop", "nowhere")]


async def play_rules_and_reviews(c: Any) -> None:
    action = {"type": "archive"}
    rule = await c.create_rule("shop", name="r", expression='labels.tier == "x"', action=action)
    assert [each.id for each in await c.rules("shop")] == [rule.id]
    assert not (await c.update_rule("shop", rule.id, enabled=False)).enabled
    assert (await c.rule("shop", rule.id)).name == "r"
    await c.reset_rule("shop", rule.id)
    assert (await c.test_rules("shop", message={"labels": {}}, queue_id="orders"))["matched"] == 0
    await c.delete_rule("shop", rule.id)
    await c.create_pattern("shop", "ask", SPEC)
    assert [each["name"] for each in await c.patterns("shop")] == ["ask"]
    assert (await c.pattern("shop", "ask@1.0"))["spec"]["sections"]
    await c.preview_pattern("shop", "ask@1.0", amount="12 EUR")
    asked = await c.publish("shop/orders", 1, hitl_spec={"pattern": "ask"})
    [review] = await c.reviews("shop", limit=5)
    assert (await c.review("shop", asked.id)).seen == review.seen
    assert (await c.answer(review, decision="yes")).result == {"decision": "yes"}
    await c.delete_pattern("shop", "ask@1.0")


async def play_access(c: Any) -> None:
    for scope in ("shop", None):
        key = await c.create_key("till", scope, permissions=["publish"])
        assert key.id in [each.id for each in await c.keys(scope)]
        assert (await c.rotate_key(key.id, scope, grace_s=1)).secret != key.secret
        await c.revoke_key(key.id, scope)
    grant = await c.create_grant("shop", "user", "ann", ["view"])
    assert [each["id"] for each in await c.grants("shop")] == [grant["id"]]
    await c.delete_grant("shop", grant["id"])
    line = await c.create_acl("shop/orders", "user", "ann", ["view"])
    assert [each["id"] for each in await c.acl("shop/orders")] == [line["id"]]
    await c.delete_acl("shop/orders", line["id"])
    trust = await c.create_trust("shop", "default", ["route"])
    assert [each["id"] for each in await c.trusts("shop")] == [trust["id"]]
    assert not (await c.change_trust("shop", trust["id"], enabled=False))["enabled"]
    await c.delete_trust("shop", trust["id"])
    await c.create_role("packers", ["view", "consume"])
    assert "packers" in [each["name"] for each in await c.roles()]
    await c.delete_role("packers")
    await c.set_permissions("ann", ["view"])
    assert (await c.audit("shop", limit=2)).items
    assert (await c.system_agents()).items
    job = await c.create_erasure_job("shop", {"field": "body.order", "value": 1}, mode="erase")
    assert [each["id"] for each in await c.erasure_jobs("shop")] == [job["id"]]
    await c.preview_erasure_job("shop", job["id"])
    await c.execute_erasure_job("shop", job["id"])
    assert (await c.erasure_job("shop", job["id"]))["id"] == job["id"]
    hook = await c.create_webhook(HOOK, events=["scaiqueue.message.completed"])
    assert [each["id"] for each in await c.webhooks()] == [hook["id"]]
    assert (await c.update_webhook(hook["id"], HOOK, max_retries=9))["max_retries"] == 9
    assert (await c.webhook(hook["id"]))["url"] == HOOK
    await c.test_webhook(hook["id"])
    assert isinstance((await c.deliveries(hook["id"], limit=5)).items, list)
    await c.delete_webhook(hook["id"])


@pytest.mark.parametrize("kind", ["asynchronous", "synchronous"])
async def test_every_operation_of_the_document_is_a_method_that_works(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: set[tuple[str, str]] = set()
    for of in (httpx2.AsyncClient, httpx2.Client):
        build = of.build_request

        def note(self: Any, method: str, url: Any, *, build: Any = build, **options: Any) -> httpx2.Request:
            request = build(self, method, url, **options)
            sent.add((method, request.url.path))
            return request

        monkeypatch.setattr(of, "build_request", note)
    async with opened(tmp_path, works=False) as house:
        document = (await house.http.get("/openapi.json")).json()
        async with open_client(kind, house.url) as client:
            sent.clear()
            for play in (play_places, play_messages, play_streams, play_rules_and_reviews, play_access):
                await play(client)
    assert find_uncalled(document, sent) == []


def find_uncalled(document: dict[str, Any], sent: set[tuple[str, str]]) -> list[str]:
    """Operations of /v1 that no request fits. A path without parameters is only fitted by itself."""
    fixed = {path for path in document["paths"] if "{" not in path}
    lacking: list[str] = []
    for path, item in document["paths"].items():
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        fits = {
            (method.lower(), each)
            for method, each in sent
            if pattern.fullmatch(each) and (each == path or each not in fixed)
        }
        if path.startswith("/v1/"):
            lacking += [f"{m.upper()} {path}" for m in item if m not in {method for method, _ in fits}]
    return lacking


def test_an_operation_without_a_method_would_be_named() -> None:
    document = {
        "paths": {"/v1/a/{id}": {"get": {}, "delete": {}}, "/v1/b": {"post": {}}, "/api/c": {"get": {}}}
    }
    assert find_uncalled(document, {("GET", "/v1/a/7")}) == ["DELETE /v1/a/{id}", "POST /v1/b"]


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, inspect.isroutine)
        return {
            name: list(inspect.signature(each).parameters) for name, each in found if not name.startswith("_")
        }

    assert methods(Client) == methods(AsyncClient)
    assert all(inspect.getdoc(each) is not None for _, each in inspect.getmembers(Client, inspect.isclass))


async def test_a_refusal_is_an_error_of_the_kind_that_a_room_raises(tmp_path: Path) -> None:
    async with opened(tmp_path, works=False) as house, AsyncClient(house.url, TOKEN) as client:
        with pytest.raises(QueueNotFound, match="nowhere") as missing:
            await client.publish("default/nowhere", 1)
        with pytest.raises(SlugTaken) as taken:
            await client.create_scope("default")
        with pytest.raises(Invalid) as wrong:
            await client.create_queue("default/x", max_retries=-1)
    assert isinstance(missing.value, ServiceError)
    assert (missing.value.code, missing.value.exit_code) == ("QUEUE_NOT_FOUND", QueueNotFound.exit_code)
    assert (missing.value.service_code, missing.value.status) == ("SCAIQUEUE_QUEUE_NOT_FOUND", 404)
    assert (taken.value.code, taken.value.http_status) == ("SLUG_CONFLICT", 409)
    assert isinstance(wrong.value, ServiceError)
    assert wrong.value.details
    copy = pickle.loads(pickle.dumps(missing.value))
    assert isinstance(copy, QueueNotFound)
    assert str(copy) == str(missing.value)


def test_a_code_that_is_not_known_is_of_the_kind_of_its_status() -> None:
    later = refused(409, {"error": {"code": "SCAIQUEUE_OF_A_NEWER_SERVICE", "message": "m"}})
    assert isinstance(later, Conflict)
    assert later.code == "OF_A_NEWER_SERVICE"
    state = refused(409, {"error": {"code": "SCAIQUEUE_INVALID_STATE", "message": "m"}})
    assert type(state).__mro__[2] is Conflict, "of messages or of queues: the code does not tell"
    limited = refused(429, {"error": {"code": "RATE_LIMITED", "message": "m"}})
    assert (limited.code, isinstance(limited, Conflict)) == ("RATE_LIMITED", False)
    proxy = refused(404, None)
    assert type(proxy) is ServiceError, "what stands before the service knows nothing of queues"
