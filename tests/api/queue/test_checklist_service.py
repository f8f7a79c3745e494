"""Rows of the acceptance list about rules, reviews, streams, access, audit, erasure, events and limits."""

import asyncio
import contextlib
import hashlib
import hmac
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import ManualClock
from postroom.kernel.housekeeping import housekeepers
from postroom.services.rates import Rates
from postroom.webhooks import WebhookService
from tests.api.queue.receiver import everywhere, receiving
from tests.api.queue.service import Caller, Service, serving
from tests.api.queue.test_checklist import JOBS, SCOPE, at, claim, message_of, publish, settle

SPEC = {
    "sections": [
        {"type": "context", "title": "Post", "content": "{{text}}"},
        {"type": "decision", "field": "decision", "options": ["approve", "reject"]},
        {"type": "input", "field": "note", "kind": "text", "required": True},
    ]
}


@pytest.fixture
async def shop(jobs: Caller) -> Caller:
    for slug in ("priority", "bulk", "review", "done"):
        await jobs.post(SCOPE + "/queues", {"slug": slug})
    return jobs


async def add_rule(caller: Caller, **rule: Any) -> Any:
    return await caller.post(SCOPE + "/routing-rules", {"name": "a rule", **rule})


def route(target: str) -> dict[str, Any]:
    return {"type": "route", "target_queue_id": target}


# rules


async def test_row_29_routing_triggered_on_publish_first_match_wins(shop: Caller) -> None:
    await add_rule(shop, name="second", priority=20, action=route("bulk"))
    first = [{"field": "labels.tier", "op": "eq", "value": "premium"}]
    made = await add_rule(shop, name="first", priority=10, conditions=first, action=route("priority"))
    sent = await publish(shop, 1, labels={"tier": "premium"})
    assert (sent["queue"], sent["hops"], sent["state"]) == ("priority", 1, "pending")
    assert await claim(shop) == [], "it was never to be had in its first queue"
    assert (await publish(shop, 2))["queue"] == "bulk"
    assert [each["name"] for each in await shop.get(SCOPE + "/routing-rules")] == ["first", "second"]
    await shop("PATCH", f"{SCOPE}/routing-rules/{made['id']}", {"enabled": False})
    assert (await publish(shop, 3, labels={"tier": "premium"}))["queue"] == "bulk"
    assert (await shop("DELETE", f"{SCOPE}/routing-rules/{made['id']}")).status == 204


@pytest.mark.parametrize(
    ("field", "op", "value", "holds"),
    [
        ("labels.tier", "eq", "premium", True),
        ("labels.tier", "ne", "premium", False),
        ("labels.missing", "ne", "x", True),
        ("labels.missing", "eq", "x", False),
        ("labels.missing", "exists", False, True),
        ("labels.tier", "in", ["a", "premium"], True),
        ("labels.tier", "not_in", ["a"], True),
        ("priority_score", "gte", 700, True),
        ("priority_score", "lt", 700, False),
        ("priority_tier", "eq", "high", True),
        ("body.total", "gt", 99.5, True),
        ("body.total", "gt", "99", False),
        ("body.name", "contains", "wid", True),
        ("message_type", "starts_with", "order.", True),
        ("message_type", "matches", "^order[.](new|old)$", True),
    ],
)
async def test_row_30_conditions_on_labels_priority_and_body(
    shop: Caller, field: str, op: str, value: Any, holds: bool
) -> None:
    rule = {"name": "r", "action": {"type": "archive"}}
    rule["conditions"] = [{"field": field, "op": op, "value": value}]
    message = {
        "body": {"total": 100, "name": "widget"},
        "labels": {"tier": "premium"},
        "priority_tier": "high",
        "priority_score": 700,
        "message_type": "order.new",
    }
    tried = await shop.post(SCOPE + "/routing-rules/test", {"rule": rule, "message": message})
    assert [result["matched"] for result in tried["results"]] == [holds]


async def test_row_30_conditions_in_cel(shop: Caller) -> None:
    text = 'labels.tier == "premium" && body.items.exists(i, i.sku.startsWith("A")) && priority_score >= 500'
    await add_rule(shop, expression=text, action=route("priority"))
    body = {"items": [{"sku": "B1"}, {"sku": "A1"}]}
    assert (await publish(shop, body, labels={"tier": "premium"}))["queue"] == "priority"
    assert (await publish(shop, {"items": []}, labels={"tier": "premium"}))["queue"] == "jobs"
    assert (await publish(shop, "no object at all"))["queue"] == "jobs", "what is missing does not match"
    for bad in ("labels.tier ==", "nobody == 1", "body.a.all(x, body.b.all(y, x == y))", "x" * 3000, "1 +"):
        refused = await shop(
            "POST", SCOPE + "/routing-rules", {"name": "b", "expression": bad, "action": route("bulk")}
        )
        assert (refused.status, refused.code) == (422, "VALIDATION_ERROR"), bad


