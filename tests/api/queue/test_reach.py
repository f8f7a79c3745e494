"""What a caller may do does not grow by way of keys, roles, streams, rules or webhooks."""

from pathlib import Path
from typing import Any

import pytest

from postroom.webhooks.service import WebhookService
from tests.api.queue.receiver import everywhere, receiving
from tests.api.queue.service import Caller, Service, serving
from tests.api.queue.test_checklist import JOBS, SCOPE

MANAGE: dict[str, Any] = {"permissions": ["manage"]}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api-keys", {"name": "x", "permissions": ["view"]}),
        ("POST", "/api-keys", {"name": "x", "role": "tenant_viewer"}),
        ("POST", "/api-keys", {"name": "x", "role": "tenant_admin"}),
        ("POST", "/api-keys", {"name": "x", "role": "publishers"}),
        ("POST", "/api-keys", {"name": "x", "assigned_user_id": "ann"}),
        ("POST", "/api-keys", {"name": "x", "permissions": ["manage"], "assigned_user_id": "nobody"}),
        ("POST", "/api-keys", {"name": "x", "permissions": ["manage"], "groups": ["board"]}),
        ("POST", SCOPE + "/api-keys", {"name": "x", "permissions": ["manage"], "groups": ["board"]}),
        ("POST", "/iam/custom-roles", {"name": "all", "module_permissions": ["manage", "view"]}),
        ("PUT", "/users/me/module-permissions", {"permissions": ["view"]}),
        ("POST", SCOPE + "/grants", {"principal_type": "user", "principal_id": "x", "permissions": ["view"]}),
    ],
)
async def test_nobody_gives_what_they_do_not_have(
    jobs: Caller, service: Service, method: str, path: str, body: dict[str, Any]
) -> None:
    await jobs.post("/iam/custom-roles", {"name": "publishers", "module_permissions": ["publish"]})
    await jobs("PUT", "/users/ann/module-permissions", {"permissions": ["view"]})
    manager = await service.key(**MANAGE)
    refused = await manager(method, path, body)
    assert (refused.status, refused.code) == (403, "AUTHZ_PERMISSION_DENIED"), refused.document


async def test_a_key_is_not_taken_by_rotating_it(jobs: Caller, service: Service) -> None:
    manager = await service.key(**MANAGE)
    for wanted in ({"role": "tenant_admin"}, {"permissions": ["view"]}, {"role": "super_admin"}):
        other = await service.key(**{"role": None, **wanted})
        path = f"/api-keys/{other.headers['x-key-id']}/rotate"
        assert (await manager("POST", path)).code == "AUTHZ_PERMISSION_DENIED"
        assert (await other("GET", "/scopes")).status == 200, "it is still good"
    admin = await service.key()
    refused = await admin("POST", path)
    assert refused.code == "AUTHZ_PERMISSION_DENIED", "not even by an administrator of the tenant"
    own = f"/api-keys/{manager.headers['x-key-id']}/rotate"
    assert (await manager("POST", own)).status == 200, "its own everybody may"
    peer = await service.key(**MANAGE)
    assert (await manager("POST", f"/api-keys/{peer.headers['x-key-id']}/rotate")).status == 200


async def test_a_stream_ends_where_its_writer_may_publish(jobs: Caller, service: Service) -> None:
    writer = await service.key(permissions=["publish", "view"])
    refused = await writer("POST", SCOPE + "/streams", {"queue_id": "_dead_letter"})
    assert refused.code == "SCAIQUEUE_SYSTEM_QUEUE"
    assert (await writer("POST", SCOPE + "/streams", {"queue_id": "jobs"})).status == 201
    entry = {"principal_type": "user", "principal_id": "bob", "permissions": ["publish"]}
    await jobs.post(JOBS + "/acl", entry)
    hidden = await writer("POST", SCOPE + "/streams", {"queue_id": "jobs"})
    missing = await writer("POST", SCOPE + "/streams", {"queue_id": "nope"})
    assert (hidden.status, hidden.code) == (missing.status, missing.code)
    assert hidden.code == "SCAIQUEUE_QUEUE_NOT_FOUND"


async def test_a_decision_leads_only_where_its_publisher_may_publish(jobs: Caller, service: Service) -> None:
    publisher = await service.key(permissions=["publish", "view"])
    await jobs.post(SCOPE + "/queues", {"slug": "open"})
    closed = {"principal_type": "user", "principal_id": "bob", "permissions": ["publish"]}
    await jobs.post(JOBS + "/acl", closed)
    asks: dict[str, Any] = {"sections": [{"type": "decision", "options": ["yes", "no"]}], "timeout_s": 60}
    for way in (
        {"on_decision": {"yes": {"queue": "jobs"}}},
        {"on_decision": {"yes": {"queue": "/work/jobs"}}},
        {"escalation": {"queue": "jobs"}},
    ):
        path = SCOPE + "/queues/open/messages"
        refused = await publisher("POST", path, {"hitl_spec": {**asks, **way}})
        assert (refused.status, refused.code) == (422, "SCAIQUEUE_HITL_INVALID")
        assert (await jobs("POST", path, {"hitl_spec": {**asks, **way}})).status == 201


async def test_a_rule_names_only_queues_its_maker_sees(jobs: Caller, service: Service) -> None:
    manager = await service.key(permissions=["manage", "view"])
    await jobs.post(SCOPE + "/queues", {"slug": "open"})
    await jobs.post(JOBS + "/acl", {"principal_type": "user", "principal_id": "bob", "permissions": ["view"]})
    action = {"type": "route", "target_queue_id": "open"}
    for name in ("jobs", "nope"):
        rule = {"name": "r", "source_queue_id": name, "action": action}
        refused = await manager("POST", SCOPE + "/routing-rules", rule)
        assert refused.document["error"]["details"][0]["message"] == f"there is no queue {name!r}"


