"""One size, measured: bronze against other exporters, a whole run, a run after 1 % more, the portal."""

import shutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.lakes.exporters import arrow_export, pandas_export
from benchmarks.lakes.figures import Found
from benchmarks.lakes.memory import Watch
from benchmarks.lakes.until import until
from postroom.clock import SystemClock
from postroom.pipeline.bronze.ingest import Ingest, slices
from postroom.pipeline.jobs.progress import RunProgress
from postroom.pipeline.jobs.results import read_results
from postroom.pipeline.jobs.run import NORMAL, Options, Summary, run
from postroom.pipeline.jobs.session import Where, session
from postroom.pipeline.jobs.workers import SparkWorkers
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.tables import LEDGER
from postroom.pipeline.serving import insights
from postroom.pipeline.serving.engine import engine
from postroom.pipeline.sources.sqlite import SqliteSource

CORES = "local[2]"
ROUNDS = 3
WARM_EVENTS = 240_000
PANDAS_EVENTS = 200_000
QUERIES = (
    "overview", "agents", "queues", "channels", "costs", "failures", "handoffs", "sla", "days", "hours"
)  # fmt: skip


def say(text: str) -> None:
    print(f"… {text}", file=sys.stderr, flush=True)


def measure(store: Path, events: int, folder: Path, *, exporters: bool, date: str) -> Found:
    begun = time.perf_counter()
    with Watch() as watch, session(Where(master=CORES)) as spark:
        start = time.perf_counter() - begun
        say(f"Spark stands after {start:.1f} s; warming it")
        for part in (WARM_EVENTS - 5000, WARM_EVENTS):
            _run(spark, folder / "warm", until(str(store), min(part, events)), by_spark=True)
        shutil.rmtree(folder / "warm")
        rates = _bronze(spark, folder, until(str(store), events), events) if exporters else {}
        say(f"a whole run of {events:,} events")
        lake = folder / "lake"
        before = watch.spend()
        seconds, done = _timed(lambda: _run(spark, lake, until(str(store), events), say_steps=True))
        spent, more = watch.spend() - before, events // 100
        say(f"a run after {more:,} more")
        before = watch.spend()
        again, _ = _timed(lambda: _run(spark, lake, until(str(store), events + more), say_steps=True))
        more_spent = watch.spend() - before
        queries, _ = ask_portal(Lake(str(lake)))
    shutil.rmtree(lake)
    return Found(
        events=events,
        date=date,
        others=round(watch.others, 3),
        start_s=round(start, 2),
        whole_s=round(seconds, 3),
        cpu_s=round(spent, 1),
        steps=add_steps(done),
        more_events=more,
        more_s=round(again, 3),
        more_cpu_s=round(more_spent, 2),
        queries_ms=queries,
        megabytes=round(watch.megabytes),
        **rates,
    )


def _run(
    spark: Any, lake: Path, source: SqliteSource, *, say_steps: bool = False, by_spark: bool = False
) -> Summary:
    """`by_spark` also what is so little that a run would do without it."""

    def told(progress: RunProgress) -> None:
        if say_steps and progress.finished:
            say(f"  {progress.step}: {progress.done:,} at {progress.rate:,.0f}/s")

    options = Options(few=0) if by_spark else NORMAL
    return run(spark, Lake(str(lake)), source, SystemClock(), options, told)


def add_steps(done: Summary) -> dict[str, float]:
    """The seconds of each step. Bronze and lives of a large run come in portions."""
    found: dict[str, float] = {}
    for step in done.steps:
        found[step.step] = round(found.get(step.step, 0.0) + step.seconds, 3)
    return found


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found


def _bronze(spark: Any, folder: Path, source: SqliteSource, events: int) -> dict[str, float]:
    """Ours and the others by turns, so that all meet the same machine."""

    def ours(target: Path, *, verify: bool) -> None:
        lake = Lake(str(target))
        uris = {LEDGER.name: lake.uri(LEDGER)}
        pieces = slices(LEDGER, 0, events)
        tasks = Ingest(pieces, source, uris, verify)
        done = read_results(SparkWorkers(spark).collect(tasks, len(pieces)))
        lake.commit(LEDGER, done.written[LEDGER.name], Positions(events, 0))

    ways: dict[str, Callable[[Path], None]] = {
        "checked": lambda target: ours(target, verify=True),
        "trusted": lambda target: ours(target, verify=False),
        "exporter": lambda target: arrow_export(source, events, target),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    target = folder / "target"
    for number in range(ROUNDS):
        for name, way in ways.items():
            seconds, _ = _timed(lambda way=way: way(target))
            taken[name].append(seconds)
            shutil.rmtree(target)
            say(f"bronze, {name}, round {number + 1} of {ROUNDS}: {events / seconds:,.0f} events/s")
    rates = {name: events / statistics.median(times) for name, times in taken.items()}
    part = min(events, PANDAS_EVENTS)
    seconds, _ = _timed(lambda: pandas_export(spark, source, part, target))
    shutil.rmtree(target)
    return {name: round(rate) for name, rate in {**rates, "pandas": part / seconds}.items()}


def ask_portal(lake: Lake) -> tuple[dict[str, float], dict[str, float]]:
    """Milliseconds of each question, and of processors. Each has an engine of its own, as the portal asks;
    opening that and finding the period count too."""
    found, spent = {}, {}
    for name in QUERIES:
        times, costs = [], []
        for _ in range(ROUNDS):
            begun, used = time.perf_counter(), time.process_time()
            with engine(lake) as light:
                getattr(insights, name)(light, insights.period(light))
            times.append(time.perf_counter() - begun)
            costs.append(time.process_time() - used)
        found[name] = round(1000 * statistics.median(times), 1)
        spent[name] = round(1000 * statistics.median(costs), 1)
    slowest, dearest = max(found.values()), max(spent.values())
    say(f"slowest question of the portal: {slowest:.0f} ms, {dearest:.0f} ms of processors")
    return found, spent
