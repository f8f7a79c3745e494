"""Keeps the floor on the screen: events as they come, counts each second, and `q` to leave."""

import asyncio
import contextlib
import os
import sys
import termios
import time
import tty
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx2
from rich.live import Live

from postroom.errors import PostroomError
from postroom.terminal.cli.live_events import live_events
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.tui.floor import Floor
from postroom.terminal.tui.render import frame

if TYPE_CHECKING:
    from postroom.services.office import OfficeServices

NAMES = "message:incoming,agent:invoke,agent:progress,agent:response,agent:mention,message:done"
LOOK_S = 1.0
AGAIN_S = 3.0
QUIT = frozenset({b"q", b"Q", b"\x03", b"\x04", b"\x1b"})


async def look(at: CommandContext, office: "OfficeServices", floor: Floor) -> None:
    """The counts as they are now."""
    worse = floor.count(await office.workload.counts(at.caller))
    floor.online = at.server_runs
    if worse:
        for dead in await office.workload.dead(at.caller, 1):
            message = dead.message
            floor.failed(message.agent or "", message.failure_reason or "", time.time())


async def watch(at: CommandContext, office: "OfficeServices", floor: Floor) -> None:
    """Until somebody presses q."""
    console = at.out.console()
    with Live(console=console, screen=True, auto_refresh=False) as live, keys() as pressed:
        tasks = [asyncio.create_task(_hear(floor)), asyncio.create_task(_count(at, office, floor))]
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


async def _count(at: CommandContext, office: "OfficeServices", floor: Floor) -> None:
    while True:
        try:
            await look(at, office, floor)
        except PostroomError:
            floor.online = False
        await asyncio.sleep(LOOK_S)


async def _hear(floor: Floor) -> None:
    """When the server stops and starts again, nothing in between is missed."""
    last: str | None = None
    while True:
        with contextlib.suppress(httpx2.HTTPError, PostroomError):
            async for kind, data, number in live_events(NAMES, last):
                last = number or last
                floor.see(kind, data, time.time())
        await asyncio.sleep(AGAIN_S)


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
