"""The examples of the OpenAPI document, played on a real house.

`python -m tests.api.examples` writes them anew. Each line is a request; what parts of its answer are called
later stands behind it.
"""

import asyncio
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx2

from postroom.api.examples import FILE
from postroom.office import queues
from postroom.office.pairing import Pairings
from tests.api.house import House, opened
from tests.office.imports import installations
from tests.services.office.test_unconfirmed_replies import leave_unconfirmed

SPEC = {
    "title": "Refund?",
    "sections": [
        {"type": "context", "content": "Order 7 came late."},
        {"type": "decision", "options": ["approve", "reject"]},
    ],
}
RULE = {
    "name": "premium first",
    "trigger": "message_published",
    "expression": 'labels.tier == "premium"',
    "action": {"type": "route", "target_queue_id": "urgent"},
}
S, Q = "/v1/scopes/{scope_id}", "/v1/scopes/{scope_id}/queues/{queue_id}"
M, W = S + "/messages/{message_id}", "/v1/webhooks/{webhook_id}"
GRANT = {"principal_type": "user", "principal_id": "ann", "permissions": ["view", "publish"]}
HOOK = {"url": "https://hooks.example.org/postroom", "events": ["scaiqueue.message.completed"]}

# Method, path, body, query, and under which names parts of the answer are used below.
Line = tuple[str, str, Any, dict[str, Any], dict[str, str]]


def line(method: str, path: str, body: Any = None, keep: str = "", **query: Any) -> Line:
    names = dict(part.split("=") for part in keep.split())
    return method, path, body, query, names


def get(path: str, keep: str = "", **query: Any) -> Line:
    return line("GET", path, None, keep, **query)


def post(path: str, body: Any = None, keep: str = "", **query: Any) -> Line:
    return line("POST", path, body, keep, **query)


def put(path: str, body: Any, keep: str = "") -> Line:
    return line("PUT", path, body, keep)


def delete(path: str) -> Line:
    return line("DELETE", path)