async def test_row_31_actions_route_transform_escalate_archive(shop: Caller) -> None:
    actions = {
        "route": route("bulk"),
        "transform": {"type": "transform", "set_labels": {"by": "{{source_type}}"}, "message_type": "seen"},
        "escalate": {"type": "escalate", "priority_tier": "critical", "target_queue_id": "priority"},
        "archive": {"type": "archive"},
        "fan_out": {"type": "fan_out", "target_queue_ids": ["bulk", "done"]},
    }
    for name, action in actions.items():
        await add_rule(shop, expression=f'labels.do == "{name}"', action=action)
    sent = {name: await publish(shop, name, labels={"do": name}) for name in actions}
    assert sent["route"]["queue"] == "bulk"
    assert (sent["transform"]["labels"], sent["transform"]["message_type"]) == (
        {"do": "transform", "by": "user"},
        "seen",
    )
    assert (sent["escalate"]["priority_tier"], sent["escalate"]["queue"]) == ("critical", "priority")
    assert sent["archive"]["state"] == "cancelled"
    assert sent["fan_out"]["state"] == "completed"


async def test_row_32_children_of_rules_carry_parent_causation_and_correlation(shop: Caller) -> None:
    await add_rule(
        shop, action={"type": "fan_out", "target_queue_ids": ["bulk", "done"]}, source_queue_id="jobs"
    )
    sent = await publish(shop, 1, correlation_id="talk")
    chain = await shop.get(SCOPE + "/messages", correlation_id="talk")
    children = [message for message in chain if message["id"] != sent["id"]]
    assert len(children) == 2
    for child in children:
        assert (child["parent_id"], child["causation_id"], child["hops"]) == (sent["id"], sent["id"], 1)


async def test_row_33_a_rule_loop_is_stopped_by_the_breaker_and_explained(shop: Caller) -> None:
    await add_rule(shop, name="there", source_queue_id="jobs", action=route("bulk"))
    back = await add_rule(shop, name="back", source_queue_id="bulk", action=route("jobs"))
    sent = await publish(shop, "ping", correlation_id="talk")
    assert sent["hops"] == 10
    [found] = await shop.get(SCOPE + "/queues/_integrity/messages")
    assert found["message_type"] == "rule.hop_limit"
    assert (found["body"]["message_id"], found["correlation_id"]) == (sent["id"], "talk")
    assert "passed on 10 times" in found["body"]["why"]
    steps = [step["event_type"] for step in await shop.get(SCOPE + "/audit/trace/talk")]
    assert steps.count("message.routed") == 10
    await shop("DELETE", f"{SCOPE}/routing-rules/{back['id']}")
    for n in range(25):
        await publish(shop, n, correlation_id="storm")
    tripped = [rule for rule in await shop.get(SCOPE + "/routing-rules") if rule["tripped_until"]]
    assert "more than 20 times" in tripped[0]["tripped_why"]
    reset = await shop.post(f"{SCOPE}/routing-rules/{tripped[0]['id']}/reset")
    assert reset["tripped_until"] is None


async def test_a_rule_is_tried_on_a_message_and_on_the_last_ones_without_acting(shop: Caller) -> None:
    for n in range(5):
        await publish(shop, {"n": n})
    rule = {"name": "big", "expression": "body.n >= 3", "action": route("bulk")}
    tried = await shop.post(SCOPE + "/routing-rules/test", {"rule": rule, "last": 10, "queue_id": "jobs"})
    assert (tried["matched"], len(tried["results"])) == (2, 5)
    assert tried["results"][-1]["looks"][0]["why"] == "the expression does not hold"
    made = await add_rule(shop, name="later", expression="body.n == 0", action=route("bulk"))
    [first] = [each for each in await shop.get(JOBS + "/messages") if each["body"] == {"n": 0}]
    tried = await shop.post(SCOPE + "/routing-rules/test", {"message_id": first["id"]})
    assert tried["results"][0]["rule"]["id"] == made["id"]
    assert (await shop.get(JOBS))["depth_pending"] == 5, "nothing has moved"


# reviews


async def test_row_35_hitl_spec_on_messages_context_decision_input(shop: Caller) -> None:
    spec = {
        **SPEC,
        "sections": [{"type": "context", "title": "Post", "content": "hello"}, *SPEC["sections"][1:]],
    }
    sent = await publish(shop, {"id": 7}, hitl_spec=spec)
    assert sent["hitl_spec"] == spec
    for broken in (
        {"sections": []},
        {"sections": [{"type": "context", "content": "x"}]},
        {"sections": [{"type": "decision", "field": "d", "options": []}]},
        {"sections": spec["sections"], "default": {"decision": "maybe"}, "timeout_s": 5},
        {"sections": spec["sections"], "colour": "red"},
        {"ask": "?"},
    ):
        refused = await shop("POST", JOBS + "/messages", {"hitl_spec": broken})
        assert (refused.status, refused.code) == (422, "SCAIQUEUE_HITL_INVALID"), broken
    [waiting] = await shop.get(SCOPE + "/reviews")
    assert waiting["id"] == sent["id"]


