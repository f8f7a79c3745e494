"""Asks a platform whether it takes a channel's settings, and sends a first message, without a server."""

import asyncio
import os
import uuid

from postroom.app.home import Home

FIRST = "This is Postroom. The channel works: what you write here reaches your agents."


async def check_channel(channel: str, to: str | None = None) -> str:
    """The platform's name; raises what is wrong."""
    from postroom.app.channel_runners import read_options
    from postroom.app.office_settings import load_settings
    from postroom.channels.errors import SendProblem
    from postroom.channels.kinds import find_kind
    from postroom.channels.model import Address, Piece, PieceKind
    from postroom.channels.styled_text import StyledText
    from postroom.services.system import ChannelRefused

    settings = await asyncio.to_thread(load_settings, Home.of(), os.environ)
    options = read_options(settings, channel, os.environ)
    kind = find_kind(str(options.get("platform") or channel))
    client = kind.build(channel, options)
    try:
        await client.open()
        if to is not None:
            piece = Piece(kind=PieceKind.TEXT, text=StyledText(FIRST))
            await client.send(Address(chat=to), piece, f"first/{uuid.uuid4()}", None)
    except SendProblem as problem:
        raise ChannelRefused(problem=f"The settings are right, but nothing was sent: {problem}") from problem
    finally:
        await client.close()
    return kind.label