A, P = "/api/agents/{id}", "/api/custom-providers/{id}"
OFFICE: list[Line] = [
    get("/healthz"),
    get("/readyz"),
    get("/api/session"),
    get("/api/sessions"),
    post("/api/login-link", {"role": "viewer", "name": "Ann"}),
    get("/api/status"),
    get("/api/logs"),
    get("/api/chats"),
    get("/api/settings"),
    put("/api/settings", {"default_agent": "lead"}),
    put(
        "/api/custom-providers/local?id=local",
        {
            "name": "Local",
            "harness": "api",
            "base_url": "http://127.0.0.1:11434/v1",
            "api_key": "local-key-7",
            "model": "llama",
        },
    ),
    get("/api/custom-providers"),
    delete(P + "?id=local"),
    get("/api/agents"),
    put(
        A + "?id=writer",
        {
            "name": "Writer",
            "provider": "script",
            "model": "m",
            "system_prompt": "You write the release notes.",
        },
    ),
    put(A + "/system-prompt?id=writer", {"content": "You write short letters."}),
    get(A + "/system-prompt?id=writer"),
    put(A + "/heartbeat?id=writer", {"content": "Anything to do?", "enabled": True, "interval": 3600}),
    get(A + "/heartbeat?id=writer"),
    get(A + "/memory?id=writer"),
    get(A + "/skills?id=writer"),
    post(A + "/reset?id=writer"),
    delete(A + "?id=writer"),
    get("/api/agent-backups"),
    post("/api/agent-backups/{id}/restore?id=writer"),
    put("/api/teams/{id}?id=dev", {"name": "Dev", "agents": ["lead", "coder"], "leader_agent": "lead"}),
    get("/api/teams"),
    post("/api/chatroom/{team}?team=dev", {"message": "We ship on Friday."}),
    get("/api/chatroom/{team}?team=dev"),
    put("/api/teams/{id}?id=ops", {"name": "Ops", "agents": ["coder"], "leader_agent": "coder"}),
    delete("/api/teams/{id}?id=ops"),
    post(
        "/api/message",
        {
            "message": "@coder please look at the build",
            "sender": "Ann",
            "channel": "web",
            "messageId": "m1",
        },
    ),
    get("/api/queue/status"),
    get("/api/queue/agents"),
    get("/api/agents/{id}/messages?id=coder"),
    get("/api/agent-messages"),
    get("/api/message/{id}?id=m1", channel="web"),
    post(
        "/api/responses",
        {"channel": "web", "sender": "Ann", "message": "The build is green.", "agent": "coder"},
    ),
    get("/api/responses"),
    get("/api/responses/pending", keep="id=0.id", channel="web"),
    post("/api/responses/{id}/ack"),
    post("/api/projects", {"name": "Release", "description": "The next one"}, keep="project=project.id"),
    get("/api/projects"),
    get("/api/projects/{id}?id={project}"),
    put("/api/projects/{id}?id={project}", {"color": "#336699"}),
    post("/api/tasks", {"title": "Write the notes", "assignee": "coder"}, keep="task=task.id"),
    get("/api/tasks"),
    get("/api/tasks/{id}?id={task}"),
    put("/api/tasks/{id}?id={task}", {"status": "in_progress"}),
    put("/api/tasks/reorder", {"columns": {"in_progress": ["{task}"]}}),
    post(
        "/api/tasks/{id}/comments?id={task}",
        {"content": "Half done.", "author": "Ann"},
        keep="comment=comment.id",
    ),
    get("/api/tasks/{id}/comments?id={task}"),
    delete("/api/comments/{id}?id={comment}"),
    delete("/api/tasks/{id}?id={task}"),
    delete("/api/projects/{id}?id={project}"),
    post(
        "/api/schedules",
        {"agentId": "coder", "message": "What is new?", "cron": "0 9 * * 1-5", "label": "news"},
    ),
    get("/api/schedules"),
    put("/api/schedules/{id}?id=news", {"cron": "0 8 * * 1-5"}),
    post("/api/schedules/{id}/run?id=news"),
    delete("/api/schedules/{id}?id=news"),
    get("/api/pairing", keep="code=pending.0.code other=pending.1.code"),
    post("/api/pairing/approve", {"code": "{code}"}),
    delete("/api/pairing/pending/{code}?code={other}"),
    delete("/api/pairing/{channel}/{sender}?channel=telegram&sender=7001"),
    get("/api/unconfirmed", keep="lost=0.id again=1.id"),
    post("/api/unconfirmed/{reply_id}/dismiss?reply_id={lost}"),
    post("/api/unconfirmed/{reply_id}/resend?reply_id={again}"),
    get("/api/guards", keep="account=budgets.0.account"),
    post("/api/guards/budget", {"account": "{account}", "usd": 200}),
    post("/api/guards/raise", {"conversation": "web:m1", "usd": 20}),
    post("/api/guards/stop", {"conversation": "web:m1"}),
    post("/api/guards/continue", {"conversation": "web:m1"}),
    post("/api/guards/pause-all"),
    post("/api/guards/resume-all"),
    post("/api/services/apply"),
    get("/api/queue/dead", keep="dead=0.id other=1.id"),
    post("/api/queue/dead/{id}/retry?id={dead}"),
    delete("/api/queue/dead/{id}?id={other}"),
    get("/api/queue/processing", keep="taken=0.id"),
    post("/api/queue/processing/{id}/kill?id={taken}"),
    post("/api/import", {"kind": "tinyagi", "folder": "{installation}", "dryRun": True}),
    post(
        "/api/setup",
        {
            "workspace": {"path": "{workspace}"},
            "default_agent": "coder",
            "agents": {"coder": {"name": "Coder", "provider": "script", "model": ""}},
        },
    ),
]
SERVICE: list[Line] = [
    post("/v1/tenants", {"slug": "acme", "display_name": "Acme"}),
    get("/v1/tenants"),
    put("/v1/tenants/{slug}/rates?slug=acme", {"key": 120}),
    post("/v1/scopes", {"slug": "shop", "display_name": "The shop"}, keep="scope_id=data.id"),
    get("/v1/scopes"),
    get(S),
    line("PATCH", S, {"description": "Orders and their payment"}),
    *(post(f"{S}/{verb}") for verb in ("pause", "resume", "drain", "archive", "unarchive")),
    post(S + "/queues", {"slug": "urgent", "ordering": "priority"}),
    post(S + "/queues", {"slug": "news", "consumer_mode": "broadcast"}),
    post(
        S + "/queues",
        {"slug": "orders", "visibility_timeout_s": 60, "max_retries": 3},
        keep="queue_id=data.id",
    ),
    get(S + "/queues"),
    get(Q),
    line("PATCH", Q, {"max_depth": 10000}),
    *(post(f"{Q}/{verb}") for verb in ("pause", "resume", "drain", "archive", "unarchive")),
    post(Q + "/messages/batch", {"messages": [{"body": {"order": 1}}, {"body": {"order": 2}}]}),
    post(
        Q + "/messages",
        {
            "body": {"order": 7, "total": 120},
            "labels": {"tier": "basic"},
            "idempotency_key": "order-7",
            "correlation_id": "order-7",
        },
        keep="message_id=data.id",
    ),
    get(Q + "/messages", limit=2),
    get(S + "/messages", correlation_id="order-7"),
    get(M),
    post(
        Q + "/claim",
        {"batch_size": 3, "wait_s": 1, "worker": "w1"},
        keep="message_id=data.2.id token=data.2.claim_token",
    ),
    post(M + "/extend", {"claim_token": "{token}", "extend_s": 120}),
    post(M + "/release", {"claim_token": "{token}"}),
    post(Q + "/claim", {}, keep="message_id=data.0.id token=data.0.claim_token"),
    post(M + "/snooze", {"claim_token": "{token}", "seconds": 1, "reason": "the bank is closed"}),
    post(M + "/cancel", {"reason": "the customer called"}),
    post(Q + "/messages", {"body": {"order": 8}}),
    post(Q + "/claim", {}, keep="message_id=data.0.id token=data.0.claim_token"),
    post(M + "/complete", {"claim_token": "{token}", "result": {"paid": True}}),
    post(Q + "/messages", {"body": {"order": 8}}),
    post(Q + "/claim", {}, keep="message_id=data.0.id token=data.0.claim_token"),
    post(
        S + "/messages/complete",
        {
            "messages": [
                {"message_id": "{message_id}", "claim_token": "{token}", "result": {"paid": True}},
                {"message_id": "{message_id}", "claim_token": "9-lost"},
            ]
        },
    ),
    post(Q + "/messages", {"body": {"order": 9}}),
    post(Q + "/claim", {}, keep="message_id=data.0.id token=data.0.claim_token"),
    post(M + "/fail", {"claim_token": "{token}", "reason": "the card was refused", "retry": False}),
    post(M + "/replay"),
    post(Q + "/claim", {}, keep="message_id=data.0.id token=data.0.claim_token"),
    post(M + "/fail", {"claim_token": "{token}", "reason": "the card was refused", "retry": False}),
    post(M + "/discard"),
    post(S + "/dead-letters/replay"),
    post(S + "/schemas", {"name": "order", "schema": {"type": "object", "required": ["order"]}}),
    get(S + "/schemas"),
    get(S + "/schemas/{name}/{version}?name=order&version=1"),
    post(S + "/subscriptions", {"queue_id": "news", "name": "mailer"}, keep="subscription_id=data.id"),
    get(S + "/subscriptions"),
    get(S + "/subscriptions/{subscription_id}"),
    post(S + "/subscriptions/{subscription_id}/dedup", {"key": "order-7"}),
    put(
        S + "/schedules/{name}?name=nightly", {"queue_id": "news", "body": {"report": 1}, "cron": "0 3 * * *"}
    ),
    get(S + "/schedules"),
    get(S + "/schedules/{name}?name=nightly"),
    post(S + "/schedules/{name}/run?name=nightly"),
    delete(S + "/schedules/{name}?name=nightly"),
    post(S + "/routing-rules", RULE, keep="rule_id=data.id"),
    get(S + "/routing-rules"),
    post(S + "/routing-rules/test", {"rule": RULE, "message": {"labels": {"tier": "premium"}}}),
    get(S + "/routing-rules/{rule_id}"),
    line("PATCH", S + "/routing-rules/{rule_id}", {"enabled": False}),
    post(S + "/routing-rules/{rule_id}/reset"),
    post(
        S + "/hitl-patterns",
        {"name": "refund", "version": "1.0", "spec": {**SPEC, "title": "Refund {{amount}}?"}},
    ),
    get(S + "/hitl-patterns"),
    get(S + "/hitl-patterns/{pattern_id}?pattern_id=refund@1.0"),
    post(
        S + "/hitl-patterns/{pattern_id}/preview?pattern_id=refund@1.0", {"parameters": {"amount": "12 EUR"}}
    ),
    post(S + "/queues/urgent/messages", {"body": {"order": 7}, "hitl_spec": SPEC}, keep="message_id=data.id"),
    get(S + "/reviews"),
    get(M + "/review"),
    post(M + "/review", {"answer": {"decision": "approve"}}),
    post(S + "/streams", {"queue_id": "orders", "content_type": "text/plain"}, keep="stream_id=data.id"),
    post(
        S + "/streams/{stream_id}/chunks",
        {"chunks": [{"sequence": 0, "data": "Dear "}, {"sequence": 1, "data": "Ann"}]},
    ),
    get(S + "/streams/{stream_id}/chunks"),
    get(S + "/streams"),
    get(S + "/streams/{stream_id}"),
    post(S + "/streams/{stream_id}/close", {"total_chunks": 2}),
    post(S + "/streams", {}, keep="stream_id=data.id"),
    post(S + "/streams/{stream_id}/abort", {"reason": "the writer gave up"}),
    post(S + "/api-keys", {"name": "till", "permissions": ["publish"]}, keep="key_id=data.id"),
    get(S + "/api-keys"),
    post(S + "/api-keys/{key_id}/rotate", {"grace_s": 600}),
    delete(S + "/api-keys/{key_id}"),
    post("/v1/api-keys", {"name": "backend", "role": "tenant_admin"}, keep="key_id=data.id"),
    get("/v1/api-keys"),
    post("/v1/api-keys/{key_id}/rotate", {"grace_s": 600}),
    delete("/v1/api-keys/{key_id}"),
    post(S + "/grants", GRANT),
    get(S + "/grants"),
    post(Q + "/acl", GRANT),
    get(Q + "/acl"),
    post(S + "/trusts", {"target_scope_id": "default", "permissions": ["route"]}, keep="trust_id=data.id"),
    get(S + "/trusts"),
    line("PATCH", S + "/trusts/{trust_id}", {"enabled": False}),
    post("/v1/iam/custom-roles", {"name": "packers", "module_permissions": ["view", "consume"]}),
    get("/v1/iam/custom-roles"),
    put("/v1/users/{user_id}/module-permissions?user_id=ann", {"permissions": ["view"]}),
    post(
        S + "/gdpr-jobs",
        {"subject": {"field": "body.order", "value": 2}, "mode": "erase"},
        keep="job_id=data.id",
    ),
    get(S + "/gdpr-jobs"),
    get(S + "/gdpr-jobs/{job_id}"),
    post(S + "/gdpr-jobs/{job_id}/preview"),
    post(S + "/gdpr-jobs/{job_id}/execute"),
    post("/v1/webhooks", HOOK, keep="webhook_id=data.id"),
    get("/v1/webhooks"),
    get(W),
    put(W, {**HOOK, "max_retries": 10}),
    post(W + "/test"),
    get(W + "/deliveries"),
    get(S + "/audit", limit=2),
    get(S + "/audit/trace/{correlation_id}?correlation_id=order-7"),
    get("/v1/system-agents"),
]


