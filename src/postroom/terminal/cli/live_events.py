"""What happens in a server that runs, as it happens."""

import json
from collections.abc import AsyncIterator
from typing import Any

from postroom.terminal.cli.connection import server_client


async def live_events(
    names: str, since: str | None = None, *, url: str | None = None, token: str = ""
) -> AsyncIterator[tuple[str, dict[str, Any], str | None]]:
    """Events of these names (none: all), each with the id to go on from. Of the server of this home, or of
    another."""
    import httpx2

    wanted = {**({"type": names} if names else {}), **({"since": since} if since else {})}
    async with (
        server_client(patience_s=None, url=url, token=token) as http,
        http.stream("GET", "/api/events/stream", params=wanted) as answer,
    ):
        answer.raise_for_status()
        async for event in httpx2.EventSource(answer):
            if event.event != "connected":
                yield event.event, json.loads(event.data), event.id or None