async def test_row_36_pattern_registry_placeholders_versions_preview(shop: Caller) -> None:
    place = SCOPE + "/hitl-patterns"
    made = await shop("POST", place, {"name": "moderation", "version": "1.0", "spec": SPEC})
    assert (made.status, made.data["parameters"]) == (201, ["text"])
    taken = await shop("POST", place, {"name": "moderation", "version": "1.0", "spec": SPEC})
    assert (taken.status, taken.code) == (409, "SLUG_CONFLICT")
    seen = await shop.post(f"{place}/{made.data['id']}/preview", {"parameters": {"text": "hi"}})
    assert seen["sections"][0]["content"] == "hi"
    lacking = await shop("POST", f"{place}/{made.data['id']}/preview", {"parameters": {}})
    assert (lacking.status, "text" in lacking.document["error"]["message"]) == (422, True)
    wanted = {"pattern": "moderation", "parameters": {"text": "first"}}
    old = await publish(shop, 1, hitl_spec=wanted)
    await shop.post(place, {"name": "moderation", "version": "2.0", "spec": {**SPEC, "title": "New"}})
    new = await publish(shop, 2, hitl_spec=wanted)
    fixed = await publish(shop, 3, hitl_spec={**wanted, "version": "1.0"})
    assert [each["hitl_spec"]["version"] for each in (old, new, fixed)] == ["1.0", "2.0", "1.0"]
    assert (await message_of(shop, old))["hitl_spec"]["sections"][0]["content"] == "first"
    unknown = await shop("POST", JOBS + "/messages", {"hitl_spec": {"pattern": "nope"}})
    assert (unknown.status, unknown.code) == (404, "SCAIQUEUE_PATTERN_NOT_FOUND")
    assert (await shop("DELETE", f"{place}/moderation@2.0")).status == 204
    assert (await publish(shop, 4, hitl_spec=wanted))["hitl_spec"]["version"] == "1.0"


async def test_row_37_reviewer_completes_and_the_decision_is_readable(shop: Caller, service: Service) -> None:
    spec = {"sections": SPEC["sections"][1:], "assignee": "user:ann"}
    sent = await publish(shop, {"post": 1}, hitl_spec=spec)
    ann = await service.key(permissions=["view", "consume"], assigned_user_id="ann")
    bob = await service.key(permissions=["view", "consume"], assigned_user_id="bob")
    path = f"{SCOPE}/messages/{sent['id']}/review"
    assert (await bob("POST", path, {"answer": {"decision": "approve", "note": "x"}})).status == 403
    assert [each["id"] for each in await ann.get(SCOPE + "/reviews", mine=True)] == [sent["id"]]
    shown = await ann.get(path)
    for wrong in (
        {"decision": "maybe", "note": "x"},
        {"decision": "approve"},
        {"decision": "approve", "note": 1},
    ):
        assert (await ann("POST", path, {"answer": wrong})).code == "SCAIQUEUE_HITL_INVALID"
    stale = await ann("POST", path, {"answer": {"decision": "approve", "note": "ok"}, "seen": "0" * 32})
    assert (stale.status, stale.code) == (409, "SCAIQUEUE_REVIEW_CHANGED")
    answer = {"answer": {"decision": "approve", "note": "ok"}, "seen": shown["seen"]}
    done = await ann.post(path, answer)
    assert (done["state"], done["result"]) == ("completed", {"decision": "approve", "note": "ok"})
    again = await ann("POST", path, answer)
    assert (again.status, again.code) == (409, "SCAIQUEUE_REVIEW_ANSWERED")
    assert "approve" in again.document["error"]["message"]
    decided = (await shop.get(path))["decided"]
    assert (decided["by"], decided["answer"], decided["seen"]) == (
        "user:ann",
        answer["answer"],
        shown["seen"],
    )


async def test_row_38_review_timeout_takes_the_default_or_escalates(
    shop: Caller, clock: ManualClock, service: Service
) -> None:
    base = {"sections": SPEC["sections"][1:2], "timeout_s": 60}
    plain = await publish(shop, 1, hitl_spec=base)
    default = await publish(shop, 2, hitl_spec={**base, "default": {"decision": "reject"}})
    raised = await publish(shop, 3, hitl_spec={**base, "escalation": {"queue": "priority"}})
    clock.advance(61)
    late = await shop("POST", f"{SCOPE}/messages/{plain['id']}/review", {"answer": {"decision": "approve"}})
    assert (late.status, late.code) == (409, "SCAIQUEUE_REVIEW_LATE")
    await service.room.housekeep(housekeepers.EXPIRY)
    found = [await message_of(shop, each) for each in (plain, default, raised)]
    assert [each["state"] for each in found] == ["expired", "completed", "pending"]
    assert found[1]["result"] == {"decision": "reject"}
    assert (found[2]["queue"], found[2]["hitl_spec"]["escalated"]) == ("priority", True)
    decided = await shop.get(f"{SCOPE}/messages/{default['id']}/review")
    assert decided["decided"]["by"] == "timeout"


# streams


