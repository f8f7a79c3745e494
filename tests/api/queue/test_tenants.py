"""A key of one tenant can neither see, change nor infer anything of another: every route, the wrong key."""

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.routing import APIRoute

from tests.api.queue.service import Answer, Caller, Service

SPEC = {"sections": [{"type": "decision", "field": "decision", "options": ["yes", "no"]}]}
SECRET = "acme-hidden"

# What routes need to get past the check of their body; others are stopped before it.
BODIES: dict[tuple[str, str], Any] = {
    ("PUT", "/webhooks/{webhook_id}"): {"url": "https://example.org/hook"},
    ("PUT", "/users/{user_id}/module-permissions"): {"permissions": ["view"]},
    ("PUT", "/tenants/{slug}/rates"): {"key": 5},
    ("POST", "/scopes"): {"slug": "mine"},
    ("POST", "/api-keys"): {"name": "mine"},
    ("POST", "/webhooks"): {"url": "https://example.org/hook"},
    ("POST", "/iam/custom-roles"): {"name": "mine", "module_permissions": ["view"]},
    ("POST", "/tenants"): {"slug": "mine"},
}


@dataclass
class Acme:
    """A tenant with one of everything."""

    admin: Caller
    ids: dict[str, str]
    words: list[str] = field(default_factory=list)


async def acme(service: Service) -> Acme:
    admin = await service.key("acme")
    scope = await admin.post("/scopes", {"slug": SECRET})
    place = f"/scopes/{SECRET}"
    queue = await admin.post(place + "/queues", {"slug": "hidden-queue"})
    news = await admin.post(place + "/queues", {"slug": "hidden-news", "consumer_mode": "broadcast"})
    other = await admin.post("/scopes", {"slug": SECRET + "-2"})
    jobs = f"{place}/queues/{queue['id']}"
    message = await admin.post(jobs + "/messages", {"body": "hidden-body", "hitl_spec": SPEC})
    made = {
        "scope_id": scope["id"],
        "queue_id": queue["id"],
        "message_id": message["id"],
        "correlation_id": message["correlation_id"],
    }
    posts = {
        "subscription_id": ("/subscriptions", {"queue_id": news["id"], "name": "hidden-sub"}),
        "rule_id": (
            "/routing-rules",
            {"name": "hidden-rule", "action": {"type": "archive"}, "enabled": False},
        ),
        "pattern_id": ("/hitl-patterns", {"name": "hidden-pattern", "spec": SPEC}),
        "stream_id": ("/streams", {}),
        "grant_id": ("/grants", {"principal_type": "user", "principal_id": "ann", "permissions": ["view"]}),
        "trust_id": ("/trusts", {"target_scope_id": other["id"], "permissions": ["route"]}),
        "job_id": ("/gdpr-jobs", {"subject": {"field": "sender_id", "value": "x"}}),
        "key_id": ("/api-keys", {"name": "hidden-key", "permissions": ["view"]}),
    }
    for name, (path, body) in posts.items():
        made[name] = (await admin.post(place + path, body))["id"]
    entry = {"principal_type": "user", "principal_id": "ann", "permissions": ["view"]}
    made["entry_id"] = (await admin.post(jobs + "/acl", entry))["id"]
    hook = await admin.post("/webhooks", {"url": "https://hidden.example.org/x"})
    made["webhook_id"] = hook["id"]
    await admin.post("/iam/custom-roles", {"name": "hidden-role", "module_permissions": ["view"]})
    await admin.post(place + "/schemas", {"name": "hidden-schema", "schema": {"type": "object"}})
    made |= {"pattern": "hidden-pattern", "of": "1.0"}
    made |= {"name": "hidden-schema", "version": "0001", "user_id": "hidden-user", "slug": "acme"}
    return Acme(admin, made, ["hidden", "acme", *(word for word in made.values() if len(word) == 36)])


def routes(service: Service) -> Iterator[tuple[str, str]]:
    """Every route of the service, as its OpenAPI tells."""
    for path, verbs in service.app.openapi()["paths"].items():
        for verb in verbs:
            yield verb.upper(), path.removeprefix("/v1")