# These need other programs, a lake, or close the house; their examples were kept by hand.
NOT_PLAYED = frozenset(
    {
        "GET /api/agents/{id}/skills/registry",
        "POST /api/agents/{id}/skills/install",
        "POST /api/services/channel/{id}/start",
        "POST /api/services/channel/{id}/stop",
        "POST /api/services/channel/{id}/restart",
        "POST /api/services/restart",
        "DELETE /api/sessions/{id}",
        "GET /api/plugins",
        "GET /api/pipeline/status",
        "POST /api/pipeline/run",
        "POST /api/pipeline/stop",
        "GET /api/insights/{topic}",
        "GET /api/traces",
        "GET /api/traces/{trace_id}",
        "GET /api/history/search",
    }
)


def _filled(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, str) and re.fullmatch(r"\{\w+\}", value):
        return known[value[1:-1]]
    if isinstance(value, dict):
        return {name: _filled(below, known) for name, below in value.items()}
    return [_filled(below, known) for below in value] if isinstance(value, list) else value


def _part(answer: Any, way: str) -> str:
    for step in way.split("."):
        answer = answer[int(step)] if step.isdecimal() else answer[step]
    return str(answer)


def _shown(value: Any, folder: Path) -> Any:
    """Short, and without what belongs to this machine or is a secret."""
    if isinstance(value, dict):
        return {name: "…" if name == "secret" else _shown(below, folder) for name, below in value.items()}
    if isinstance(value, list):
        return [_shown(below, folder) for below in value[:2]]
    if isinstance(value, str):
        text = value.replace(str(folder), "/home/ann")
        text = re.sub(r"http://127\.0\.0\.1:\d+(?=/login)", "http://127.0.0.1:3777", text)
        return re.sub(r"(?<=code=).*", "…", text)[:300]
    return value


