"""`postroom backup --follow`: every commit is shipped within a second, and now and then tried out.

Its process only reads the store: it may be stopped and started at any time, and goes on with a whole copy.
"""

import asyncio
import contextlib
import signal
import tempfile
import time
from pathlib import Path

import apsw

from postroom.clock import Clock, iso, micros
from postroom.errors import PostroomError
from postroom.stores.sqlite.backup_stream import BackupStream, BackupTarget, restore_stream
from postroom.terminal.cli.backup_targets import open_target
from postroom.terminal.cli.readonly import ReadOnlyFile
from postroom.terminal.cli.store_access import CommandContext
from postroom.terminal.cli.verify import verify

EVERY_S = 0.5
BASE_EVERY_S = 24 * 3600.0
DAY_S = 24 * 3600.0


async def follow(at: CommandContext, place: str, *, keep_days: float, drill_hours: float) -> None:
    with at.file():
        pass
    target = open_target(place)
    stream = BackupStream(at.path.absolute(), target, at.clock)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopping.set)
    try:
        await asyncio.to_thread(stream.begin)
        at.out.note(f"{at.path} is copied to {place}; every commit follows. To end it: Ctrl-C")
        shipped = await _ship_until(stopping, at, stream, target, place, keep_days, drill_hours)
    finally:
        await asyncio.to_thread(stream.close)
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(name)
    at.out.show({"place": place, "commits": shipped}, f"{shipped:,} commits were shipped to {place}.")


async def _ship_until(
    stopping: asyncio.Event,
    at: CommandContext,
    stream: BackupStream,
    target: BackupTarget,
    place: str,
    keep_days: float,
    drill_hours: float,
) -> int:
    shipped = 0
    next_base = time.monotonic() + BASE_EVERY_S
    next_drill = time.monotonic() + drill_hours * 3600
    waiting = True
    while waiting:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), EVERY_S)
            waiting = False
        try:
            shipped += await asyncio.to_thread(stream.ship)
            if time.monotonic() >= next_base:
                next_base = time.monotonic() + BASE_EVERY_S
                await asyncio.to_thread(stream.begin)
                await asyncio.to_thread(stream.prune, at.clock.now() - micros(keep_days * DAY_S))
            if time.monotonic() >= next_drill:
                next_drill = time.monotonic() + drill_hours * 3600
                at.out.note(await asyncio.to_thread(drill, target, place, at.clock))
        except (PostroomError, OSError, apsw.Error) as error:
            # It is tried again: what was not shipped goes with the next whole copy.
            at.out.note(f"not shipped: {error}")
            await asyncio.to_thread(stream.close)
    return shipped


def drill(target: BackupTarget, place: str, clock: Clock) -> str:
    """Rebuild the newest state in a file of its own and verify all of it; raises when it is not sound."""
    with tempfile.TemporaryDirectory(prefix="postroom-drill-") as folder:
        file = Path(folder) / "store.db"
        moment = restore_stream(target, place, file)
        with contextlib.closing(ReadOnlyFile(file, immutable=True)) as copy:
            copy.check_pages()
            with copy.look() as reader:
                found = verify(reader)
    told = f"restore drill: {place} as of {iso(moment)} is sound"
    return f"{told}: {found.events:,} events, {found.messages or 0:,} messages"
