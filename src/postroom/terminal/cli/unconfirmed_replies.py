"""Commands of `postroom channel` for replies that no platform confirmed."""

from typing import Annotated

from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import table
from postroom.terminal.cli.store_access import CommandContext

Ids = Annotated[list[str], argument("ID…", "As postroom channel unconfirmed lists them.")]


async def list_unconfirmed(
    at: CommandContext,
    channel: Annotated[str | None, option("NAME", "Only those of this channel.", "--channel")] = None,
) -> None:
    """List replies that may not have arrived, or were given up."""
    from postroom.services.office_documents import unconfirmed_document

    async with at.office() as office:
        found = [unconfirmed_document(each) for each in await office.unconfirmed.list_all(at.caller, channel)]
    rows = [
        (
            each["id"],
            each["since"],
            each["channel"],
            each["chat"],
            each["state"],
            each["reason"],
            each["text"],
        )
        for each in found
    ]
    head = ["id", "since", "channel", "chat", "state", "reason", "text"]
    at.out.show(found, table(head, rows) if rows else "Every reply was confirmed.")


async def resend(at: CommandContext, ids: Ids) -> None:
    """Send them again; what may have arrived says that it may be a duplicate."""
    async with at.office() as office:
        await office.unconfirmed.resend(at.caller, *ids)
    at.out.show({"ok": True, "resent": ids}, f"{len(ids)} on the way again.")


async def dismiss(at: CommandContext, ids: Ids) -> None:
    """Let them be: they are not sent, and not listed any more."""
    async with at.office() as office:
        await office.unconfirmed.dismiss(at.caller, *ids)
    at.out.show({"ok": True, "dismissed": ids}, f"{len(ids)} dismissed.")
