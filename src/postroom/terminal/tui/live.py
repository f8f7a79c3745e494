"""Keeps the floor on the screen: events as they come, counts each second, and `q` to leave."""

import asyncio
import contextlib
import json
import os
import sys
import termios
import time
import tty
from collections.abc import AsyncIterator, Iterator

import httpx2
from rich.live import Live

from postroom.terminal.cli.connection import Answered, OfficeClient, Unreachable
from postroom.terminal.cli.output import Output
from postroom.terminal.tui.floor import Floor
from postroom.terminal.tui.render import frame

NAMES = "message:incoming,agent:invoke,agent:progress,agent:response,agent:mention,message:done"
LOOK_S = 1.0
AGAIN_S = 3.0
QUIT = frozenset({b"q", b"Q", b"\x03", b"\x04", b"\x1b"})


async def look(office: OfficeClient, floor: Floor) -> None:
    """The counts as they are now."""
    worse = floor.count(await office.get("/api/queue/status"))
    floor.online = office.live
    if worse:
        for letter in (await office.get("/api/queue/dead"))[:1]:
            agent = letter["data"].get("agent") or ""
            floor.failed(agent, letter.get("failedReason") or "", time.time())


async def watch(office: OfficeClient, floor: Floor, out: Output) -> None:
    """Until somebody presses q."""
    console = out.console()
    with Live(console=console, screen=True, auto_refresh=False) as live, keys() as pressed:
        tasks = [asyncio.create_task(_hear(office, floor)), asyncio.create_task(_count(office, floor))]
        try:
            while not pressed.is_set():
                now = time.time()
                floor.pass_time(now)
                live.update(frame(floor, now, live=True), refresh=True)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.2):
                        await pressed.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _count(office: OfficeClient, floor: Floor) -> None:
    while True:
        try:
            await look(office, floor)
        except (Unreachable, Answered):
            floor.online = False
        await asyncio.sleep(LOOK_S)


async def _hear(office: OfficeClient, floor: Floor) -> None:
    """When the house closes and opens again, nothing in between is missed."""
    last: str | None = None
    while True:
        with contextlib.suppress(httpx2.HTTPError):
            async for kind, data, number in events(office, NAMES, last):
                last = number or last
                floor.see(kind, data, time.time())
        await asyncio.sleep(AGAIN_S)


async def events(
    office: OfficeClient, names: str, since: str | None = None
) -> AsyncIterator[tuple[str, dict[str, object], str | None]]:
    """What happens, each with the id to go on from."""
    wanted = {"type": names, **({"since": since} if since else {})}
    async with office.http.stream("GET", "/api/events/stream", params=wanted, timeout=None) as answer:
        answer.raise_for_status()
        async for event in httpx2.EventSource(answer):
            if event.event != "connected":
                yield event.event, json.loads(event.data), event.id or None


@contextlib.contextmanager
def keys() -> Iterator[asyncio.Event]:
    """Set when somebody wants to leave. The terminal is as before afterwards."""
    pressed = asyncio.Event()
    if not sys.stdin.isatty():
        yield pressed
        return
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    loop = asyncio.get_running_loop()

    def read() -> None:
        typed = os.read(handle, 16)
        if not typed or typed[:1] in QUIT:
            pressed.set()

    tty.setcbreak(handle)
    loop.add_reader(handle, read)
    try:
        yield pressed
    finally:
        loop.remove_reader(handle)
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
