"""`postroom send`: write to an agent, and perhaps wait for what it says."""

import asyncio
import contextlib
import json
import re
import sys
import uuid
from typing import Annotated, Any

import typer

from postroom.errors import NotFound, PostroomError
from postroom.terminal.cli.command import command
from postroom.terminal.cli.connection import OfficeClient, connected
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.office import part
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.output import Output, clean
from postroom.terminal.cli.store_access import CommandContext, whoami

LOOK_S = 0.25
CHANNEL = "cli"
# Words after an @ that mean something of their own.
COMMANDS = ("default",)
# What one conversation cannot decide for itself.
HOW = {
    "budget": "See what is used up: postroom guards list. Give more: postroom guards raise",
    "paused": "Let everybody go on: postroom guards resume-all",
}


class NobodyThere(NotFound):
    """There is no agent or team "{name}". See: postroom agent list, postroom team list"""

    code = "NOBODY_THERE"


class NoAnswer(PostroomError):
    """No answer came within {seconds:g} seconds. The message {message_id} is kept and worked on."""

    code = "NO_ANSWER"
    exit_code = 8


class Unanswered(PostroomError):
    """{reason}"""

    code = "UNANSWERED"
    exit_code = 9


class Waits(PostroomError):
    """The conversation waits for you ({guard}); nothing is lost. {fix}"""

    code = "PAUSED"
    exit_code = 5

    def __init__(self, guard: str, conversation: str) -> None:
        go_on = f"postroom guards continue {conversation}"
        own = f"Let it go on: {go_on}. End it: postroom guards stop {conversation}"
        super().__init__(guard=guard, fix=HOW.get(guard, own))


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "send",
        panel=panel,
        store=False,
        examples=[
            'postroom send "@coder please look at the build" --wait',
            "postroom send --agent coder < question.txt",
            'postroom send "@dev plan the week" --wait --timeout 600 --json',
        ],
    )(send)


def send(
    at: CommandContext,
    text: Annotated[
        list[str] | None, argument("TEXT", "What to say; without it, what comes on stdin.")
    ] = None,
    agent: Annotated[str | None, option("NAME", "For whom, instead of an @ in the text.", "--agent")] = None,
    wait: Annotated[
        bool, flag("Stay until the answer is there, and show what goes on.", "--wait", "-w")
    ] = False,
    timeout: Annotated[float, option("SECONDS", "How long to wait. Default 1800.", "--timeout")] = 1800.0,
    message_id: Annotated[str | None, option("ID", "The same one is never taken twice.", "--id")] = None,
) -> None:
    """Write to an agent or a team. When this returns, the message is safe."""
    said = " ".join(text) if text else sys.stdin.read()
    if not said.strip():
        raise Unclear(
            'There is nothing to send: write it after the command, like postroom send "@coder hello"'
        )
    body: dict[str, Any] = {
        "message": said,
        "channel": CHANNEL,
        "sender": whoami(),
        "messageId": message_id or f"cli_{uuid.uuid4().hex[:12]}",
    }
    if agent:
        body["agent"] = agent
    asyncio.run(_send(at.out, body, wait=wait, timeout=timeout))


async def _send(out: Output, body: dict[str, Any], *, wait: bool, timeout: float) -> None:
    async with connected(works=wait) as office, contextlib.AsyncExitStack() as stack:
        if wait and office.live and not out.as_json:
            watching = asyncio.create_task(_watch(office, out, body["messageId"]))
            stack.push_async_callback(_ended, watching)
        await _addressed(office, out, body)
        sent = await office.post("/api/message", body)
        if sent.get("notice") and not sent["queued"]:
            out.show(sent, sent["notice"])
            return
        if not wait:
            later = "" if office.live else " Postroom does not run; an agent reads it when it starts."
            out.show(sent, f"Message enqueued: {sent['messageId']}.{later}")
            return
        found = await _answer(office, sent["messageId"], timeout)
    replies, failures = found["replies"], found["failures"]
    document = {"messageId": sent["messageId"], "replies": replies}
    if not replies and failures:
        raise Unanswered(reason=f"Nobody could answer: {'; '.join(failures)}")
    if found["paused"] is None and all(reply.get("failed") for reply in replies):
        out.show(document)
        raise Unanswered(reason=" ".join(reply["message"] for reply in replies))
    out.show(document, *(reply["message"] for reply in replies))
    if found["paused"] is not None:
        raise Waits(found["paused"], f"{CHANNEL}:{sent['messageId']}")


async def _addressed(office: OfficeClient, out: Output, body: dict[str, Any]) -> None:
    """Nobody of that name: with --agent it is a mistake; in the text it may be meant for somebody else."""
    prefix = re.match(r"\s*@([\w-]+)", body["message"])
    name = body.get("agent") or (prefix[1] if prefix else None)
    if name is None or name.lower() in COMMANDS:
        return
    try:
        agents, teams = await office.get("/api/agents"), await office.get("/api/teams")
    except PostroomError:
        # They may be there all the same: a house with broken settings still takes mail.
        return
    known = {
        str(word).lower()
        for part in (agents, teams)
        for key, one in part.items()
        for word in (key, one["name"])
    }
    if name.lower().removeprefix("@") in known:
        return
    if body.get("agent"):
        raise NobodyThere(name=name)
    out.note(
        f'there is no agent or team "{name}", so this goes to the default agent; see: postroom agent list'
    )


async def _answer(office: OfficeClient, message_id: str, timeout: float) -> dict[str, Any]:
    try:
        async with asyncio.timeout(timeout):
            while True:
                found = await office.get(f"/api/message/{part(message_id)}", channel=CHANNEL)
                if found["paused"] or (not found["open"] and (found["replies"] or found["failures"])):
                    break
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise NoAnswer(seconds=timeout, message_id=message_id) from None
    for reply in found["replies"]:
        await office.post(f"/api/responses/{reply['id']}/ack")
    return found


async def _watch(office: OfficeClient, out: Output, message_id: str) -> None:
    """What agents do meanwhile, on stderr, so that the answer stays alone on stdout."""
    import httpx2

    names = "agent:invoke,agent:progress,agent:mention"
    with contextlib.suppress(httpx2.TransportError):
        async with office.http.stream(
            "GET", "/api/events/stream", params={"type": names}, timeout=None
        ) as answer:
            async for event in httpx2.EventSource(answer):
                if event.event == "connected":
                    continue
                data = json.loads(event.data)
                if event.event == "agent:invoke":
                    out.note(f"@{data['agentId']} begins")
                elif event.event == "agent:mention":
                    out.note(f"@{data['fromAgent']} asks @{data['toAgent']}")
                elif data.get("messageId") == message_id:
                    out.note(f"@{data['agentId']}: {clean(' '.join(data['text'].split()))[:200]}")


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