async def test_row_39_streams_and_assembler(shop: Caller, service: Service) -> None:
    place = SCOPE + "/streams"
    made = await shop.post(place, {"queue_id": "jobs", "correlation_id": "talk", "message_type": "essay"})
    stream = f"{place}/{made['id']}"
    following = asyncio.create_task(shop.get(stream + "/chunks", wait_s=20))
    await shop.post(stream + "/chunks", {"sequence": 2, "data": "three"})
    assert [chunk["sequence"] for chunk in await following] == [2], "a reader who waits gets it at once"
    await shop.post(stream + "/chunks", {"chunks": [{"sequence": 0, "data": "one "}]})
    await shop.post(stream + "/chunks", {"chunks": [{"sequence": 0, "data": "one "}]})
    half = await shop.get(stream)
    assert (half["data"], half["missing"], half["state"]) == ("one three", [1], "open")
    refused = await shop("POST", stream + "/close", {"total_chunks": 3})
    assert (refused.status, refused.code) == (409, "SCAIQUEUE_STREAM_INCOMPLETE")
    differs = await shop("POST", stream + "/chunks", {"sequence": 0, "data": "two "})
    assert differs.code == "SCAIQUEUE_CHUNK_CONFLICT"
    await shop.post(stream + "/chunks", {"sequence": 1, "data": "and "})
    closed = await shop.post(stream + "/close", {"total_chunks": 3})
    again = await shop.post(stream + "/close")
    assert (closed["state"], again["message_id"]) == ("closed", closed["message_id"])
    [message] = await claim(shop)
    assert (message["body"], message["message_type"]) == ("one and three", "essay")
    assert (message["id"], message["correlation_id"]) == (closed["message_id"], "talk")
    late = await shop("POST", stream + "/chunks", {"sequence": 3, "data": "x"})
    assert late.code == "SCAIQUEUE_STREAM_CLOSED"


async def test_a_stream_is_followed_live_by_server_sent_events(live: Service) -> None:
    owner = live.owner
    await owner.post("/scopes", {"slug": "work"})
    made = await owner.post(SCOPE + "/streams", {})
    stream = f"{SCOPE}/streams/{made['id']}"
    events: list[tuple[str, str]] = []
    first = asyncio.Event()

    async def follow() -> None:
        headers = {"authorization": f"Bearer {owner.token}"}
        async with owner.client.stream("GET", f"/v1{stream}/follow", headers=headers, timeout=120) as answer:
            name = ""
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    events.append((name, line.removeprefix("data: ")))
                    first.set()

    following = asyncio.create_task(follow())
    await owner.post(stream + "/chunks", {"sequence": 0, "data": "hello"})
    await asyncio.wait_for(first.wait(), 60)
    await owner.post(stream + "/chunks", {"sequence": 1, "data": " world"})
    await owner.post(stream + "/close")
    await asyncio.wait_for(following, 60)
    assert [name for name, _ in events] == ["chunk", "chunk", "closed"]
    assert '"hello"' in events[0][1]


async def test_an_idle_stream_is_given_up(shop: Caller, clock: ManualClock) -> None:
    made = await shop.post(SCOPE + "/streams", {})
    clock.advance(3601)
    stream = f"{SCOPE}/streams/{made['id']}"
    assert (await shop.get(stream))["state"] == "aborted"
    assert (
        await shop("POST", stream + "/chunks", {"sequence": 0, "data": "x"})
    ).code == "SCAIQUEUE_STREAM_CLOSED"


# access


async def test_row_41_four_permissions_on_every_endpoint(shop: Caller, service: Service) -> None:
    keys = {name: await service.key(permissions=[name]) for name in ("view", "publish", "consume", "manage")}
    sent = await publish(shop, 1)
    calls: list[tuple[str, str, str, Any]] = [
        ("view", "GET", SCOPE, None),
        ("view", "GET", JOBS + "/messages", None),
        ("view", "GET", SCOPE + "/audit", None),
        ("publish", "POST", JOBS + "/messages", {"body": 1}),
        ("consume", "POST", JOBS + "/claim", {}),
        ("consume", "POST", f"{SCOPE}/messages/{sent['id']}/release", {}),
        ("manage", "POST", SCOPE + "/queues", {"slug": "more"}),
        ("manage", "GET", SCOPE + "/api-keys", None),
    ]
    for permission, method, path, body in calls:
        for name, key in keys.items():
            answer = await key(method, path, body)
            if name != permission:
                assert (answer.status, answer.code) == (403, "AUTHZ_PERMISSION_DENIED"), (name, path)
            else:
                assert answer.status != 403, (name, path)


async def test_row_42_role_defaults(shop: Caller, service: Service) -> None:
    async def may(**wanted: Any) -> list[str]:
        key = await service.key(**wanted)
        calls = {
            "view": ("GET", SCOPE, None),
            "publish": ("POST", JOBS + "/messages", {"body": 1}),
            "consume": ("POST", JOBS + "/claim", {}),
            "manage": ("GET", SCOPE + "/grants", None),
        }
        return [name for name, call in calls.items() if (await key(*call)).status < 300]

    everything = ["view", "publish", "consume", "manage"]
    for role in ("super_admin", "partner_admin", "tenant_admin"):
        assert await may(role=role) == everything
    assert await may(role="tenant_user") == []
    assert await may(role="tenant_viewer") == ["view"]
    await shop.post(
        "/iam/custom-roles", {"name": "producer", "module_permissions": ["scaiqueue:view", "publish"]}
    )
    assert await may(role="producer") == ["view", "publish"]
    await shop("PUT", "/users/ann/module-permissions", {"permissions": ["scaiqueue:consume"]})
    assert await may(role=None, permissions=[], assigned_user_id="ann") == ["consume"]


