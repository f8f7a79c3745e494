"""The page about scale: what was measured, and by arithmetic from it what more events would take."""

import math
from typing import Any

from benchmarks.lakes.scale import Scaled
from postroom.pipeline.bronze.ingest import EVENTS_PER_FILE
from postroom.pipeline.jobs.run import MOST_EVENTS
from postroom.pipeline.jobs.workers import ROWS_PER_PIECE

LAYERS = ("bronze", "silver", "gold", "memory")
EXECUTOR_CORES = 4
NIGHT_H = 4
SHARED = 0.2
SIZES = (100_000_000, 1_000_000_000, 10_000_000_000)

HEAD = """# The pipeline at scale

Measured on {date} with `scripts/bench pipeline --scale N …`: {cpus} CPUs, {file_system}, Python
{python}. Events are made by Spark while it reads them, so no store has to hold them, and hashes are
not checked. *Others* is the share of the machine that other programs took meanwhile; where it is
large, compare processor seconds (*cpu*), which say what a run cost, and not seconds. *Question* is the
slowest question of the portal. How cost grows up to eight million events, on a machine with nothing
else to do, is in [the benchmark](pipeline-benchmark.md).

| events | whole run | cpu | 1 % more | cpu | memory | lake | question | cpu | others | steps |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""

WORKERS = """
On a standalone cluster, {events:,} events took {one:.0f} s with one worker of one core and
{two:.0f} s with two: {times:.2f} times as fast. Others took {others:.0%} of the machine meanwhile."""

ARITHMETIC = """
## On to billions, by arithmetic

Of the run of {events:,} events: {core_us:.0f} µs of one core and {bytes:.0f} bytes of lake an event
({layers}). Bronze has a file for every {per_file:,} events, silver one for each day and table, gold
one for each month and table. Spark cuts a step into a piece for every {per_piece:,} events, and
bronze and lives take in {at_once:,} at a time, so memory follows the size of a piece and not that
of the lake. Executors have {cores} cores here, and {night} hours.

It is one line drawn from one run: an order of magnitude, not a promise. Nothing was measured beyond the
sizes of this page and of [the benchmark](pipeline-benchmark.md).

| events | lake | bronze files | pieces | core hours from nothing | executors | 1 % more |
| --- | --- | --- | --- | --- | --- | --- |"""

LIMITS = """
What does not divide by executors: commits, which the driver makes table by table, and whose logs
list every file; the months of gold, which the driver writes; and the look at which conversations
are touched, which it holds in memory: some 300,000 at most, beyond which a run builds conversations
anew. So a lake of billions is filled day by day and not in one go, its days are put together when
they are over, and silver is let go by age (`pipeline.keep`) while gold stays.

What executors cost is the core hours times the price of one; the lake costs its bytes every month.
Where events come from many stores, each has a lake of its own, and a table over all of them is a
union of their files.
"""


def scale_page(runs: list[Scaled], conditions: dict[str, Any]) -> str:
    local = [each for each in runs if not each.workers]
    workers = [each for each in runs if each.workers]
    lines = [HEAD.format(**conditions), *map(_row, local)]
    if len(local) > 1:
        lines += ["", *_growth(local)]
    if len(workers) > 1:
        one, two = workers[0], workers[-1]
        told = {"one": one.whole_s, "two": two.whole_s, "times": one.whole_s / two.whole_s}
        lines.append(WORKERS.format(events=one.events, others=max(one.others, two.others), **told))
    return "\n".join([*lines, *_arithmetic(local[-1]), LIMITS]) if local else "\n".join(lines)


def _growth(runs: list[Scaled]) -> list[str]:
    first, last = runs[0], runs[-1]
    power = math.log(last.cpu_s / first.cpu_s) / math.log(last.events / first.events)
    name, steepest = find_bend(runs)
    told = [
        f"From {first.events:,} to {last.events:,} events, processor seconds grow with the power",
        f"{power:.2f} of the events. The step whose seconds grow fastest is `{name}`,",
        f"with the power {steepest:.2f}.",
    ]
    if max(first.others, last.others) > SHARED:
        told.append("Seconds of steps are those of a shared machine: a hint, not a measurement.")
    return told


def find_bend(runs: list[Scaled]) -> tuple[str, float]:
    """The step whose seconds grow fastest from the smallest run to the largest, and by which power."""
    first, last = runs[0], runs[-1]
    times = math.log(last.events / first.events)
    powers = {
        name: math.log(seconds / first.steps[name]) / times
        for name, seconds in last.steps.items()
        if first.steps.get(name, 0) > 1
    }
    return max(powers.items(), key=lambda each: each[1])


def _row(run: Scaled) -> str:
    cells = [
        f"{run.events:,}",
        f"{run.whole_s:,.0f} s",
        f"{run.cpu_s:,.0f} s",
        f"{run.more_s or 0:.0f} s",
        _figure(run.more_cpu_s, "s"),
        f"{run.megabytes:,.0f} MB",
        f"{sum(run.bytes.values()) / 1e6:,.0f} MB",
        f"{run.slowest_ms or 0:.0f} ms",
        _figure(run.slowest_cpu_ms, "ms"),
        f"{run.others:.0%}",
        ", ".join(f"{name} {seconds:.0f}" for name, seconds in run.steps.items()),
    ]
    return f"| {' | '.join(cells)} |"


def _figure(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:,.0f} {unit}"


def _arithmetic(run: Scaled) -> list[str]:
    """Per event as in the largest run; all that follows is a product or a quotient of these."""
    events, core_us = run.events + run.more_events, 1e6 * run.cpu_s / run.events
    sizes = {
        layer: sum(size for name, size in run.bytes.items() if name.startswith(layer)) / events
        for layer in LAYERS
    }
    size = sum(sizes.values())
    lines = [
        ARITHMETIC.format(
            events=run.events,
            core_us=core_us,
            bytes=size,
            layers=", ".join(f"{layer} {each:.1f}" for layer, each in sizes.items()),
            per_file=EVENTS_PER_FILE,
            per_piece=ROWS_PER_PIECE,
            at_once=MOST_EVENTS,
            cores=EXECUTOR_CORES,
            night=NIGHT_H,
        )
    ]
    for many in SIZES:
        hours = many * core_us / 1e6 / 3600
        cells = [
            f"{many:,}",
            f"{many * size / 1e9:,.0f} GB",
            f"{many // EVENTS_PER_FILE:,}",
            f"{many // ROWS_PER_PIECE:,}",
            f"{hours:,.0f}",
            f"{math.ceil(hours / (NIGHT_H * EXECUTOR_CORES)):,}",
            f"{hours / 100:,.1f} core hours",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
