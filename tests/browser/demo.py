"""An office with something of everything in it, for tests and pictures of the portal."""

from typing import Any

from postroom.kernel.model import NewMessage
from postroom.services import callers
from postroom.services.conversations import Draft
from tests.api.house import House

OWNER = callers.owner()
ANSWER = """The **release** is ready:

1. the login works
2. `make test` passes

```python
print('done')
```"""
SCRIPT: dict[str, Any] = {
    "pace": 0.01,
    "rules": [
        {"agent": "coder", "match": "production", "fail": "refused"},
        {
            "agent": "coder",
            "match": "long",
            "reply": "I begin with the tests of the old schema. ",
            "seconds": 360_000,
            "tools": ["Read", "Bash"],
            "chunks": 2,
        },
        {
            "agent": "lead",
            "match": "release",
            "reply": ANSWER,
            "hand_off": {"coder": "please write the notes"},
            "tools": ["Read", "Bash", "Bash"],
        },
        {"reply": "Noted, and thank you."},
    ],
}


async def fill(house: House) -> None:
    services = house.deps.services
    room = house.room
    await services.questions.ask(OWNER, "May I send the invoice of **1,240 €** to Acme?", ["send", "wait"])
    await services.questions.ask(OWNER, "Which name shall the new page have?", ["Pricing", "Plans"])
    await room.create_queue("orders", exist_ok=True, max_retries=0)
    for number in range(3):
        await room.publish("orders", {"order": number, "total": 12.5 * number})
    for claimed in await room.claim("default/orders", limit=2, worker="shop"):
        await room.fail(claimed, "The payment service answered 503.")
    await room.publish_many("orders", [NewMessage(body={"order": number}) for number in range(10, 40)])
    for who, to, text in (
        ("Ann", "lead", "Is the release ready?"),
        ("Ann", "coder", "Deploy it to production"),
        ("Ann", "reviewer", "What do you think of the new page?"),
        ("Bob", "coder", "Begin the long migration, please"),
    ):
        draft = Draft(text=f"@{to} {text}", channel="web", sender=who, sender_id=who.lower())
        await services.conversations.send(OWNER, draft)
    await services.tasks.add(
        OWNER, "Write the release notes", status="todo", assignee="coder", assignee_type="agent"
    )
    await services.tasks.add(
        OWNER, "Ask Acme for a quote", status="in_progress", assignee="lead", assignee_type="agent"
    )
    await services.tasks.add(
        OWNER, "New pricing page", status="backlog", description="With the **plans** of autumn."
    )
    await services.tasks.add(OWNER, "Fix the login", status="done")
    await services.schedules.add(
        OWNER,
        "lead",
        "Good morning: what is open today?",
        label="morning",
        cron="30 8 * * 1-5",
        zone="Europe/Berlin",
    )