async def test_a_partner_reaches_its_own_tenants_and_no_others(service: Service) -> None:
    for slug, partner in (("acme", "p1"), ("globex", "p2")):
        await service.owner.post("/tenants", {"slug": slug, "partner": partner})
        await (await service.key(slug)).post("/scopes", {"slug": f"of-{slug}"})
    partner = await service.key("home", role="partner_admin", partner="p1")
    partner.tenant = "acme"
    assert [scope["slug"] for scope in await partner.get("/scopes")] == ["of-acme"]
    partner.tenant = "globex"
    assert (await partner("GET", "/scopes")).status == 404


async def test_row_43_scope_grants_and_queue_acl_entries(shop: Caller, service: Service) -> None:
    ann = await service.key(permissions=["view", "publish"], assigned_user_id="ann")
    bob = await service.key(permissions=["view", "publish"], assigned_user_id="bob", groups=["staff"])
    assert (await ann("GET", SCOPE)).status == (await bob("GET", SCOPE)).status == 200, "open without entries"
    grant = {"principal_type": "user", "principal_id": "ann", "permissions": ["view"]}
    made = await shop.post(SCOPE + "/grants", grant)
    assert (await ann("GET", SCOPE)).status == 200
    assert (await bob("GET", SCOPE)).code == "SCAIQUEUE_SCOPE_NOT_FOUND", "hidden things are not there"
    assert [scope["slug"] for scope in await bob.get("/scopes")] == ["default"]
    denied = await ann("POST", JOBS + "/messages", {"body": 1})
    assert (denied.status, denied.code) == (403, "SCAIQUEUE_ACL_DENIED")
    entry = {"principal_type": "group", "principal_id": "staff", "permissions": ["view", "publish"]}
    await shop.post(JOBS + "/acl", entry)
    assert (await bob("POST", JOBS + "/messages", {"body": 1})).status == 201, (
        "the queue's list counts instead"
    )
    assert (await ann("GET", JOBS)).code == "SCAIQUEUE_QUEUE_NOT_FOUND"
    assert "jobs" not in [queue["slug"] for queue in await ann.get(SCOPE + "/queues")]
    assert await ann.get(SCOPE + "/messages") == [], "nor are its messages"
    assert (await shop("GET", JOBS)).status == 200, "administrators always pass"
    assert (await shop("DELETE", f"{SCOPE}/grants/{made['id']}")).status == 204
    assert (await bob("GET", SCOPE)).status == 200


async def test_an_expired_grant_keeps_the_scope_closed(
    shop: Caller, service: Service, clock: ManualClock
) -> None:
    ann = await service.key(permissions=["view"], assigned_user_id="ann")
    grant = {
        "principal_type": "user",
        "principal_id": "ann",
        "permissions": ["view"],
        "expires_at": at(clock, 60),
    }
    await shop.post(SCOPE + "/grants", grant)
    assert (await ann("GET", SCOPE)).status == 200
    clock.advance(61)
    assert (await ann("GET", SCOPE)).status == 404


async def test_the_mail_of_the_house_is_not_for_keys_unless_made_for_it(
    owner: Caller, service: Service
) -> None:
    await owner.post("/scopes", {"slug": "office"})
    await owner.post("/scopes/office/queues", {"slug": "inbox"})
    await owner.post("/scopes", {"slug": "work"})
    admin = await service.key()
    assert "office" not in [scope["slug"] for scope in await admin.get("/scopes")]
    assert (await admin("GET", "/scopes/office")).code == "SCAIQUEUE_SCOPE_NOT_FOUND"
    trust = await admin(
        "POST", "/scopes/work/trusts", {"target_scope_id": "office", "permissions": ["route"]}
    )
    assert trust.code == "SCAIQUEUE_SCOPE_NOT_FOUND"
    rule = {"name": "x", "action": route("office/inbox")}
    assert (await admin("POST", "/scopes/work/routing-rules", rule)).code == "VALIDATION_ERROR"
    made = await owner.post("/scopes/office/api-keys", {"name": "bridge", "permissions": ["view"]})
    assert (await service.owner.with_token(made["secret"])("GET", "/scopes/office")).status == 200


