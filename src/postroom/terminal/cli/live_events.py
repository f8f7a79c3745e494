"""What happens in a server that runs, as it happens."""

import json
from collections.abc import AsyncIterator
from typing import Any

from postroom.terminal.cli.connection import server_client


async def live_events(
    names: str,
    since: str | None = None,
    *,
    until: str | None = None,
    url: str | None = None,
    token: str = "",
) -> AsyncIterator[tuple[str, dict[str, Any], str | None]]:
    """Events of these names (none: all), each with the id to go on from; with `until` only those up to there.
    Of the server of this home, or of another."""
    import httpx2

    given = {"type": names, "since": since, "until": until}
    wanted = {name: value for name, value in given.items() if value}
    async with (
        server_client(patience_s=None, url=url, token=token) as http,
        http.stream("GET", "/api/events/stream", params=wanted) as answer,
    ):
        answer.raise_for_status()
        async for event in httpx2.EventSource(answer):
            if event.event != "connected":
                yield event.event, json.loads(event.data), event.id or None


async def find_last_event(url: str, token: str) -> int:
    """The number of the newest event of a server."""
    import httpx2

    async with (
        server_client(url=url, token=token) as http,
        http.stream("GET", "/api/events/stream") as answer,
    ):
        answer.raise_for_status()
        async for event in httpx2.EventSource(answer):
            return int((event.id or "0").partition(".")[0])
    return 0
