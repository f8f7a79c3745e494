"""Recorded answers of the original, played again: the same status, the same shape, the same error texts.

What is different on purpose is listed here with its reason, and told to users in tinyagi-differences.md.
"""

import json
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.office import queues
from postroom.office.pairing import Pairings
from tests.api.house import House, opened

RECORDED = json.loads((Path(__file__).parents[1] / "golden" / "http.json").read_text())

# Our status, and why it is not theirs.
STATUS = {
    "root": (200, "the front page is there"),
    "agents.put.tmp": (422, "a prompt file must exist and may not lead out of the workspace"),
    "pairing.pending.delete": (200, "the original's route is shadowed by another and never works"),
}
# Shapes that differ: fields that are new or have another type.
SHAPE = {
    "settings.fresh": "a room begins with settings",
    "teams.fresh": "the office of this test has a team from the beginning",
    "pairing.pending.delete": "see above",
    "pairing.pending.delete.missing": "the right sentence is told",
    "root": "see above",
    "settings.put.channels": "a folder that follows from the workspace is not written into the settings",
    "settings.put.channels.back": "as before",
    "agents.put.tmp": "see above",
}
TEXTS = {
    "schedules.post.badcron": "another library reads the expressions",
    "pairing.pending.delete.missing": "the right sentence is told",
}


class Replay:
    def __init__(self, house: House, folder: Path) -> None:
        self.house = house
        self.folder = folder
        self.ids: dict[str, str] = {}

    def ours(self, text: str) -> str:
        text = text.replace("/home/u", str(self.folder))
        for theirs, ours in self.ids.items():
            text = text.replace(theirs, ours)
        return text

    def learn(self, theirs: Any, ours: Any) -> None:
        """Ids are made by chance; what the original called by one, we call by another."""
        if isinstance(theirs, dict) and isinstance(ours, dict):
            for key, value in theirs.items():
                if key == "id" and isinstance(value, str) and isinstance(ours.get("id"), str):
                    self.ids[value] = ours["id"]
                self.learn(value, ours.get(key))
        elif isinstance(theirs, list) and isinstance(ours, list):
            for one, other in zip(theirs, ours, strict=False):
                self.learn(one, other)

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        return await self.house.http.request(method, path, json=body)

    async def publish(self, queue: str, **fields: Any) -> str:
        command = c.Publish(queue=queue, messages=[NewMessage(**fields)])
        return (await self.house.room.run(command))[0].id

    async def number(self, path: str, **wanted: Any) -> int:
        found = (await self.ask("GET", path)).json()
        return next(row["id"] for row in found if all(row.get(k) == v for k, v in wanted.items()))


Step = Callable[[Replay], Awaitable[None]]


async def add_reviewer(on: Replay) -> None:
    body = {"name": "Reviewer", "provider": "anthropic", "model": "sonnet"}
    assert (await on.ask("PUT", "/api/agents/reviewer", body)).status_code == 200


async def fill_memory(on: Replay) -> None:
    folder = on.folder / "ws" / "lead" / "memory" / "people"
    folder.mkdir(parents=True)
    (folder / "ann.md").write_text("---\nname: Ann\nsummary: A colleague\n---\n")


async def change_prompt(on: Replay) -> None:
    done = await on.ask("PUT", "/api/agents/lead/system-prompt", {"content": "# Lead\nBe brief."})
    assert done.json() == {"ok": True}


async def add_provider(on: Replay) -> None:
    body = {
        "name": "Local",
        "harness": "claude",
        "base_url": "http://127.0.0.1:9",
        "api_key": "k",
        "model": "m1",
    }
    assert (await on.ask("PUT", "/api/custom-providers/loc", body)).json()["ok"] is True


async def answer_with_file(on: Replay) -> None:
    await on.house.room.run(queues.open_outbox("filetest"))
    await on.publish(
        "office/outbox/filetest",
        body={"text": "Here it is. \n\n- [coder]", "original": "@coder FILE please"},
        message_type="office.reply",
        channel="filetest",
        sender="Web",
        agent="coder",
        from_agent="coder",
        files=[str(on.folder / "golden" / "attach.txt")],
        correlation_id="filetest:m_file_1",
        hop=1,
    )


async def talk(on: Replay) -> None:
    await on.publish(
        "office/room/dev",
        body={"text": "build is green", "post": "build is green"},
        message_type="office.post",
        from_agent="coder",
        channel="chatroom",
    )


async def talk_more(on: Replay) -> None:
    assert (await on.ask("POST", "/api/chatroom/dev", {"message": "hello team"})).json()["ok"] is True


