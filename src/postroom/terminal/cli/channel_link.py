"""Linking a channel with a phone: the code that it scans, drawn in the terminal."""

import asyncio
import io

from postroom.terminal.cli.errors import Unclear
from postroom.terminal.cli.store_access import CommandContext

LINKED = "whatsapp_personal"
# A code is good for some twenty seconds, and there are several before WhatsApp gives up.
LINK_S = 180.0
LOOK_S = 1.0


def draw_code(text: str) -> str:
    import segno

    drawn = io.StringIO()
    segno.make(text, micro=False).terminal(out=drawn, compact=True)
    return drawn.getvalue()


async def show_code(at: CommandContext, channel: str) -> None:
    """Anew whenever it changes, until the channel receives, or says why it cannot."""
    if not at.server_runs:
        at.out.say(
            f"Its code is shown when Postroom runs: postroom start, then postroom channel setup {channel}"
        )
        return
    shown: str | None = None
    async with at.office() as office:
        for _ in range(round(LINK_S / LOOK_S)):
            status = (await office.system.status(at.caller)).channels.get(channel, {})
            if status.get("receiving"):
                at.out.say(f"{channel} is linked, and receives.")
                return
            code = status.get("pairing")
            if code and code != shown:
                shown = code
                at.out.say(f"{draw_code(code)}On the phone: Settings, Linked devices, Link a device.")
            elif not code and (problem := status.get("problem")):
                at.out.say(str(problem))
                return
            await asyncio.sleep(LOOK_S)
    at.out.say(f"Nobody has scanned it. Try again: postroom channel setup {channel}")


def check_alone(at: CommandContext, channel: str) -> None:
    """A linked device has one connection: a second one ends the first."""
    if channel == LINKED and at.server_runs:
        raise Unclear(f"the server that runs has the connection of {channel}; see: postroom channel status")
