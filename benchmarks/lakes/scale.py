"""Runs over far more events than a store holds: how cost, memory and disk grow, and what a worker more adds.

The events are made by the executors that read them (`repeated`), so hashes are not checked here.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.lakes.cases import CORES, WARM_EVENTS, add_steps, ask_portal, say
from benchmarks.lakes.memory import Watch
from benchmarks.lakes.repeated import repeated
from postroom.clock import SystemClock
from postroom.pipeline.jobs.crew import FEW_ROWS
from postroom.pipeline.jobs.progress import RunProgress
from postroom.pipeline.jobs.run import Options, Summary, run
from postroom.pipeline.jobs.session import Where, session
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import ALL

ROOT = Path(__file__).parents[2]


class Scaled(msgspec.Struct, kw_only=True):
    """One run from nothing. `bytes` and `files` are those of the lake afterwards, by table."""

    events: int
    date: str
    workers: int = 0
    """Of a standalone cluster, with one core each; 0 is a run within one process, on two cores."""
    whole_s: float
    cpu_s: float
    """Processor seconds of the whole run; of the run alone, without warming and questions."""
    steps: dict[str, float]
    more_events: int = 0
    more_s: float | None = None
    more_cpu_s: float | None = None
    slowest_ms: float | None = None
    slowest_cpu_ms: float | None = None
    megabytes: float
    bytes: dict[str, int] = {}
    files: dict[str, int] = {}
    others: float


def measure_scale(base: Path, events: int, folder: Path, date: str) -> Scaled:
    """A whole run of so many events, one of 1 % more, and the questions of the portal."""
    place = folder / "lake"
    with Watch() as watch, session(Where(master=CORES)) as spark:
        _warm(spark, base, folder)
        say(f"a whole run of {events:,} events")
        before = watch.spend()
        seconds, done = _run(spark, base, place, events)
        spent = watch.spend() - before
        more = events // 100
        before = watch.spend()
        again, _ = _run(spark, base, place, events + more)
        more_spent = watch.spend() - before
        lake = Lake(str(place))
        took, cost = ask_portal(lake)
        held = {table.name: lake.files(table) for table in ALL}
    shutil.rmtree(place)
    return Scaled(
        events=events,
        date=date,
        whole_s=round(seconds, 2),
        cpu_s=round(spent, 1),
        steps=add_steps(done),
        more_events=more,
        more_s=round(again, 2),
        more_cpu_s=round(more_spent, 1),
        slowest_ms=max(took.values()),
        slowest_cpu_ms=max(cost.values()),
        megabytes=round(watch.megabytes),
        bytes={name: sum(file.size for file in files) for name, files in held.items()},
        files={name: len(files) for name, files in held.items()},
        others=round(watch.others, 3),
    )


def measure_workers(base: Path, events: int, folder: Path, date: str, workers: int) -> Scaled:
    """The same run on a standalone cluster of so many workers with a core each."""
    place = folder / "lake"
    with Watch() as watch, cluster(folder, workers) as master:
        settings = {"spark.executor.memory": "1g", "spark.cores.max": str(workers)}
        at = Where(
            master=master, driver_host="127.0.0.1", bind_address="127.0.0.1", settings=settings, partitions=4
        )
        with session(at) as spark:
            _warm(spark, base, folder)
            say(f"{events:,} events on {workers} of the workers")
            before = watch.spend()
            seconds, done = _run(spark, base, place, events)
            spent = watch.spend() - before
    shutil.rmtree(place)
    return Scaled(
        events=events,
        date=date,
        workers=workers,
        whole_s=round(seconds, 2),
        cpu_s=round(spent, 1),
        steps=add_steps(done),
        megabytes=round(watch.megabytes),
        others=round(watch.others, 3),
    )


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """A master and its workers on this machine; where the master is."""
    import pyspark

    home = os.path.dirname(pyspark.__file__)
    env = {
        **os.environ, "SPARK_HOME": home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
    }  # fmt: skip
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, ready: str, *words: str) -> str:
        log = folder / f"{len(running)}.log"
        with log.open("wb") as out:
            words = (f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name}", *words)
            running.append(subprocess.Popen(words, env=env, stdout=out, stderr=out, start_new_session=True))
        end = time.monotonic() + 120
        while time.monotonic() < end:
            found = re.search(ready, log.read_text("utf-8", "replace"))
            if found:
                return found[0]
            time.sleep(0.2)
        raise RuntimeError(f"{name} did not start: {log.read_text('utf-8', 'replace')[-500:]}")

    try:
        place = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = start("master.Master", r"spark://[\d.]+:\d+", *place)
        for _ in range(workers):
            words = (master, "-c", "1", "-m", "1g", "--webui-port", "0")
            start("worker.Worker", "registered with master", *words)
        yield master
    finally:
        for process in running:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _warm(spark: Any, base: Path, folder: Path) -> None:
    for part in (WARM_EVENTS - 5000, WARM_EVENTS):
        _run(spark, base, folder / "warm", part, aloud=False, few=0)
    shutil.rmtree(folder / "warm")


def _run(
    spark: Any, base: Path, place: Path, events: int, *, aloud: bool = True, few: int = FEW_ROWS
) -> tuple[float, Summary]:
    def told(progress: RunProgress) -> None:
        if aloud and progress.finished:
            say(f"  {progress.step}: {progress.done:,} at {progress.rate:,.0f}/s")

    begun = time.perf_counter()
    source = repeated(str(base), events)
    done = run(spark, Lake(str(place)), source, SystemClock(), Options(verify=False, few=few), told)
    return time.perf_counter() - begun, done
