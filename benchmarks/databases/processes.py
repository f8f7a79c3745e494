"""Runs one participant in several processes at once. All are open before the first begins."""

import asyncio
import multiprocessing
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

from benchmarks.databases.participant import OpenParticipant, Participant

Work = Callable[[Participant], Awaitable[int]]
START_S = 60
Answer = tuple[int, float, float]


def _run(opening: OpenParticipant, url: str, work: Work, pipe: Connection) -> None:
    async def serve() -> None:
        async with opening(url) as participant:
            pipe.send("open")
            await asyncio.to_thread(pipe.recv)
            started = time.monotonic()
            done = await work(participant)
            pipe.send((done, started, time.monotonic()))

    asyncio.run(serve())


def rate(opening: OpenParticipant, url: str, work: Work, processes: int, expected: int) -> float:
    """How many a second all of them did together; it must be as many as there were."""
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    started = []
    for _ in range(processes):
        ours, theirs = context.Pipe()
        process = context.Process(target=_run, args=(opening, url, work, theirs))
        process.start()
        theirs.close()
        pipes.append(ours)
        started.append(process)
    for pipe in pipes:
        assert pipe.recv() == "open"
    for pipe in pipes:
        pipe.send("go")
    answers: list[Answer] = [pipe.recv() for pipe in pipes]
    for process in started:
        process.join()
    total = sum(done for done, _, _ in answers)
    if total != expected:
        raise AssertionError(f"{expected} were published, {total} were done")
    return total / (max(end for _, _, end in answers) - min(begin for _, begin, _ in answers))