async def test_row_44_cross_scope_trust(shop: Caller, service: Service) -> None:
    await shop.post("/scopes", {"slug": "other"})
    await shop.post("/scopes/other/queues", {"slug": "inbox"})
    rule = {"name": "out", "source_queue_id": "jobs", "action": route("other/inbox")}
    refused = await shop("POST", SCOPE + "/routing-rules", rule)
    assert (refused.status, refused.code) == (403, "SCAIQUEUE_TRUST_REQUIRED")
    trust = await shop.post(SCOPE + "/trusts", {"target_scope_id": "other", "permissions": ["route"]})
    await shop.post(SCOPE + "/routing-rules", rule)
    moved = await publish(shop, 1)
    assert (moved["scope"], moved["queue"]) == ("other", "inbox")
    bound = await shop.post(SCOPE + "/api-keys", {"name": "b", "permissions": ["publish"]})
    key = service.owner.with_token(bound["secret"])
    inbox = "/scopes/other/queues/inbox/messages"
    assert (await key("POST", inbox, {"body": 2})).code == "SCAIQUEUE_SCOPE_NOT_FOUND"
    await shop.post(SCOPE + "/trusts", {"target_scope_id": "other", "permissions": ["publish"]})
    assert (await key("POST", inbox, {"body": 2})).status == 201
    await shop("PATCH", f"{SCOPE}/trusts/{trust['id']}", {"enabled": False})
    stays = await publish(shop, 3)
    assert (stays["scope"], stays["queue"]) == ("work", "jobs"), "revoking takes effect at once"
    [found] = await shop.get(SCOPE + "/queues/_integrity/messages")
    assert "no trust" in found["body"]["why"]


async def test_row_45_api_keys_shown_once_hashed_expiring_rotated(
    shop: Caller, service: Service, clock: ManualClock, tmp_path: Path
) -> None:
    made = await shop.post(
        SCOPE + "/api-keys", {"name": "shop", "permissions": ["view"], "expires_at": at(clock, 7200)}
    )
    secret = made["secret"]
    key = service.owner.with_token(secret)
    assert (await key("GET", SCOPE)).status == 200
    assert (await key("GET", "/scopes/default")).status == 404, "it is for its scope alone"
    assert (await key("GET", "/webhooks")).code == "AUTHZ_PERMISSION_DENIED"
    [listed] = await shop.get(SCOPE + "/api-keys")
    assert "secret" not in listed
    await service.room.head()
    kept = await asyncio.to_thread(lambda: b"".join(file.read_bytes() for file in tmp_path.glob("room.db*")))
    assert secret.encode() not in kept, "only its hash is kept"
    rotated = await shop.post(f"{SCOPE}/api-keys/{made['id']}/rotate", {"grace_s": 600})
    newer = service.owner.with_token(rotated["secret"])
    assert (await newer("GET", SCOPE)).status == (await key("GET", SCOPE)).status == 200
    clock.advance(601)
    assert ((await key("GET", SCOPE)).code, (await newer("GET", SCOPE)).status) == ("AUTH_TOKEN_INVALID", 200)
    clock.advance(7200)
    assert (await newer("GET", SCOPE)).code == "SESSION_EXPIRED"
    other = await shop.post(SCOPE + "/api-keys", {"name": "x", "permissions": ["view"]})
    await shop("DELETE", f"{SCOPE}/api-keys/{other['id']}")
    assert (await service.owner.with_token(other["secret"])("GET", SCOPE)).code == "AUTH_TOKEN_INVALID"


async def test_nobody_can_give_what_they_do_not_have(shop: Caller, service: Service) -> None:
    manager = await service.key(permissions=["manage"])
    wanted = {"name": "more", "permissions": ["consume"]}
    assert (await manager("POST", SCOPE + "/api-keys", wanted)).code == "AUTHZ_PERMISSION_DENIED"
    admin = await manager("POST", "/api-keys", {"name": "more", "role": "tenant_admin"})
    assert admin.code == "AUTHZ_PERMISSION_DENIED"


# audit and erasure


async def test_row_46_audit_of_every_gated_call_with_filters(shop: Caller, service: Service) -> None:
    viewer = await service.key(permissions=["view"])
    sent = await publish(shop, 1, correlation_id="talk")
    await viewer("POST", JOBS + "/claim")
    await viewer("GET", JOBS)
    entries = await shop.get(SCOPE + "/audit")
    assert [entry["event_type"] for entry in entries[:3]] == [
        "queue.read",
        "message.claim",
        "message.publish",
    ]
    [refused] = await shop.get(SCOPE + "/audit", allowed=False)
    assert (refused["event_type"], refused["status"], refused["permission"]) == (
        "message.claim",
        403,
        "scaiqueue:consume",
    )
    assert refused["actor_id"] == viewer.headers["x-key-id"]
    mine = await shop.get(SCOPE + "/audit", actor_id=viewer.headers["x-key-id"])
    assert len(mine) == 2
    [one] = await shop.get(SCOPE + "/audit", correlation_id="talk")
    assert (one["message_id"], one["event_type"]) == (sent["id"], "message.publish")
    page = await shop("GET", SCOPE + "/audit", limit=2)
    rest = await shop("GET", SCOPE + "/audit", limit=500, cursor=page.document["next_cursor"])
    ids = [entry["id"] for entry in [*page.data, *rest.data]]
    assert len(ids) == len(set(ids))
    assert await shop.get(SCOPE + "/audit", since="2099-01-01T00:00:00Z") == []


