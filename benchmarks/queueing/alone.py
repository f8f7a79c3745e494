"""The case of one caller at a time, where every message waits for a sync of its own."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import postroom
from benchmarks.queueing import measure
from benchmarks.queueing.bare import Writer
from benchmarks.queueing.cases import BARE, OURS, RATE, against
from benchmarks.queueing.letter import BODY, QUEUE, room_options, room_url
from benchmarks.queueing.measure import Effort, Figure, Outcome
from benchmarks.queueing.pattern import Pattern

CASE = "publish, one caller"
TARGET = 0.8


def one_publisher(effort: Effort, pattern: Pattern, folder: Path) -> Outcome:
    """The relaxed figures are for information, and come apart: they leave the disk work for the others."""
    outcome = against(CASE, _taking_turns(effort, pattern, folder, "full", ""), {BARE: TARGET})
    outcome.figures += _taking_turns(effort, pattern, folder, "relaxed", ", relaxed").values()
    return outcome


def _taking_turns(
    effort: Effort, pattern: Pattern, folder: Path, durability: str, suffix: str
) -> dict[str, Figure]:
    options = room_options(durability=durability)
    places = {name: folder / f"{name}-{durability}" for name in ("sync", "async", "bare")}
    for place in places.values():
        place.mkdir()
    with contextlib.ExitStack() as stack:
        room = stack.enter_context(postroom.open_sync(room_url(places["sync"]), **options))
        room.create_queue(QUEUE)
        writer = stack.enter_context(contextlib.closing(Writer(places["bare"], pattern, durability)))
        publish_async = stack.enter_context(_async_room(places["async"], options))
        steps: dict[str, Callable[[int], object]] = {
            OURS + suffix: lambda times: [room.publish(QUEUE, BODY) for _ in range(times)],
            BARE + suffix: lambda times: [writer.publish_alone() for _ in range(times)],
            f"{OURS}, async{suffix}": publish_async,
        }
        found = measure.bursts(CASE, RATE, steps, effort.bursts)
        published = (effort.bursts + 1) * measure.BURST
        assert room.counts(QUEUE).pending == writer.in_state("pending") == published
    return found


@contextlib.contextmanager
def _async_room(folder: Path, options: dict[str, Any]):
    """A function that publishes some messages one after the other on an event loop."""
    with asyncio.Runner() as runner:
        manager = postroom.open(room_url(folder), **options)
        room = runner.run(manager.__aenter__())
        runner.run(_create(room))
        try:
            yield lambda times: runner.run(_publish(room, times))
        finally:
            runner.run(manager.__aexit__(None, None, None))


async def _create(room: postroom.Room) -> None:
    await room.create_queue(QUEUE)


async def _publish(room: postroom.Room, times: int) -> None:
    for _ in range(times):
        await room.publish(QUEUE, BODY)
