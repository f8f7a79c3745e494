"""`python -m tests.faults.hostile`: what a hostile tenant and a broken disk can do, with figures.

Each attack is an async function that returns one line; it raises when the office did not hold.
"""

import argparse
import asyncio
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import postroom
from postroom import Room
from postroom.app.http_server import listen, serving
from postroom.errors import SchemaViolation, StoreMoved, StoreRolledBack, StoreVanished
from tests.app.test_http_protocol import HEAD, EchoApp, say
from tests.conformance.test_rules import add_rule, findings, route

LETTERS = "".join(random.Random(1).choices("ab", k=250_000))
REPEATED = "a[ab]{999}c"


async def fan_out(folder: Path) -> str:
    """200 rules that each copy a message of 200 KB into 20 queues, and meet each other's copies."""
    async with postroom.open(str(folder / "room.db"), housekeeping=False) as room:
        names = [f"copies{n}" for n in range(20)]
        for name in ("orders", *names):
            await room.create_queue(name)
        for n in range(200):
            action = {"type": "fan_out", "target_queue_ids": names, "keep": True}
            await add_rule(room, name=f"rule {n}", action=action)
        before, started = _memory_mb(), time.perf_counter()
        await room.publish("orders", "x" * 200_000)
        seconds = time.perf_counter() - started
        copies = sum([(await room.counts(name)).pending for name in names])
        log_mb = (folder / "room.db-wal").stat().st_size >> 20
        told = [why for _, why in await findings(room) if "of one command" in why]
        assert copies <= 1050, f"{copies} copies"
        assert told, "nobody was told"
    return f"{copies} copies, {log_mb} MB of log, {_memory_mb() - before} MB more memory, {seconds:.1f} s"


async def slow_expressions(folder: Path) -> str:
    """A pattern that repeats, eight times over, and 200 texts joined; others publish meanwhile."""
    async with postroom.open(str(folder / "room.db"), housekeeping=False) as room:
        for name in ("orders", "bulk", "other"):
            await room.create_queue(name)
        repeated = " || ".join([f'body.s.matches("{REPEATED}")'] * 8)
        joined = " + ".join(["body.s"] * 200) + ' == "x"'
        for expression in (repeated, joined):
            await add_rule(room, source_queue_id="orders", expression=expression, action=route("bulk"))
        worst, seconds = await _while_others_publish(room, room.publish("orders", {"s": LETTERS}))
        stopped = [kind for kind, _ in await findings(room)]
        assert stopped == ["rule.tripped"] * 2, stopped
    return f"both rules stopped after {seconds:.1f} s; others waited at most {worst * 1000:.0f} ms"


async def slow_schema(folder: Path) -> str:
    """A schema whose pattern repeats."""
    async with postroom.open(str(folder / "room.db"), housekeeping=False) as room:
        for name in ("orders", "other"):
            await room.create_queue(name)
        await room.register_schema("default", "coded", {"properties": {"s": {"pattern": REPEATED}}})
        await room.update_queue("orders", schema="coded")

        async def attack() -> None:
            try:
                await room.publish("orders", {"s": LETTERS})
            except SchemaViolation:
                return
            raise AssertionError("it was accepted")

        worst, seconds = await _while_others_publish(room, attack())
    return f"refused after {seconds:.1f} s; others waited at most {worst * 1000:.0f} ms"


async def endless_headers(folder: Path) -> str:
    """A header that never ends, and 300 requests that are half sent."""
    listener = listen("127.0.0.1", 0)
    app: Any = EchoApp()
    async with serving(app, listener):
        port = listener.getsockname()[1]
        before = _memory_mb()
        refused = await say(port, HEAD, b"x: ", *[b"y" * 100_000] * 100)
        assert refused == b"" or refused.startswith(b"HTTP/1.1 431")
        grown, started = _memory_mb() - before, time.perf_counter()
        answers = await asyncio.gather(*(say(port, HEAD) for _ in range(300)))
        assert all(answer.startswith(b"HTTP/1.1 408") for answer in answers)
        seconds = time.perf_counter() - started
    listener.close()
    return f"10 MB of header: {grown} MB more memory; 300 half-sent requests ended after {seconds:.0f} s"


async def moved_and_rolled_back(folder: Path) -> str:
    """The store is moved while it is open; put back from yesterday; taken away before a start."""
    path, copy = folder / "room.db", folder / "copy.db"

    async def publish(count: int) -> None:
        async with postroom.open(str(path), housekeeping=False) as room:
            await room.create_queue("jobs", exist_ok=True)
            for n in range(count):
                await room.publish("jobs", n)

    await publish(10)
    shutil.copyfile(path, copy)
    await publish(100)
    path.rename(folder / "newer.db")
    shutil.copyfile(copy, path)
    await _raises(StoreRolledBack, publish(1))
    path.unlink()
    await _raises(StoreVanished, publish(1))
    (folder / "newer.db").rename(path)
    async with postroom.open(str(path), housekeeping=False) as room:
        path.rename(folder / "away.db")
        started, accepted = time.perf_counter(), 0
        while time.perf_counter() - started < 60:
            try:
                await room.publish("jobs", accepted)
            except StoreMoved:
                break
            accepted += 1
        else:
            raise AssertionError("it went on")
        seconds = time.perf_counter() - started
        (folder / "away.db").rename(path)
    return f"put back and vanished: start refused; moved: stopped after {seconds:.1f} s"


async def _while_others_publish(room: Room, attack: Awaitable[Any]) -> tuple[float, float]:
    """The longest that a publish of another took meanwhile, and how long the attack took."""
    started, worst = time.perf_counter(), 0.0
    task = asyncio.ensure_future(attack)
    while not task.done():
        begun = time.perf_counter()
        await room.publish("other", 1)
        worst = max(worst, time.perf_counter() - begun)
        await asyncio.sleep(0.005)
    await task
    return worst, time.perf_counter() - started


async def _raises(kind: type[Exception], attempt: Awaitable[Any]) -> None:
    try:
        await attempt
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def _memory_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


ATTACKS: tuple[Callable[[Path], Coroutine[Any, Any, str]], ...] = (
    fan_out,
    slow_expressions,
    slow_schema,
    endless_headers,
    moved_and_rolled_back,
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="attacks to run; all of them when none is named")
    names = parser.parse_args().names
    failed = 0
    for attack in ATTACKS:
        if names and attack.__name__ not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = asyncio.run(attack(Path(folder)))
            except Exception as error:
                failed += 1
                said = f"FAILED: {type(error).__name__}: {error}"
        print(f"{attack.__name__:24} {said}", flush=True)
    return os.EX_SOFTWARE if failed else 0


if __name__ == "__main__":
    sys.exit(main())