async def test_row_47_audit_trace_in_order(shop: Caller, clock: ManualClock) -> None:
    await add_rule(shop, source_queue_id="jobs", action=route("bulk"))
    await publish(shop, 1, correlation_id="talk")
    clock.advance(1)
    [message] = await claim(shop, SCOPE + "/queues/bulk")
    clock.advance(1)
    await settle(shop, message, "complete", result="ok")
    steps = await shop.get(SCOPE + "/audit/trace/talk")
    assert [step["event_type"] for step in steps] == [
        "message.published",
        "message.routed",
        "message.publish",
        "message.claimed",
        "message.claim",
        "message.completed",
        "message.complete",
    ]
    assert steps[1]["actor_type"] == "rule"


async def test_row_49_erasure_request_preview_execution_and_proof(
    shop: Caller, service: Service, tmp_path: Path
) -> None:
    ann = await publish(
        shop, {"who": {"mail": "ann@example.org"}, "text": "secret-of-ann"}, labels={"a": "x"}
    )
    bob = await publish(shop, {"who": {"mail": "bob@example.org"}, "text": "of bob"})
    held = await publish(shop, {"who": {"mail": "ann@example.org"}, "text": "held"}, SCOPE + "/queues/bulk")
    [holding] = await claim(shop, SCOPE + "/queues/bulk")
    subject = {"field": "body.who.mail", "value": "ann@example.org"}
    job = await shop.post(SCOPE + "/gdpr-jobs", {"subject": subject})
    assert (job["status"], job["found"], job["waiting"], job["erased"]) == ("pending", 2, 1, 0)
    assert (await message_of(shop, ann))["body"]["text"] == "secret-of-ann", (
        "nothing is erased before execute"
    )
    half = await shop.post(f"{SCOPE}/gdpr-jobs/{job['id']}/execute")
    assert (half["status"], half["erased"], half["waiting"]) == ("waiting", 1, 1)
    gone = await message_of(shop, ann)
    assert (gone["body"], gone["labels"], gone["source_id"]) == ({"erased": True}, {}, None)
    assert (await message_of(shop, bob))["body"]["text"] == "of bob"
    await settle(shop, holding, "complete", result={"echo": "ann@example.org"})
    done = await shop.post(f"{SCOPE}/gdpr-jobs/{job['id']}/execute")
    assert (done["status"], done["erased"], done["subject"]) == ("completed", 2, None)
    assert (await message_of(shop, held))["result"] is None
    proofs = [event async for event in service.room.events() if event.type == "erasure.completed"]
    proof = proofs[0].details
    told = f'{proof["salt"]}:body.who.mail="ann@example.org"'
    assert hashlib.sha256(told.encode()).hexdigest() == proof["subject_sha256"], "whoever knows it can check"
    whole = [repr(event) async for event in service.room.events()]
    assert not [text for text in whole if "ann@example.org" in text]
    again = await shop("POST", f"{SCOPE}/gdpr-jobs/{job['id']}/execute")
    assert (again.status, again.code) == (409, "SCAIQUEUE_INVALID_STATE")


async def test_redaction_takes_out_the_value_alone(shop: Caller) -> None:
    sent = await publish(shop, {"mail": "ann@example.org", "text": "write to ann@example.org"})
    subject = {"field": "body.mail", "value": "ann@example.org"}
    job = await shop.post(SCOPE + "/gdpr-jobs", {"subject": subject, "mode": "redact"})
    await shop.post(f"{SCOPE}/gdpr-jobs/{job['id']}/execute")
    assert (await message_of(shop, sent))["body"] == {"mail": "[erased]", "text": "write to [erased]"}


async def test_erasure_reaches_the_lake(tmp_path: Path) -> None:
    class Lake:
        asked: list[tuple[str, list[str]]] = []  # noqa: RUF012 - a stand-in

        async def search(self, tenant: str, scope: str, subject: object, queues: object) -> list[str]:
            return []

        async def preview(self, tenant: str, message_ids: list[str]) -> int:
            return len(message_ids)

        async def erase(self, tenant: str, message_ids: list[str]) -> int:
            self.asked.append((tenant, message_ids))
            return 2 * len(message_ids)

    lake = Lake()
    async with serving(tmp_path, ManualClock(), lake=lake) as service:
        owner = service.owner
        await owner.post("/scopes", {"slug": "work"})
        await owner.post(SCOPE + "/queues", {"slug": "jobs"})
        sent = await publish(owner, 1, labels={"who": "ann"})
        job = await owner.post(SCOPE + "/gdpr-jobs", {"subject": {"field": "labels.who", "value": "ann"}})
        assert job["in_lake"] == 1
        done = await owner.post(f"{SCOPE}/gdpr-jobs/{job['id']}/execute")
        assert (done["in_lake"], lake.asked) == (2, [("default", [sent["id"]])])


# events and webhooks


@contextlib.asynccontextmanager
async def telling(folder: Path) -> AsyncIterator[Service]:
    async with (
        serving(folder, inside=everywhere) as service,
        WebhookService(service.room, inside=everywhere).running(),
    ):
        await service.owner.post("/scopes", {"slug": "work"})
        await service.owner.post(SCOPE + "/queues", {"slug": "jobs", "max_retries": 1})
        yield service