def at(path: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda part: values[part[1]], path)


def bogus(ids: dict[str, str]) -> dict[str, str]:
    """Ids of the same kind that nobody has."""
    made = {name: str(uuid.uuid4()) if len(value) == 36 else f"no-{name}" for name, value in ids.items()}
    # A pattern is told by its name and version, in two parts.
    return {**made, "version": "7777", "pattern_id": "nobodys@7.7", "pattern": "nobodys", "of": "7.7"}


def plain(answer: Answer, values: dict[str, str]) -> Any:
    """The answer without the ids that were asked for and without its own."""
    document = dict(answer.document or {})
    document.pop("meta", None)
    text = repr((answer.status, document))
    for name, value in sorted(values.items(), key=lambda each: -len(each[1])):
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", f"<{name}>", text)
    return re.sub(r"'(id|secret|hint|created_at|updated_at|event_id)': '[^']*'", r"'\1': …", text)


async def changes(service: Service, tenant: str) -> int:
    return len([event async for event in service.room.events() if event.tenant == tenant])


async def test_every_route_answers_a_foreign_key_as_if_nothing_were_there(service: Service) -> None:
    hidden = await acme(service)
    stranger = await service.key("globex")
    await service.owner("POST", "/tenants", {"slug": "globex", "display_name": "Globex"})
    await service.owner("PUT", "/tenants/globex/rates", {"key": 10_000, "tenant": 10_000})
    await stranger.post("/scopes", {"slug": "own"})
    before = await changes(service, "acme")
    walked = 0
    for method, path in routes(service):
        body = BODIES.get((method, path), {} if method in ("POST", "PUT", "PATCH") else None)
        nobody = bogus(hidden.ids)
        real = await stranger(method, at(path, hidden.ids), body)
        none = await stranger(method, at(path, nobody), body)
        walked += 1
        if "{" in path:
            assert plain(real, hidden.ids) == plain(none, nobody), f"{method} {path} tells of another tenant"
            if path.startswith("/scopes/{scope_id}"):
                assert (real.status, real.code) == (404, "SCAIQUEUE_SCOPE_NOT_FOUND"), f"{method} {path}"
        else:
            shown = repr(real.document)
            for word in hidden.words:
                assert word not in shown or word in repr(body), f"{method} {path} shows {word}"
    assert walked > 90
    assert await changes(service, "acme") == before, "and nothing was changed"


async def test_foreign_things_under_an_own_scope_are_not_there_either(service: Service) -> None:
    hidden = await acme(service)
    stranger = await service.key("globex")
    await service.owner("POST", "/tenants", {"slug": "globex"})
    await service.owner("PUT", "/tenants/globex/rates", {"key": 10_000, "tenant": 10_000})
    own = await stranger.post("/scopes", {"slug": "own"})
    queue = await stranger.post("/scopes/own/queues", {"slug": "jobs"})
    for method, path in routes(service):
        names = re.findall(r"\{(\w+)\}", path)
        if names[:1] != ["scope_id"] or len(names) < 2:
            continue
        body = {} if method in ("POST", "PUT", "PATCH") else None
        nobody = bogus(hidden.ids)
        mine = {"scope_id": own["id"]} | ({"queue_id": queue["id"]} if len(names) > 2 else {})
        real = await stranger(method, at(path, hidden.ids | mine), body)
        none = await stranger(method, at(path, nobody | mine), body)
        assert plain(real, hidden.ids) == plain(none, nobody), f"{method} {path}"
    cursor = await stranger("GET", "/scopes/own/messages", cursor=hidden.ids["message_id"])
    unknown = str(uuid.uuid4())
    other = await stranger("GET", "/scopes/own/messages", cursor=unknown)
    assert plain(cursor, hidden.ids) == plain(other, {"message_id": unknown})
    assert await stranger.get("/scopes/own/messages", correlation_id=hidden.ids["correlation_id"]) == []
    trace = await stranger.get(f"/scopes/own/audit/trace/{hidden.ids['correlation_id']}")
    assert {step["tenant_id"] for step in trace} == {"globex"}, "only that the caller itself has asked"


