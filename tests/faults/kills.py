"""kill -9 on real processes and files: what each was told before it died is what the next must find."""

import os
import random
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postroom.kernel import jsontext
from postroom.stores.sqlite import SqliteStore
from tests.faults.history import History

ROOT = Path(__file__).parents[2]
GENERATIONS = 10
"""Processes that die on one file before a new one is begun, so that histories stay readable."""
PATIENCE_S = 30.0


@dataclass
class Killed:
    kills: int = 0
    opening: int = 0
    operations: int = 0
    acknowledged: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lost = sum("LOST" in problem for problem in self.problems)
        text = (
            f"killed {self.kills} processes ({self.opening} while opening) in {self.operations} operations, "
        )
        text += f"{lost} of {self.acknowledged} acknowledged messages lost"
        return "\n".join([text, *self.problems[:20]])


@dataclass
class Ending:
    """When to kill: so long after a line, or after so many lines."""

    after_lines: int
    then_s: float

    @staticmethod
    def choose(rng: random.Random) -> "Ending":
        """A quarter die around the opening: before it, in it, or just after."""
        if rng.random() < 0.25:
            return Ending(rng.choice((0, 1, 1, 1, 2)), rng.random() * rng.choice((0.003, 0.03)))
        return Ending(rng.randrange(3, rng.choice((60, 600))), rng.random() * 0.003)


def run_child(
    store: str, seed: int, name: str, ending: Ending, redis: str | None = None
) -> list[dict[str, Any]]:
    """Start one, kill it, and return what it said."""
    command = [sys.executable, "-m", "tests.faults.child", store, str(seed), name]
    command += [redis] if redis else []
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        said = _listen(process.stdout.fileno(), ending)
        time.sleep(ending.then_s)
        ended = process.poll()
        process.kill()
        while chunk := os.read(process.stdout.fileno(), 1 << 16):
            said += chunk
        if ended is not None:
            error = process.stderr.read().decode()
            raise AssertionError(f"{name} ended by itself with {ended}:\n{error[-3000:]}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
    # A line cut short was never told.
    return [jsontext.decode(line) for line in said.split(b"\n")[:-1]]


def _listen(pipe: int, ending: Ending) -> bytes:
    said = b""
    until = time.monotonic() + PATIENCE_S
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while said.count(b"\n") < ending.after_lines and time.monotonic() < until:
            if selector.select(0.5):
                chunk = os.read(pipe, 1 << 16)
                if not chunk:
                    break
                said += chunk
    return said


def campaign(folder: Path, kills: int, seed: int, say: Callable[[str], None] | None = None) -> Killed:
    """So many processes, ten to a file; every file's history is checked along the way and at its end."""
    killed = Killed()
    rng = random.Random(seed)
    for file in range((kills + GENERATIONS - 1) // GENERATIONS):
        path = folder / f"room-{seed}-{file}.db"
        history = History()
        for generation in range(min(GENERATIONS, kills - file * GENERATIONS)):
            name = f"f{file}g{generation}"
            lines = run_child(str(path), seed, name, Ending.choose(rng))
            killed.kills += 1
            killed.opening += not any("open" in line for line in lines)
            history.log += [line for line in lines if "op" in line]
            # Not always: the next process must find its way through what the last one left, too.
            if path.exists() and (generation == GENERATIONS - 1 or rng.random() < 0.7):
                killed.problems += [f"--seed {seed}, {name}: {problem}" for problem in check(path, history)]
            if killed.problems:
                return killed
        sum_up(history, killed)
        if say is not None:
            say(f"{killed}")
        for left in folder.glob(f"{path.name}*"):
            left.unlink()
    return killed


def check(path: Path, history: History) -> list[str]:
    store = SqliteStore(path)
    try:
        return history.check(store)
    finally:
        store.close()


def sum_up(history: History, killed: Killed) -> None:
    operations = history.operations()
    killed.operations += len(operations)
    for operation in operations:
        if operation.outcome == "ok" and operation.said["verb"] == "Publish":
            killed.acknowledged += len(operation.value)