async def test_row_56_four_events_and_completed_carries_the_correlation(tmp_path: Path) -> None:
    async with telling(tmp_path) as service, receiving() as receiver:
        owner = service.owner
        await owner.post(SCOPE + "/subscriptions", {"queue_id": "_events", "name": "bus"})
        await owner.post("/webhooks", {"url": receiver.url})
        await publish(owner, 1, correlation_id="talk")
        [message] = await claim(owner)
        await settle(owner, message, "complete", result={"ok": True})
        await publish(owner, 2, correlation_id="other")
        [message] = await claim(owner)
        await settle(owner, message, "fail", reason="no way")
        told = await receiver.events(6)
        names = [event["event_type"].removeprefix("scaiqueue.message.") for event in told]
        assert sorted(names) == ["claimed", "claimed", "completed", "dead_lettered", "published", "published"]
        [completed] = [event for event in told if event["event_type"].endswith("completed")]
        assert completed["payload"]["correlation_id"] == "talk"
        assert completed["payload"]["result"] == {"ok": True}
        assert (completed["tenant_id"], completed["event_id"][:4]) == ("default", "evt_")
        copies = await claim(owner, SCOPE + "/queues/_events", subscription="bus", batch_size=10, wait_s=10)
        assert copies[0]["body"]["event_type"] == "scaiqueue.message.published"


async def test_row_57_webhooks_are_signed_timestamped_retried_and_logged(tmp_path: Path) -> None:
    secret = "a-secret-of-sixteen"
    async with telling(tmp_path) as service, receiving(fail_first=2) as receiver:
        owner = service.owner
        hook = await owner.post(
            "/webhooks", {"url": receiver.url, "secret": secret, "events": ["scaiqueue.message.published"]}
        )
        sent = await publish(owner, 1)
        [event] = await receiver.events(1)
        assert event["payload"]["message_id"] == sent["id"]
        assert receiver.tries == 3, "two failures, then it was taken"
        body, headers = receiver.last
        wanted = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        assert headers["x-scaigrid-signature"] == f"sha256={wanted}"
        stamp = headers["x-scaigrid-timestamp"]
        both = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
        assert headers["x-postroom-signature"] == f"t={stamp},v1={both}"
        delivery = await settled(owner, hook["id"], "delivered")
        assert (delivery["attempts"], delivery["status_code"]) == (3, 200)
        tried = await owner.post(f"/webhooks/{hook['id']}/test")
        assert (await receiver.events(2))[1]["event_id"] == tried["event_id"]


async def settled(caller: Caller, webhook_id: str, status: str) -> Any:
    async with asyncio.timeout(60):
        while True:
            found = await caller.get(f"/webhooks/{webhook_id}/deliveries", status=status)
            if found:
                return found[0]
            await asyncio.sleep(0.02)


async def test_a_webhook_gives_up_after_its_retries(tmp_path: Path) -> None:
    async with telling(tmp_path) as service, receiving(fail_first=99) as receiver:
        owner = service.owner
        hook = await owner.post("/webhooks", {"url": receiver.url, "max_retries": 1})
        await publish(owner, 1)
        delivery = await settled(owner, hook["id"], "failed")
        assert (delivery["attempts"], "answered with 503" in delivery["problem"]) == (1, True)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/x",
        "https://user:pass@example.org/",
        "ftp://example.org",
        "https://",
        "nonsense",
    ],
)
async def test_webhooks_lead_only_to_https(shop: Caller, url: str) -> None:
    refused = await shop("POST", "/webhooks", {"url": url})
    assert (refused.status, refused.code) == (422, "SCAIQUEUE_WEBHOOK_ADDRESS")


# limits


async def test_row_60_rate_limits_and_headers(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serving(tmp_path, clock, rates=Rates(key=3, tenant=5)) as service:
        one, two = await service.key(), await service.key()
        seen = [await one("GET", "/scopes"), await one("GET", "/scopes/none"), await one("GET", "/scopes")]
        assert [answer.status for answer in seen] == [200, 404, 200], "what is refused counts, and says so"
        assert [answer.headers["x-scaigrid-ratelimit-remaining"] for answer in seen] == ["2", "1", "0"]
        refused = await one("GET", "/scopes")
        assert (refused.status, refused.code) == (429, "RATE_LIMITED")
        assert (refused.headers["retry-after"], refused.headers["x-scaigrid-ratelimit-limit"]) == ("60", "3")
        assert refused.headers["x-scaigrid-ratelimit-remaining"] == "0"
        assert refused.document["error"]["retry_after"] == 60
        assert [(await two("GET", "/scopes")).status for _ in range(3)] == [200, 200, 429], "the tenant's"
        assert (await service.owner("GET", "/scopes")).status == 200, "the owner has no limit"
        clock.advance(60)
        assert (await one("GET", "/scopes")).status == 200, "the window slides"
        await service.owner("PUT", "/tenants/default/rates", {"key": 100, "tenant": 100})
        assert [(await one("GET", "/scopes")).status for _ in range(6)] == [200] * 6


def test_the_defaults_are_those_of_the_reference() -> None:
    assert Rates() == Rates(key=60, user=120, tenant=1000, partner=5000)