async def test_the_same_names_in_two_tenants_do_not_meet(service: Service) -> None:
    one, two = await service.key("acme"), await service.key("globex")
    for caller in (one, two):
        await caller.post("/scopes", {"slug": "work"})
        await caller.post("/scopes/work/queues", {"slug": "jobs"})
    sent = await one.post("/scopes/work/queues/jobs/messages", {"body": 1, "idempotency_key": "k"})
    again = await two("POST", "/scopes/work/queues/jobs/messages", {"body": 2, "idempotency_key": "k"})
    assert again.status == 201, "a key of one tenant is no key of another"
    [taken] = await two.post("/scopes/work/queues/jobs/claim", {"batch_size": 10})
    assert taken["id"] != sent["id"]
    ids = [(await caller.get("/scopes/work"))["id"] for caller in (one, two)]
    assert ids[0] != ids[1]


async def test_a_key_cannot_choose_another_tenant(service: Service) -> None:
    await acme(service)
    stranger = await service.key("globex")
    stranger.tenant = "acme"
    refused = await stranger("GET", "/scopes")
    stranger.tenant = "nobody"
    other = await stranger("GET", "/scopes")
    assert refused.status == other.status == 404
    assert refused.code == other.code == "SCAIQUEUE_TENANT_NOT_FOUND"


async def test_numbers_of_things_tell_nothing_of_others(service: Service) -> None:
    """Ids and cursors must not count: who makes two scopes must not learn how many were made between."""
    one, two = await service.key("acme"), await service.key("globex")
    made = [await one.post("/scopes", {"slug": "a"})]
    for n in range(3):
        await two.post("/scopes", {"slug": f"s{n}"})
    made.append(await one.post("/scopes", {"slug": "b"}))
    for scope in made:
        assert uuid.UUID(scope["id"]).version == 4, "nothing can be read from it"


@pytest.mark.parametrize("prefix", ["/v1", "/v1/modules/scaiqueue"])
async def test_without_a_key_nothing_is_told(service: Service, prefix: str) -> None:
    await acme(service)
    nobody = Caller(service.owner.client, "", prefix=prefix)
    for token, code in (("", "AUTH_TOKEN_MISSING"), ("prk_wrong", "AUTH_TOKEN_INVALID")):
        nobody.token = token
        for path in ("/scopes", f"/scopes/{SECRET}", "/system-agents"):
            answer = await nobody("GET", path)
            assert (answer.status, answer.code) == (401, code)


def test_every_route_says_what_it_needs(service: Service) -> None:
    ours = [route for route in service.app.routes if isinstance(route, APIRoute)]
    for route in ours:
        assert (route.openapi_extra or {})["x-permission"].startswith("scaiqueue:"), route.path


async def test_a_review_reaches_nothing_that_its_publisher_does_not(service: Service) -> None:
    """A spec names messages and queues: neither those of others, nor those of other scopes."""
    one, two = await service.key("acme"), await service.key("globex")
    for caller in (one, two):
        await caller.post("/scopes", {"slug": "work"})
        await caller.post("/scopes/work/queues", {"slug": "jobs"})
    jobs = "/scopes/work/queues/jobs/messages"
    held = await one.post(jobs, {"body": 1, "delay_seconds": 60})
    refused = await two("POST", jobs, {"hitl_spec": {**SPEC, "waiting": held["id"]}})
    assert (refused.status, refused.code) == (422, "SCAIQUEUE_HITL_INVALID")
    await two.post("/scopes", {"slug": "private"})
    await two.post("/scopes/private/queues", {"slug": "inbox"})
    publisher = await service.key("globex", permissions=["publish", "consume"])
    spec = {**SPEC, "on_decision": {"yes": {"queue": "/private/inbox"}}}
    asked = await publisher.post(jobs, {"hitl_spec": spec})
    path = f"/scopes/work/messages/{asked['id']}/review"
    other = await service.key("globex", permissions=["publish", "consume"])
    answered = await other("POST", path, {"answer": {"decision": "yes"}})
    assert answered.status == 422
    assert "no trust" in answered.document["error"]["message"]
    assert await two.get("/scopes/private/messages") == []
