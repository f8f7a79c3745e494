"""`postroom inbox`: answers to what was sent from the shell without waiting; what was read is put away."""

from typing import Annotated, Any

import typer

from postroom.terminal.cli.command import command
from postroom.terminal.cli.options import flag, option
from postroom.terminal.cli.output import ago, clean
from postroom.terminal.cli.send import CHANNEL
from postroom.terminal.cli.store_access import CommandContext, whoami


def register(app: typer.Typer, panel: str) -> None:
    command(
        app,
        "inbox",
        panel=panel,
        store=False,
        examples=["postroom inbox", "postroom inbox --keep", "postroom inbox --json"],
    )(inbox)


async def inbox(
    at: CommandContext,
    keep: Annotated[bool, flag("Leave them there, to be read again.", "--keep")] = False,
    limit: Annotated[int, option("N", "At most so many, the oldest first. Default 50.", "--limit")] = 50,
) -> None:
    """Read the answers that wait for you in this shell; what is shown is put away."""
    from postroom.services.office_documents import reply_document

    async with at.office() as office:
        waiting = await office.conversations.pending_responses(at.caller, CHANNEL, limit)
        found = [each for each in waiting if each.message.sender in (whoami(), None)]
        replies = [reply_document(each) for each in found]
        times = [ago(each.message.created_at, at.clock.now()) for each in found]
        told = [_told(reply, when) for reply, when in zip(replies, times, strict=True)]
        at.out.show(replies, "\n\n".join(told) if told else "Nothing waits for you.")
        if found and not keep:
            # Only after it was shown: what could not be written to the screen is still there.
            await office.conversations.acknowledge(at.caller, [each.number for each in found])


def _told(reply: dict[str, Any], when: str) -> str:
    who = f"@{reply['agent']}" if reply.get("agent") else "the office"
    asked = clean(" ".join(str(reply.get("originalMessage") or "").split()))[:80]
    about = f' to "{asked}"' if asked else ""
    return f"{who}{about}, {when} ({reply['messageId']}):\n{clean(reply['message'], lines=True)}"
