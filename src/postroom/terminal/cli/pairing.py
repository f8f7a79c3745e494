"""`postroom pairing`: who may write."""

from typing import TYPE_CHECKING, Annotated, Any

from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.confirm import Yes, confirm
from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import TextTable, table
from postroom.terminal.cli.store_access import CommandContext

if TYPE_CHECKING:
    from postroom.office.pairing import SenderRole

app = group("pairing", "Pairing: who has asked to write, and who may.")

Channel = Annotated[str, argument("CHANNEL", "telegram, discord, whatsapp …")]


async def _pairings(at: CommandContext) -> dict[str, list[dict[str, Any]]]:
    from postroom.services.office_documents import pairing_document

    async with at.office() as office:
        return pairing_document(await office.pairing.list_all(at.caller))


@command(app, "list", store=False, aliases=["ls"], examples=["postroom pairing list"])
async def list_pairings(at: CommandContext) -> None:
    """List strangers who wait with a code, and people who may write."""
    found = await _pairings(at)
    at.out.show(found, _render(found["pending"], found["approved"]))


@command(app, "pending", store=False, examples=["postroom pairing pending"])
async def list_pending(at: CommandContext) -> None:
    """List strangers who wait with a code."""
    found = (await _pairings(at))["pending"]
    at.out.show(found, _render(found, []))


@command(app, "approved", store=False, examples=["postroom pairing approved"])
async def list_approved(at: CommandContext) -> None:
    """List people who may write."""
    found = (await _pairings(at))["approved"]
    at.out.show(found, _render([], found))


def _render(waiting: list[dict[str, Any]], paired: list[dict[str, Any]]) -> TextTable | str:
    rows = [("waits", one["channel"], one["sender"], one["senderId"], one["code"]) for one in waiting]
    rows += [(one["role"], one["channel"], one["sender"], one["senderId"], "") for one in paired]
    return table(["", "channel", "name", "id", "code"], rows) if rows else "Nobody."


@command(
    app,
    "approve",
    store=False,
    examples=["postroom pairing approve ABCD2345", "postroom pairing approve ABCD2345 --role guest"],
)
async def approve(
    at: CommandContext,
    code: Annotated[str, argument("CODE", "What the stranger was told.")],
    role: Annotated[
        str | None, option("ROLE", "owner, member or guest; the first of all is an owner.", "--role")
    ] = None,
) -> None:
    """Let the person with this code write."""
    given = None if role is None else _read_role(role)
    async with at.office() as office:
        paired = await office.pairing.approve(at.caller, code, given)
    at.out.show(paired.document(), f"{paired.sender} on {paired.channel} may write, as {paired.role}.")


@command(app, "role", store=False, examples=["postroom pairing role telegram 42 owner"])
async def change_role(
    at: CommandContext,
    channel: Channel,
    sender: Annotated[str, argument("ID", "The sender's id.")],
    role: Annotated[str, argument("ROLE", "owner, member or guest.")],
) -> None:
    """Say what a person may do: decide about everything, about their own, or only talk."""
    given = _read_role(role)
    async with at.office() as office:
        paired = await office.pairing.change_role(at.caller, channel, sender, given)
    at.out.show(paired.document(), f"{paired.sender} on {paired.channel} is {paired.role} now.")


def _read_role(role: str) -> "SenderRole":
    from postroom.office.pairing import SenderRole

    if role.lower() not in list(SenderRole):
        raise Unclear(f"{role} is no role; there are {', '.join(SenderRole)}")
    return SenderRole(role.lower())


@command(app, "dismiss", store=False, examples=["postroom pairing dismiss ABCD2345"])
async def dismiss(
    at: CommandContext, code: Annotated[str, argument("CODE", "What the stranger was told.")]
) -> None:
    """Forget a stranger who waits."""
    async with at.office() as office:
        await office.pairing.dismiss(at.caller, code)
    at.out.show({"ok": True}, f"{code} is forgotten.")


@command(app, "unpair", store=False, examples=["postroom pairing unpair telegram 42 --yes"])
async def unpair(
    at: CommandContext,
    channel: Channel,
    sender: Annotated[str, argument("ID", "The sender's id.")],
    yes: Yes = False,
) -> None:
    """The person may not write any more; the next message brings a new code."""
    if not yes:
        confirm(f"Shall {sender} on {channel} not write any more?")
    async with at.office() as office:
        await office.pairing.revoke(at.caller, channel, sender)
    at.out.show({"ok": True}, f"{sender} on {channel} may not write any more.")