async def number_of_proactive(on: Replay) -> None:
    number = await on.number("/api/responses/pending?channel=telegram", message="proactive hi")
    on.ids["/api/responses/21/"] = f"/api/responses/{number}/"


async def finish_all(on: Replay) -> None:
    for agent in ("coder", "lead", "reviewer", "cust", "tinyagi"):
        for message in await on.house.room.claim(queues.inbox(agent), limit=None):
            await on.house.room.complete(message)


async def work_slowly(on: Replay) -> None:
    body = {"message": "SLOW", "agent": "coder", "channel": "web", "sender": "Web", "messageId": "m_slow_1"}
    assert (await on.ask("POST", "/api/message", body)).status_code == 200


async def take_both(on: Replay) -> None:
    assert len(await on.house.room.claim(queues.inbox("coder"), limit=None, lease=600)) == 2
    number = await on.number("/api/queue/processing", status="processing")
    on.ids["/api/queue/processing/19/"] = f"/api/queue/processing/{number}/"


async def drop_the_other(on: Replay) -> None:
    number = await on.number("/api/queue/processing", messageId="m_slow_2")
    assert (await on.ask("POST", f"/api/queue/processing/{number}/kill")).status_code == 200


async def bury(on: Replay) -> None:
    message = await on.publish(
        "office/inbox/coder",
        body={"text": "hello again", "via": "given"},
        message_type="office.mail",
        channel="web",
        sender="Web",
        agent="coder",
        correlation_id="web:m_dead_x",
    )
    await on.house.room.kill(message, "boom")


async def number_of_dead(on: Replay) -> None:
    number = await on.number("/api/queue/dead", failedReason="boom")
    on.ids["/api/queue/dead/21/"] = f"/api/queue/dead/{number}/"


async def add_project(on: Replay) -> None:
    assert (await on.ask("POST", "/api/projects", {"name": "Alpha", "description": "first"})).json()[
        "ok"
    ] is True


async def comment(on: Replay) -> None:
    path = on.ours("/api/tasks/task_swhoflm0/comments")
    assert (await on.ask("POST", path, {"content": "nice", "author": "Ann"})).json()["ok"] is True
    assert (await on.ask("POST", path, {"content": "anon"})).json()["ok"] is True


async def schedule(on: Replay) -> None:
    daily = {"agentId": "coder", "message": "Daily report", "cron": "0 9 * * *", "label": "daily"}
    once = {"agentId": "lead", "message": "Once", "runAt": "2030-01-01T09:00:00.000Z", "label": "once"}
    for body in (daily, once):
        assert (await on.ask("POST", "/api/schedules", body)).json()["ok"] is True


async def knock(on: Replay) -> None:
    pairings = Pairings(on.house.room, on.house.deps.clock)
    for channel, sender_id, sender, code in (
        ("telegram", "42", "Bob", "ABCD1234"),
        ("discord", "77", "Eve", "EVEE0000"),
    ):
        told = (await pairings.admit(channel, sender_id, sender)).reply or ""
        on.ids[code.lower()] = on.ids[code] = told.splitlines()[1].rpartition(" ")[2]


async def pair(on: Replay) -> None:
    number = (await on.ask("GET", "/api/pairing")).json()["pending"]
    code = next(entry["code"] for entry in number if entry["channel"] == "telegram")
    assert (await on.ask("POST", "/api/pairing/approve", {"code": code.lower()})).json()["ok"] is True


async def keep_chat(on: Replay) -> None:
    folder = on.house.home / "chats" / "dev"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "2026-01-01.md").write_text("# talk\n")


async def keep_log(on: Replay) -> None:
    on.house.logs.mkdir(exist_ok=True)
    line = {"time": "2026-11-15T20:54:08.153Z", "level": "INFO", "text": "ready \u001b[31m"}
    (on.house.logs / "postroom.log").write_text(f"{json.dumps(line)}\nnot JSON\n")


BEFORE: dict[str, Step] = {
    "agents.get": add_reviewer,
    "agent.memory.get.filled": fill_memory,
    "agent.system-prompt.get2": change_prompt,
    "customprov.get": add_provider,
    "responses.pending.file": answer_with_file,
    "chatroom.get": talk,
    "chatroom.get.limit": talk_more,
    "responses.ack": number_of_proactive,
    "queue.status": finish_all,
    "message.post.slow2": work_slowly,
    "queue.agents.busy": take_both,
    "queue.processing.after": drop_the_other,
    "queue.dead.seeded": bury,
    "queue.dead.retry": number_of_dead,
    "projects.get": add_project,
    "comments.get": comment,
    "schedules.post.duplabel": schedule,
    "pairing.get": knock,
    "pairing.delete": pair,
    "chats.get": keep_chat,
    "logs.get": keep_log,
}
# Needs agents that work, which the big replay has not; played again in a test of its own below.
AT_WORK = "agentmessages.one"