@pytest.fixture
async def narrow(jobs: Caller, service: Service) -> Caller:
    """Somebody who manages the scope and sees the queue `open`, but not `jobs`, which is bob's."""
    await jobs.post(SCOPE + "/queues", {"slug": "open"})
    everything = ["view", "publish", "consume", "manage"]
    await jobs.post(
        JOBS + "/acl", {"principal_type": "user", "principal_id": "bob", "permissions": everything}
    )
    return await service.key(permissions=["manage", "view"])


async def test_a_rule_is_not_tried_on_what_its_maker_does_not_see(jobs: Caller, narrow: Caller) -> None:
    secret = await jobs.post(JOBS + "/messages", {"body": {"salary": 7}})
    rule = {"name": "r", "action": {"type": "archive"}, "expression": "body.salary == 7"}
    hidden = await narrow("POST", SCOPE + "/routing-rules/test", {"rule": rule, "message_id": secret["id"]})
    missing = await narrow("POST", SCOPE + "/routing-rules/test", {"rule": rule, "message_id": "nope"})
    assert (
        (hidden.status, hidden.code) == (missing.status, missing.code) == (404, "SCAIQUEUE_MESSAGE_NOT_FOUND")
    )
    shown = await jobs("POST", SCOPE + "/routing-rules/test", {"rule": rule, "message_id": secret["id"]})
    assert shown.data["matched"] == 1


async def test_the_id_of_a_message_that_is_not_seen_is_no_cursor(jobs: Caller, narrow: Caller) -> None:
    secret = await jobs.post(JOBS + "/messages", {"body": 1})
    for cursor in (secret["id"], "nope"):
        refused = await narrow("GET", SCOPE + "/messages", cursor=cursor)
        assert (refused.status, refused.code) == (422, "VALIDATION_ERROR")
    assert (await jobs("GET", SCOPE + "/messages", cursor=secret["id"])).status == 200


async def test_a_dead_letter_is_seen_by_those_who_saw_it_alive(jobs: Caller, narrow: Caller) -> None:
    for queue, body in (("jobs", "secret"), ("open", "a"), ("jobs", "secret"), ("open", "b")):
        path = f"{SCOPE}/queues/{queue}"
        await jobs.post(path + "/messages", {"body": body})
        [claimed] = await jobs.post(path + "/claim")
        failed = {"claim_token": claimed["claim_token"], "retry": False}
        await jobs.post(f"{SCOPE}/messages/{claimed['id']}/fail", failed)
    for path in (SCOPE + "/queues/_dead_letter/messages", SCOPE + "/messages"):
        assert [each["body"] for each in await narrow.get(path)] == ["a", "b"]
        first = (await narrow("GET", path, limit=1)).document
        assert (first["data"][0]["body"], first["has_more"]) == ("a", True)
        second = (await narrow("GET", path, limit=1, cursor=first["next_cursor"])).document
        assert (second["data"][0]["body"], second["has_more"]) == ("b", False)
        secret, *_ = await jobs.get(path)
        for verb in ("GET", "POST"):
            way = f"{SCOPE}/messages/{secret['id']}" + ("/replay" if verb == "POST" else "")
            assert (await narrow(verb, way)).code == "SCAIQUEUE_MESSAGE_NOT_FOUND"
    assert (await jobs("POST", way)).status == 200


async def test_a_role_that_opens_a_queue_is_not_given_by_those_it_is_closed_to(
    jobs: Caller, narrow: Caller
) -> None:
    await jobs.post("/iam/custom-roles", {"name": "board", "module_permissions": ["view"]})
    await jobs.post(
        JOBS + "/acl", {"principal_type": "role", "principal_id": "board", "permissions": ["view"]}
    )
    refused = await narrow("POST", "/api-keys", {"name": "x", "role": "board"})
    assert (refused.status, refused.code) == (403, "AUTHZ_PERMISSION_DENIED")
    assert (await jobs("POST", "/api-keys", {"name": "x", "role": "board"})).status == 201


async def test_the_mail_of_the_house_is_told_to_webhooks_of_the_owner_alone(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, inside=everywhere) as service,
        WebhookService(service.room, inside=everywhere).running(),
        receiving() as mine,
        receiving() as theirs,
    ):
        admin = await service.key()
        await service.owner.post("/webhooks", {"url": mine.url})
        hook = await admin.post("/webhooks", {"url": theirs.url})
        for scope in ("office", "work"):
            await service.owner.post("/scopes", {"slug": scope})
            await service.owner.post(f"/scopes/{scope}/queues", {"slug": "jobs"})
            await service.owner.post(f"/scopes/{scope}/queues/jobs/messages", {"body": scope})
        assert {event["payload"]["scope"] for event in await mine.events(2)} == {"office", "work"}
        assert [event["payload"]["scope"] for event in await theirs.events(1)] == ["work"]
        deliveries = await admin.get(f"/webhooks/{hook['id']}/deliveries")
        assert len(deliveries) == 1
        # Another address for the owner's webhook, by somebody else: then it is no longer the owner's.
        [own] = [each for each in await admin.get("/webhooks") if each["id"] != hook["id"]]
        await admin("PUT", f"/webhooks/{own['id']}", {"url": theirs.url})
        for scope in ("office", "work"):
            await service.owner.post(f"/scopes/{scope}/queues/jobs/messages", {"body": 2})
        assert {event["payload"]["scope"] for event in await theirs.events(3)} == {"work"}
