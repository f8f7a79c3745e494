"""Makes a home as a version of Postroom leaves it behind, for tests that later versions open it.

It uses only what every version has, its commands and its HTTP API: python make.py POSTROOM HOME ARCHIVE, with
that version's program, a folder that is not there yet, and the file to write.
"""

import json
import os
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

AGENTS = ("lead", "coder", "reviewer")
SETTINGS = {
    "default_agent": "lead",
    "agents": {name: {"name": name.title(), "provider": "script", "model": ""} for name in AGENTS},
    "teams": {"dev": {"name": "Dev", "agents": list(AGENTS), "leader_agent": "lead"}},
    "monitoring": {"heartbeat_interval": 0},
    "guards": {"attempts": 2},
    "budgets": {"turn_usd": 1.0},
    "retention": {"completed_hours": 0.0001},
    "api": {"port": 0},
}
LOGIN = {"reply": "I ask both.", "hand_off": {"coder": "fix it", "reviewer": "read it"}}
SCRIPT = {
    "pace": 0.001,
    "rules": [
        {"agent": "coder", "match": "break", "fail": "auth"},
        {"agent": "lead", "match": "login", **LOGIN},
        {"reply": "done: $prompt"},
    ],
}
REVIEW = {
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
LEFT_OUT = ("logs", "run", "backups")


class OldHome:
    def __init__(self, program: str, path: Path) -> None:
        self.program = program
        self.path = path
        path.mkdir(parents=True, mode=0o700)
        (path / "settings.json").write_text(json.dumps(SETTINGS, indent=2))
        (path / "script.json").write_text(json.dumps(SCRIPT))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM")}
        self.env = {**inherited, "POSTROOM_HOME": str(path)}
        self.url = ""

    def cli(self, *words: str) -> str:
        command = [self.program, *words]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"postroom {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self) -> None:
        self.url = self.cli("start").rpartition(" on ")[2].split()[0]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        token = (self.path / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                told = answer.read()
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {path}: {error.code} {error.read().decode()}") from None
        found = json.loads(told) if told else {}
        return found["data"] if path.startswith("/v1") and "data" in found else found

    def post(self, path: str, body: Any = None) -> Any:
        return self.ask("POST", path, {} if body is None else body)


def write(home: OldHome, text: str, message_id: str) -> None:
    mail = {"message": text, "sender": "Ann", "channel": "web", "messageId": message_id}
    home.post("/api/message", mail)


def office(home: OldHome) -> None:
    """Conversations that were answered, failed and wait; tasks, schedules, budgets, sessions."""
    home.cli("send", "@coder hello", "--wait")
    home.cli("send", "@dev the login is broken", "--wait")
    write(home, "@coder break it", "m-1")
    home.post("/api/chatroom/dev", {"message": "We ship on Friday."})
    project = home.post("/api/projects", {"name": "Release", "description": "The next one"})["project"]["id"]
    task = {"title": "Write the notes", "assignee": "coder", "projectId": project}
    made = home.post("/api/tasks", task)["task"]["id"]
    home.post(f"/api/tasks/{made}/comments", {"content": "Half done.", "author": "Ann"})
    schedule = {"agentId": "coder", "message": "News?", "cron": "0 9 * * 1-5", "label": "news"}
    home.post("/api/schedules", schedule)
    while home.ask("GET", "/api/queue/status")["dead"] < 1:
        time.sleep(0.1)
    home.post("/api/guards/pause-all")
    write(home, "@reviewer wait", "m-2")


def work_queue(home: OldHome) -> None:
    """Messages in every state, and everything a tenant can write."""
    home.post("/v1/tenants", {"slug": "acme", "display_name": "Acme"})
    scope = "/v1/scopes/" + home.post("/v1/scopes", {"slug": "shop", "display_name": "The shop"})["id"]
    for queue in (
        {"slug": "orders", "max_retries": 2, "visibility_timeout_s": 3600},
        {"slug": "urgent", "ordering": "priority"},
        {"slug": "later", "ordering": "deadline", "max_depth": 100},
        {"slug": "news", "consumer_mode": "broadcast"},
    ):
        home.post(scope + "/queues", queue)
    orders = scope + "/queues/orders"
    home.post(scope + "/schemas", {"name": "order", "schema": {"type": "object", "required": ["order"]}})
    subscription = home.post(scope + "/subscriptions", {"queue_id": "news", "name": "mailer"})["id"]
    home.post(f"{scope}/subscriptions/{subscription}/dedup", {"key": "order-7"})
    home.post(scope + "/queues/news/messages", {"body": "first"})
    home.post(scope + "/routing-rules", RULE)

    def claim() -> tuple[str, dict[str, str]]:
        [held] = home.post(orders + "/claim", {"worker": "w1"})
        return f"{scope}/messages/{held['id']}", {"claim_token": held["claim_token"]}

    home.post(orders + "/messages/batch", {"messages": [{"body": {"order": n}} for n in range(5)]})
    message, token = claim()
    home.post(message + "/complete", {**token, "result": {"paid": True}})
    message, token = claim()
    home.post(message + "/fail", {**token, "reason": "the card was refused", "retry": False})
    message, token = claim()
    home.post(message + "/snooze", {**token, "seconds": 86400, "reason": "the bank is closed"})
    message, token = claim()
    home.post(message + "/cancel", {"reason": "the customer called"})
    claim()
    order = {"body": {"order": 10}, "idempotency_key": "order-10", "correlation_id": "o-10"}
    home.post(orders + "/messages", order)
    premium = {"body": {"order": 11}, "labels": {"tier": "premium"}, "idempotency_key": "order-11"}
    home.post(orders + "/messages", premium)
    home.post(orders + "/messages", {"body": {"order": 12}, "ttl_seconds": 1})
    home.post(scope + "/queues/later/messages", {"body": "by tomorrow", "delay_seconds": 86400})
    for answer in ("approve", None):
        review = home.post(scope + "/queues/urgent/messages", {"body": {"order": 7}, "hitl_spec": REVIEW})
        if answer:
            home.post(f"{scope}/messages/{review['id']}/review", {"answer": {"decision": answer}})
    stream = f"{scope}/streams/" + home.post(scope + "/streams", {"queue_id": "orders"})["id"]
    chunks = [{"sequence": 0, "data": "Dear "}, {"sequence": 1, "data": "Ann"}]
    home.post(stream + "/chunks", {"chunks": chunks})
    home.post(stream + "/close", {"total_chunks": 2})
    home.post(scope + "/api-keys", {"name": "till", "permissions": ["publish"]})
    home.post("/v1/api-keys", {"name": "backend", "role": "tenant_admin"})
    home.post("/v1/iam/custom-roles", {"name": "packers", "module_permissions": ["view", "consume"]})
    grant = {"principal_type": "user", "principal_id": "ann", "permissions": ["view", "publish"]}
    home.post(scope + "/grants", grant)
    home.post(orders + "/acl", grant)
    home.post(scope + "/trusts", {"target_scope_id": "default", "permissions": ["route"]})
    hook = {"url": "https://hooks.example.org/postroom", "events": ["scaiqueue.message.completed"]}
    home.post("/v1/webhooks", hook)
    job = home.post(scope + "/gdpr-jobs", {"subject": {"field": "body.order", "value": 4}, "mode": "erase"})
    home.post(f"{scope}/gdpr-jobs/{job['id']}/preview")
    time.sleep(1.5)
    home.cli("housekeepers", "--run", "expiry_enforcer")
    home.cli("housekeepers", "--run", "message_archiver")
    message, token = claim()
    home.post(message + "/complete", token)


def facts(home: OldHome) -> dict[str, Any]:
    """What this version says of the home; a later one must say the same."""
    listed = json.loads(home.cli("list", "--deliveries", "--limit", "1000", "--json"))["messages"]
    return {
        "head": json.loads(home.cli("ledger", "head", "--json")),
        "messages": {each["id"]: [each["queue"], each["state"], each["attempts"]] for each in listed},
        "in_lake": json.loads(home.cli("pipeline", "status", "--json"))["position"],
    }


def main(program: str, path: Path, archive: Path) -> None:
    home = OldHome(program, path)
    home.start()
    office(home)
    work_queue(home)
    home.cli("stop")
    home.cli("pipeline", "run")
    home.start()
    home.post("/api/guards/resume-all")
    home.cli("send", "@lead what is not in the lake yet?", "--wait")
    home.post("/api/guards/pause-all")
    write(home, "@coder wait", "m-3")
    time.sleep(3)  # it is held for whoever resumes
    home.cli("stop")
    print(home.cli("ledger", "verify"))
    (path / "facts.json").write_text(json.dumps(facts(home), indent=1))
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        packed.add(path, "home", filter=_packed)
    print(f"{archive}: {archive.stat().st_size} bytes")


def _packed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if any(member.name.startswith(f"home/{folder}") for folder in LEFT_OUT):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