def differs(theirs: Any, ours: Any, at: str = "") -> str | None:
    """Where ours lacks what theirs has; more than theirs is no difference."""
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            return f"{at}: {ours!r} is no object"
        for key, value in theirs.items():
            if key not in ours:
                return f"{at}.{key} is missing"
            if found := differs(value, ours[key], f"{at}.{key}"):
                return found
        return None
    if isinstance(theirs, list):
        if not isinstance(ours, list):
            return f"{at}: {ours!r} is no list"
        if bool(theirs) != bool(ours):
            return f"{at}: {len(ours)} entries instead of {len(theirs)}"
        return differs(theirs[0], ours[0], f"{at}[0]") if theirs else None
    kinds = (bool, str, (int, float), type(None))
    if not any(isinstance(theirs, kind) and isinstance(ours, kind) for kind in kinds):
        return f"{at}: {ours!r} instead of {theirs!r}"
    return None


NPX = """#!/bin/sh
case "$3" in
find) echo "vercel-labs/agent-skills@seo-audit  1.2K installs"
      echo "└ https://skills.sh/vercel-labs/agent-skills/seo-audit" ;;
add) echo "Installed $4" ;;
esac
"""


async def test_the_original_and_we_answer_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "npx").write_text(NPX)
    (programs / "npx").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    api = {"origins": ["http://127.0.0.1:3000"]}
    problems: list[str] = []
    async with opened(tmp_path, works=False, api=api) as house:
        on = Replay(house, tmp_path)
        for sample in RECORDED:
            name, request, answer = sample["name"], sample["request"], sample["response"]
            if name == AT_WORK:
                continue
            if name in BEFORE:
                await BEFORE[name](on)
            body = json.loads(on.ours(json.dumps(request["body"]))) if "body" in request else None
            if name == "setup" and body:
                # The rest of what was set is kept, or nobody else could reach the office any more.
                body["api"] = api
            if name.startswith("settings.put") and body:
                body.pop("api", None)
            path = on.ours(request["path"])
            headers = dict(request.get("headers", {}))
            content = json.dumps(body) if body is not None else None
            got = await house.http.request(request["method"], path, content=content, headers=headers)
            wanted = STATUS.get(name, (answer["status"], ""))[0]
            if got.status_code != wanted:
                problems.append(f"{name}: {got.status_code} instead of {wanted}: {got.text[:300]}")
                continue
            if answer["json"] is None or name in SHAPE:
                continue
            ours = got.json()
            if found := differs(answer["json"], ours):
                problems.append(f"{name}{found}: {got.text[:300]}")
                continue
            on.learn(answer["json"], ours)
            error = answer["json"].get("error") if isinstance(answer["json"], dict) else None
            if error and name not in TEXTS and ours["error"] != on.ours(error):
                problems.append(f"{name}: {ours['error']!r} instead of {error!r}")
    assert not problems, "\n".join(problems)


async def test_what_was_said_to_and_by_an_agent_is_told_alike(tmp_path: Path) -> None:
    """Without what agents say to posts in a room: that is kept with the post and sent to nobody."""
    [sample] = [each for each in RECORDED if each["name"] == AT_WORK]
    theirs = [row for row in sample["response"]["json"] if row["channel"] != "chatroom"]
    asked, answered = theirs[1]["content"], theirs[0]["content"]
    rules = [{"agent": "coder", "match": "BROADCAST", "reply": answered}]
    async with opened(tmp_path, script={"rules": rules, "pace": 0.01}) as house:
        sent = {"message": asked, "sender": "Ann", "channel": "web", "messageId": theirs[1]["message_id"]}
        assert (await house.http.post("/api/message", json=sent)).status_code == 200
        ours = await house.until(sample["request"]["path"], lambda rows: len(rows) == len(theirs))
    assert differs(theirs, ours) is None
    made_anew = {"id", "created_at"}
    for one, other in zip(theirs, ours, strict=True):
        assert {k: v for k, v in other.items() if k not in made_anew} == {
            k: v for k, v in one.items() if k not in made_anew
        }
    assert [row["id"] for row in ours] == sorted((row["id"] for row in ours), reverse=True)


def test_every_difference_is_told_to_users() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "tinyagi-differences.md").read_text("utf-8")
    told = re.findall(r"`(\w[\w.-]+)`", page)
    for name in {*STATUS, *SHAPE, *TEXTS, AT_WORK}:
        assert name in told, f"{name} is not told on the page"
