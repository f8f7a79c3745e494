"""`postroom send`: write to an agent, and perhaps wait for what it says."""

import asyncio
import contextlib
import re
import uuid
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

import typer

from postroom.errors import NotFound, PostroomError
from postroom.terminal.cli.command import command
from postroom.terminal.cli.conversation_notes import ConversationNotes
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, flag, option
from postroom.terminal.cli.store_access import CommandContext, whoami
from postroom.terminal.cli.values import read_text

if TYPE_CHECKING:
    from postroom.services.conversations import ConversationStatus, Draft
    from postroom.services.office import OfficeServices

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


async def send(
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
    said = " ".join(text) if text else read_text("What comes on stdin", "send it as a file from a chat")
    if not said.strip():
        raise Unclear(
            'There is nothing to send: write it after the command, like postroom send "@coder hello"'
        )
    from postroom.services.conversations import Draft

    draft = Draft(
        text=said,
        channel=CHANNEL,
        sender=whoami(),
        agent=agent,
        message_id=message_id or f"cli_{uuid.uuid4().hex[:12]}",
    )
    await _send(at, draft, wait=wait, timeout=timeout)


async def _send(at: CommandContext, draft: "Draft", *, wait: bool, timeout: float) -> None:
    from postroom.services.office_documents import reply_document, sent_document

    out = at.out
    async with at.office(works=wait) as office:
        await _check_addressee(at, office, draft)
        sent = await office.conversations.send(at.caller, draft, repeat_ok=True)
        if sent.notice and not sent.queued:
            out.show(sent_document(sent), sent.notice)
            return
        if not wait:
            later = "" if at.server_runs else " Postroom does not run; an agent reads it when it starts."
            out.show(sent_document(sent), f"Message enqueued: {sent.message_id}.{later}")
            return
        following = None if out.as_json else ConversationNotes(out.note)
        async with _progress_of(at, following):
            found = await wait_for_answer(at, office, sent.message_id, timeout, following)
    replies = [reply_document(each) for each in found.replies]
    document = {"messageId": sent.message_id, "replies": replies}
    if not replies and found.failures:
        raise Unanswered(reason=f"Nobody could answer: {'; '.join(found.failures)}")
    if found.paused is None and all(reply.get("failed") for reply in replies):
        out.show(document)
        raise Unanswered(reason=" ".join(reply["message"] for reply in replies))
    out.show(document, *(reply["message"] for reply in replies))
    if found.paused is not None:
        raise Waits(found.paused, f"{CHANNEL}:{sent.message_id}")


async def _check_addressee(at: CommandContext, office: "OfficeServices", draft: "Draft") -> None:
    """Nobody of that name: with --agent it is a mistake; in the text it may be meant for somebody else."""
    prefix = re.match(r"\s*@([\w-]+)", draft.text)
    name = draft.agent or (prefix[1] if prefix else None)
    if name is None or name.lower() in COMMANDS:
        return
    if await office.conversations.check_addressee(at.caller, name):
        return
    if draft.agent:
        raise NobodyThere(name=name)
    at.out.note(
        f'there is no agent or team "{name}", so this goes to the default agent; see: postroom agent list'
    )


async def wait_for_answer(
    at: CommandContext,
    office: "OfficeServices",
    message_id: str,
    timeout: float,
    notes: ConversationNotes | None = None,
) -> "ConversationStatus":
    try:
        async with asyncio.timeout(timeout):
            while True:
                found = await office.conversations.status(at.caller, message_id, CHANNEL)
                if notes is not None:
                    notes.follow(found)
                if found.paused or (not found.open and (found.replies or found.failures)):
                    break
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise NoAnswer(seconds=timeout, message_id=message_id) from None
    await office.conversations.acknowledge(at.caller, [reply.number for reply in found.replies])
    return found


@contextlib.asynccontextmanager
async def _progress_of(at: CommandContext, notes: ConversationNotes | None) -> AsyncIterator[None]:
    """What agents say meanwhile, as far as a server that runs tells it."""
    if notes is None or not at.server_runs:
        yield
        return
    watching = asyncio.create_task(_watch(notes))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _watch(notes: ConversationNotes) -> None:
    import httpx2

    from postroom.terminal.cli.live_events import live_events

    with contextlib.suppress(httpx2.HTTPError):
        async for _, data, _ in live_events("agent:progress"):
            notes.hear(data["messageId"], data["agentId"], data["text"])
