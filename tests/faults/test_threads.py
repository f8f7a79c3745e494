"""Many threads at once on a disk that fails now and then: each is answered, and the answers are true."""

import logging
import random
import threading

import pytest

from postroom.clock import ManualClock
from postroom.kernel import commands as c
from tests.faults.callers import Caller
from tests.faults.crashes import World, examine, furnished
from tests.faults.disk import Disk, Point
from tests.faults.history import History
from tests.faults.vfs import full_error, io_error
from tests.faults.workload import PRUNED_QUEUES, Workload

THREADS = 6
STEPS = 40
PATIENCE_S = 60


@pytest.mark.parametrize("seed", range(8))
def test_answers_to_many_threads_are_true_though_the_disk_fails(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "postroom")
    disk, history, clock = Disk(furnished()), History(retention=PRUNED_QUEUES), ManualClock()
    # Seeds that prune the ledger would leave less to check.
    world = World(disk, seed * 6 + 1, history, clock)
    rng = random.Random(seed)

    def sometimes(point: Point) -> None:
        if rng.random() < 0.02:
            world.faults.append(point)
            raise full_error(point.kind) if rng.random() < 0.5 else io_error(point.kind)

    assert world.core is not None
    callers = [Caller(world.core, history, world.faults, f"t{number}-") for number in range(THREADS)]

    def use(number: int) -> None:
        workload = Workload(seed * 100 + number, callers[number], clock, f"t{number}-")
        for _ in range(STEPS):
            workload.step()

    disk.before = sometimes
    threads = [threading.Thread(target=use, args=(number,), daemon=True) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads), "somebody was never answered"

    disk.before = None
    world.caller.ask(c.AddRecord(kind="last", key="last", data={}))
    problems = [problem for caller in (*callers, world.caller) for problem in caller.problems]
    problems += history.check(world.store)
    image = disk.torn(rng)
    world.close()
    assert world.faults, "the disk never failed"
    assert len(history.operations()) > THREADS * STEPS / 2
    assert problems + examine(image, seed, history, None, set(), clock.now(), settled=True) == []
