"""Whatever comes in is answered with a refusal that names what is wrong, never with a fault of ours."""

from typing import Any

import pytest

from tests.api.queue.service import OWNER, Caller
from tests.api.queue.test_checklist import JOBS, SCOPE

ODD: list[Any] = [None, 0, -1, 1.5, True, "", "x" * 600, [], {}, {"sections": 1}, [[1]], "ü\u0000"]
DECISION = {"sections": [{"type": "decision", "options": ["a"]}]}
WELL: dict[str, dict[str, Any]] = {
    "/scopes": {"slug": "zz", "display_name": "", "description": ""},
    SCOPE + "/queues": {"slug": "q", "ordering": "fifo", "consumer_mode": "competing", "max_retries": 1},
    JOBS + "/messages": {
        "body": 1,
        "message_type": "m",
        "content_type": "text/plain",
        "labels": {},
        "priority_score": 1,
        "ttl_seconds": 1,
        "deadline": None,
        "idempotency_key": "k",
        "hitl_spec": DECISION,
    },
    JOBS + "/claim": {"batch_size": 1, "labels": {}, "subscription": None, "worker": "w"},
    SCOPE + "/routing-rules": {
        "name": "r",
        "enabled": False,
        "trigger": "message_published",
        "action": {"type": "archive"},
        "conditions": [],
        "expression": "true",
        "priority": 1,
        "source_queue_id": "jobs",
    },
    SCOPE + "/hitl-patterns": {"name": "p", "version": "1.0", "spec": DECISION},
    SCOPE + "/schemas": {"name": "s", "version": 1, "schema": {}},
    SCOPE + "/streams": {"queue_id": "jobs", "content_type": "text/plain", "labels": {}},
    SCOPE + "/gdpr-jobs": {"subject": {"field": "source_id", "value": "x"}, "mode": "erase"},
    SCOPE + "/api-keys": {"name": "k", "permissions": ["view"], "role": None, "groups": []},
    SCOPE + "/grants": {"principal_type": "user", "principal_id": "x", "permissions": ["view"]},
    SCOPE + "/trusts": {"target_scope_id": "default", "permissions": ["route"]},
    "/webhooks": {"url": "https://example.org/", "events": [], "max_retries": 1},
}


@pytest.mark.parametrize("path", WELL)
async def test_odd_values_of_any_field_are_no_faults(jobs: Caller, path: str) -> None:
    for field in WELL[path]:
        for value in ODD:
            answer = await jobs("POST", path, {**WELL[path], field: value})
            assert answer.status < 500, (field, value, answer.document)
            if answer.status >= 400:
                assert answer.code, answer.document


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b"\xff", b'{"body":' + b"[" * 5000 + b"]" * 5000 + b"}"]
)
async def test_bodies_that_are_no_json_are_refused(jobs: Caller, raw: bytes) -> None:
    headers = {"authorization": f"Bearer {OWNER}", "content-type": "application/json"}
    answer = await jobs.client.post(f"/v1{JOBS}/messages", content=raw, headers=headers)
    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    "path",
    [
        "/scopes/%00",
        SCOPE + "/messages/" + "x" * 5000,
        SCOPE + "/audit?since=nope",
        SCOPE + "/messages?cursor=zz",
        SCOPE + "/messages?state=zz",
        SCOPE + "/messages?correlation_id=" + "x" * 600,
        SCOPE + "/audit/trace/" + "x" * 600,
        SCOPE + "/messages?limit=0",
        SCOPE + "/streams/x/chunks",
        SCOPE + "/streams/x/chunks?after=9223372036854775808",
        SCOPE + "/streams/x/follow?after=9223372036854775808",
        SCOPE + "/hitl-patterns/@",
        SCOPE + "/schemas/x/y",
    ],
)
async def test_odd_paths_and_queries_are_refused(jobs: Caller, path: str) -> None:
    answer = await jobs("GET", path)
    assert answer.status in (404, 422), answer.document


async def test_odd_answers_leave_a_review_open(jobs: Caller) -> None:
    sent = await jobs.post(JOBS + "/messages", {"hitl_spec": DECISION})
    path = f"{SCOPE}/messages/{sent['id']}/review"
    for answer in [*ODD, {"decision": ["a"]}, {"decision": {}}, {"decision": "b"}, {"decision": "a", "x": 1}]:
        assert 400 <= (await jobs("POST", path, {"answer": answer})).status < 500, answer
    assert (await jobs.post(path, {"answer": {"decision": "a"}}))["state"] == "completed"


@pytest.mark.parametrize(
    ("path", "raw", "field"),
    [
        (JOBS + "/claim", r'{"labels": {"a": "\ud800"}}', "labels.a"),
        (JOBS + "/claim", '{"labels": {"a": 999999999999999999999999}}', "labels.a"),
        (JOBS + "/claim", '{"visibility_timeout_s": NaN}', "visibility_timeout_s"),
        (JOBS + "/messages", '{"labels": {"a": 999999999999999999999999}}', "labels.a"),
        (JOBS + "/messages", '{"ttl_seconds": 1e300}', "ttl_seconds"),
        (JOBS + "/messages", '{"delay_seconds": -1}', "delay_seconds"),
        (JOBS + "/messages", r'{"idempotency_key": "7\u001fa"}', "idempotency_key"),
        (SCOPE + "/schemas", '{"name": "s", "schema": {}, "version": "' + "9" * 5000 + '"}', "version"),
        (
            SCOPE + "/grants",
            '{"principal_type": "user", "principal_id": "x", "permissions": ["view"],'
            ' "expires_at": "0001-01-01T00:00:00+14:00"}',
            "expires_at",
        ),
    ],
)
async def test_the_field_that_is_wrong_is_named_as_the_caller_wrote_it(
    jobs: Caller, path: str, raw: str, field: str
) -> None:
    headers = {"authorization": f"Bearer {OWNER}", "content-type": "application/json"}
    answer = await jobs.client.post(f"/v1{path}", content=raw, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"] == field


async def test_json_with_a_charset_is_json(jobs: Caller) -> None:
    sent = {"content_type": "application/json; charset=UTF-8", "body": {"a": 1}}
    shown = await jobs.post(JOBS + "/messages", sent)
    assert (shown["content_type"], shown["body"]) == ("application/json", {"a": 1})
