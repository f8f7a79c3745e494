"""The cases about throughput: many callers, the whole cycle, and a batch."""

import asyncio
import contextlib
import time
from enum import Enum, auto
from functools import partial
from pathlib import Path

import postroom
from benchmarks.queueing import measure
from benchmarks.queueing.bare import GroupLoop, Writer
from benchmarks.queueing.letter import BODY, QUEUE, decode, encode, room_options, room_url
from benchmarks.queueing.measure import Effort, Outcome, Ratio, checked
from benchmarks.queueing.pattern import Pattern
from benchmarks.queueing.peers import HUEY, PERSIST_QUEUE, Huey, PersistQueue

OURS = "postroom"
BARE = "bare apsw"
CALLERS = 64
RATE = "messages/s"


class Work(Enum):
    PUBLISH = auto()
    CYCLE = auto()


# Ours


def run_in_room(folder: Path, seconds: float, work: Work) -> float:
    steps = {Work.PUBLISH: _publish, Work.CYCLE: _cycle}

    async def measured() -> float:
        async with postroom.open(room_url(folder), **room_options()) as room:
            await room.create_queue(QUEUE)
            paced = await measure.by_tasks(partial(steps[work], room), CALLERS, seconds)
            counts = await room.counts(QUEUE)
            return checked(paced, counts.pending if work is Work.PUBLISH else counts.completed)

    return asyncio.run(measured())


async def _publish(room: postroom.Room) -> None:
    await room.publish(QUEUE, BODY)


async def _cycle(room: postroom.Room) -> None:
    await room.publish(QUEUE, BODY)
    [job] = await room.claim(QUEUE, limit=1)
    await room.complete(job)


def publish_batch(folder: Path, size: int) -> float:
    with postroom.open_sync(room_url(folder), **room_options()) as room:
        room.create_queue(QUEUE)
        room.publish_many(QUEUE, [BODY] * 10)
        started = time.perf_counter()
        room.publish_many(QUEUE, [BODY] * size)
        return size / (time.perf_counter() - started)


# Bare


def _in_group_loop(folder: Path, pattern: Pattern, seconds: float, work: Work) -> float:
    steps = {Work.PUBLISH: _bare_publish, Work.CYCLE: _bare_cycle}

    async def measured() -> measure.Paced:
        group = GroupLoop(writer)
        try:
            return await measure.by_tasks(partial(steps[work], group), CALLERS, seconds)
        finally:
            group.close()

    with contextlib.closing(Writer(folder, pattern)) as writer:
        paced = asyncio.run(measured())
        return checked(paced, writer.in_state("pending" if work is Work.PUBLISH else "completed"))


async def _bare_publish(group: GroupLoop) -> None:
    await group.ask("publish", encode(BODY))


async def _bare_cycle(group: GroupLoop) -> None:
    await group.ask("publish", encode(BODY))
    claimed = await group.ask("claim")
    decode(claimed[2])
    await group.ask("complete", claimed)


def _bare_batch(folder: Path, pattern: Pattern, size: int) -> float:
    with contextlib.closing(Writer(folder, pattern)) as writer:
        writer.publish_batch(10)
        started = time.perf_counter()
        writer.publish_batch(size)
        return size / (time.perf_counter() - started)


# Peers


def _by_peer(folder: Path, make: type[Huey] | type[PersistQueue], seconds: float, work: Work) -> float:
    with contextlib.closing(make(folder)) as peer:
        step = peer.publish if work is Work.PUBLISH else peer.cycle
        paced = measure.by_threads(step, CALLERS, seconds)
        left = peer.waiting()
        return checked(paced, left if work is Work.PUBLISH else paced.total - left)


# The cases


def many_publish(effort: Effort, pattern: Pattern, folder: Path) -> Outcome:
    targets = {HUEY: 8.0, PERSIST_QUEUE: 6.0, BARE: 0.5}
    return _many(f"publish, {CALLERS} callers", Work.PUBLISH, targets, effort, pattern, folder)


def many_cycles(effort: Effort, pattern: Pattern, folder: Path) -> Outcome:
    targets = {HUEY: 8.0, PERSIST_QUEUE: 8.0, BARE: 0.5}
    case = f"publish → claim → complete, {CALLERS} in flight"
    return _many(case, Work.CYCLE, targets, effort, pattern, folder)


def _many(
    case: str, work: Work, targets: dict[str, float], effort: Effort, pattern: Pattern, folder: Path
) -> Outcome:
    seconds = effort.seconds
    runs: dict[str, measure.Run] = {
        OURS: lambda place: run_in_room(place, seconds, work),
        HUEY: lambda place: _by_peer(place, Huey, seconds, work),
        PERSIST_QUEUE: lambda place: _by_peer(place, PersistQueue, seconds, work),
        BARE: lambda place: _in_group_loop(place, pattern, seconds, work),
    }
    return against(case, measure.alternate(case, RATE, runs, effort.rounds, folder), targets)


def batch_publish(effort: Effort, pattern: Pattern, folder: Path) -> Outcome:
    case, size = f"publish, {effort.batch:,} in one call", effort.batch
    runs: dict[str, measure.Run] = {
        OURS: lambda place: publish_batch(place, size),
        BARE: lambda place: _bare_batch(place, pattern, size),
    }
    return against(case, measure.alternate(case, RATE, runs, effort.rounds, folder), {BARE: 0.5})


def against(case: str, found: dict[str, measure.Figure], targets: dict[str, float]) -> Outcome:
    ratios = [
        Ratio(case=case, what=f"against {who}", value=measure.paired(found[OURS], found[who]), target=target)
        for who, target in targets.items()
    ]
    return Outcome(list(found.values()), ratios)