async def _ask(house: House, each: Line, known: dict[str, str], folder: Path) -> tuple[str, dict[str, Any]]:
    method, path, body, query, keep = each
    template, _, given = path.partition("?")
    names = {
        **known,
        **{
            name: _filled(value, known)
            for name, _, value in (part.partition("=") for part in given.split("&") if part)
        },
    }
    place = re.sub(r"\{(\w+)\}", lambda found: names[found[1]], template)
    told = _filled(body, known)
    sent: dict[str, Any] = {} if body is None else {"json": told}
    answer: httpx2.Response = await house.http.request(method, place, params=query or None, **sent)
    assert answer.status_code < 300, f"{method} {place}: {answer.status_code} {answer.text}"
    known.update({name: _part(answer.json(), way) for name, way in keep.items()})
    kept: dict[str, Any] = {"status": answer.status_code}
    if body is not None:
        kept["request"] = _shown(told, folder)
    if answer.content:
        kept["answer"] = _shown(answer.json(), folder)
    template = re.sub(
        r"(?<=custom-providers/)local|(?<=queues/)urgent",
        lambda found: {"local": "{id}", "urgent": "{queue_id}"}[found[0]],
        template,
    )
    return f"{method} {template}", kept


async def _prepared(house: House, folder: Path) -> dict[str, str]:
    """What no request makes: dead letters, mail in somebody's hands, strangers, another program's office."""
    inbox = queues.inbox("coder")
    for number in range(3):
        mail = {"message": f"@coder look at part {number}", "sender": "Ann", "channel": "web"}
        await house.http.post("/api/message", json=mail)
    for message in await house.room.claim(inbox, limit=2, worker="coder"):
        await house.room.fail(message, "the provider has no key", retry=False)
    await house.room.claim(inbox, worker="coder")
    pairings = Pairings(house.room, house.deps.clock)
    for number in (7001, 7002):
        await pairings.admit("telegram", str(number), "Ben")
    for number in range(2):
        await leave_unconfirmed(house, f"The report is ready, part {number}.")
    chats = house.home / "chats" / "dev"
    chats.mkdir(parents=True)
    (chats / "2026-11-01_10-00-00.md").write_text("# Talk\n")
    return {"installation": str(installations.head(folder)), "workspace": str(folder / "work")}


async def played(folder: Path) -> dict[str, dict[str, Any]]:
    """The first answer to each kind of request."""
    found: dict[str, dict[str, Any]] = {}
    async with opened(folder, works=False) as house:
        known = await _prepared(house, folder)
        for each in (*OFFICE, *SERVICE):
            name, kept = await _ask(house, each, known, folder)
            found.setdefault(name, kept)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(played(Path(folder)))
    before = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    found |= {name: kept for name, kept in before.items() if name in NOT_PLAYED}
    lines = [
        f"{json.dumps(name)}: {json.dumps(kept, ensure_ascii=False)}" for name, kept in sorted(found.items())
    ]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    sys.stdout.write(f"{len(found)} examples\n")


if __name__ == "__main__":
    main()
