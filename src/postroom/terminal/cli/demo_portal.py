"""`postroom demo portal`: an office in the browser, with weeks behind it, a team at work, a question, a dead
letter. It is a home of its own in a temporary folder, played by the script provider, and gone afterwards.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2

from postroom.app.home import Home
from postroom.app.roles import ALL, Running
from postroom.clock import SystemClock
from postroom.terminal.cli.output import Output

DAYS, PEOPLE_A_DAY = 21, 25
AGENTS = {
    "front-desk": "Front desk",
    "coder": "Coder",
    "reviewer": "Reviewer",
    "writer": "Writer",
    "books": "Books",
    "ops": "Ops",
}
SETTINGS: dict[str, Any] = {
    "workspace": {"name": "Demo"},
    "agents": {name: {"name": word, "provider": "script", "model": ""} for name, word in AGENTS.items()},
    "teams": {
        "makers": {"name": "Makers", "agents": ["coder", "reviewer", "writer"], "leader_agent": "coder"}
    },
    "default_agent": "front-desk",
    "monitoring": {"heartbeat_interval": 0},
    "api": {"port": 0},
}
FIX = """I found it: the session **expired before it began**.

```python
if session.ends_at <= now:
    return None
```

Now it is checked once, and there is a test."""
SCRIPT: dict[str, Any] = {
    "rules": [
        {"match": "production", "fail": "refused", "seconds": 1},
        {
            "agent": "coder",
            "match": "login page",
            "reply": FIX,
            "hand_off": {"reviewer": "please review login.py"},
            "tools": ["Read", "Read", "Edit", "Bash"],
            "seconds": 6,
            "chunks": 8,
        },
        {
            "agent": "reviewer",
            "match": "review",
            "reply": "Looks right.",
            "tools": ["Read"],
            "seconds": 5,
            "chunks": 3,
        },
        {
            "agent": "writer",
            "match": "newsletter",
            "reply": "A first draft of the newsletter: three things are new this month. " * 12,
            "tools": ["Read", "WebSearch", "WebSearch"],
            "seconds": 900,
            "chunks": 120,
        },
        {
            "match": "#makers — @user",
            "reply": "[#makers: I have read it, and can begin at once.]",
            "seconds": 1.5,
        },
        {
            "reply": "I am **$agent** of the demo, played by a script. You wrote: $excerpt",
            "seconds": 1.5,
            "chunks": 4,
        },
    ]
}
SAID = (
    ("Ann", "@coder The login page is broken. Can you fix it before the release?"),
    ("Ben", "@writer Please write the newsletter of this month."),
    ("Cleo", "@ops Deploy it to production"),
)
TASKS = (
    ("Write the release notes", "todo", "writer"),
    ("Fix the login page", "in_progress", "coder"),
    ("Send the invoices of October", "backlog", ""),
    ("New price list", "done", ""),
)
QUESTION = {
    "title": "@books asks",
    "sections": [
        {"type": "context", "content": "The invoice of **Acme** is 1,240 €. Shall I send it today?"},
        {"type": "decision", "options": ["send", "wait"]},
        {"type": "input", "field": "note", "kind": "text", "required": False},
    ],
}


def serve(folder: Path, out: Output) -> None:
    """Until Ctrl-C."""
    from postroom.app import server_process
    from postroom.pipeline.generator.month import MonthPlan, generate

    home = Home(folder / "home")
    home.make()
    home.settings.replace({**SETTINGS, "workspace": {"name": "Demo", "path": str(folder / "work")}})
    (home.path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    with contextlib.suppress(ImportError):  # without the pipeline's packages the demo has no past
        out.say(f"Making {DAYS} days of history…")
        plan = MonthPlan(end=SystemClock().now() - 3_600_000_000, days=DAYS, per_day=PEOPLE_A_DAY)
        generate(home.path / "postroom.db", plan)
    logging.getLogger("postroom.office").setLevel(logging.ERROR)
    # Nothing of the owner's own office leads here, nor the other way round.
    own = {name: value for name, value in os.environ.items() if not name.startswith("POSTROOM_")}
    plan = server_process.ProcessPlan(
        home=home, roles=ALL, environment={**own, "POSTROOM_HOME": str(home.path)}, grace_s=1
    )

    def ready(found: Running) -> None:
        threading.Thread(target=_fill, args=(found.url or "", home, out), daemon=True).start()

    asyncio.run(server_process.keep(plan, ready))


def _fill(url: str, home: Home, out: Output) -> None:
    """By the API, as anybody would."""
    headers = {"authorization": f"Bearer {home.token.read_text('utf-8').strip()}"}
    with httpx2.Client(base_url=url, headers=headers, timeout=60) as http:

        def post(path: str, **body: Any) -> dict[str, Any]:
            return http.post(path, json=body).json()

        for who, text in SAID:
            post("/api/message", message=text, channel="web", sender=who, senderId=who.lower())
        for title, status, agent in TASKS:
            post(
                "/api/tasks",
                title=title,
                status=status,
                assignee=agent,
                assigneeType="agent" if agent else "",
            )
        post(
            "/api/schedules",
            agentId="front-desk",
            message="What is open today?",
            cron="30 8 * * 1-5",
            label="morning",
        )
        post("/v1/scopes/default/queues", slug="reviews")
        post("/v1/scopes/default/queues/reviews/messages", body={"invoice": 1240}, hitl_spec=QUESTION)
        link = post("/api/login-link")["url"]
        out.say("")
        out.say("The demo office is open in your browser at", style="bold")
        out.say(f"  {link}")
        out.say("A question and a dead letter wait for you; Insights fill within a minute or two.")
        out.say("Ctrl-C ends the demo and removes everything of it.", style="bold")
        sys.stdout.flush()
        post("/api/pipeline/run")
