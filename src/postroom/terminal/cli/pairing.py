"""`postroom pairing`: who may write."""

from typing import Annotated, Any

from rich.console import RenderableType

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.office import ask, part
from postroom.terminal.cli.options import argument
from postroom.terminal.cli.output import table
from postroom.terminal.cli.store_access import CommandContext

app = group("pairing", "Pairing: who has asked to write, and who may.")

Channel = Annotated[str, argument("CHANNEL", "telegram, discord, whatsapp …")]


@command(app, "list", store=False, aliases=["ls"], examples=["postroom pairing list"])
def list_pairings(at: CommandContext) -> None:
    """List strangers who wait with a code, and people who may write."""
    found = ask(lambda office: office.get("/api/pairing"))
    at.out.show(found, _listed(found["pending"], found["approved"]))


@command(app, "pending", store=False, examples=["postroom pairing pending"])
def pending(at: CommandContext) -> None:
    """List strangers who wait with a code."""
    found = ask(lambda office: office.get("/api/pairing"))["pending"]
    at.out.show(found, _listed(found, []))


@command(app, "approved", store=False, examples=["postroom pairing approved"])
def approved(at: CommandContext) -> None:
    """List people who may write."""
    found = ask(lambda office: office.get("/api/pairing"))["approved"]
    at.out.show(found, _listed([], found))


def _listed(waiting: list[dict[str, Any]], paired: list[dict[str, Any]]) -> RenderableType:
    rows = [("waits", one["channel"], one["sender"], one["senderId"], one["code"]) for one in waiting]
    rows += [("paired", one["channel"], one["sender"], one["senderId"], "") for one in paired]
    return table(["", "channel", "name", "id", "code"], rows) if rows else "Nobody."


@command(app, "approve", store=False, examples=["postroom pairing approve ABCD2345"])
def approve(
    at: CommandContext, code: Annotated[str, argument("CODE", "What the stranger was told.")]
) -> None:
    """Let the person with this code write."""
    entry = ask(lambda office: office.post("/api/pairing/approve", {"code": code}))["entry"]
    at.out.show(entry, f"{entry['sender']} on {entry['channel']} may write.")


@command(app, "dismiss", store=False, examples=["postroom pairing dismiss ABCD2345"])
def dismiss(
    at: CommandContext, code: Annotated[str, argument("CODE", "What the stranger was told.")]
) -> None:
    """Forget a stranger who waits."""
    at.out.show(
        ask(lambda office: office.delete(f"/api/pairing/pending/{part(code)}")), f"{code} is forgotten."
    )


@command(app, "unpair", store=False, examples=["postroom pairing unpair telegram 42 --yes"])
def unpair(
    at: CommandContext,
    channel: Channel,
    sender: Annotated[str, argument("ID", "The sender's id.")],
    yes: Yes = False,
) -> None:
    """The person may not write any more; the next message brings a new code."""
    if not yes:
        confirm(f"Shall {sender} on {channel} not write any more?")
    path = f"/api/pairing/{part(channel)}/{part(sender)}"
    at.out.show(ask(lambda office: office.delete(path)), f"{sender} on {channel} may not write any more.")
