"""How soon a message is in the lake while a watch stays with the store: one message at a time, one session.

A message counts as arrived in gold when every table of gold has come as far as its event.
"""

import statistics
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchmarks.lakes.cases import say
from benchmarks.lakes.memory import Watch
from postroom.clock import SystemClock
from postroom.pipeline.jobs.run import run
from postroom.pipeline.jobs.session import Where, lazy_session
from postroom.pipeline.jobs.watch import watch
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import GOLD, LEDGER, Table
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.runtime import open_sync

WARM = 3
QUEUE = "shop/orders"
"""One that the generated store has."""
LONGEST_S = 300
MOST_BRONZE_S, MOST_GOLD_S = 3.0, 10.0


class WatchFigures(msgspec.Struct, kw_only=True):
    """Seconds from the publishing of a message to its being in the lake; `cpu_s` is what one cost."""

    events: int
    messages: int
    date: str
    bronze_p50_s: float
    bronze_p95_s: float
    gold_p50_s: float
    gold_p95_s: float
    cpu_s: float
    others: float

    @property
    def met(self) -> bool:
        return self.bronze_p95_s < MOST_BRONZE_S and self.gold_p95_s < MOST_GOLD_S


def measure_watch(store: Path, messages: int, folder: Path, date: str) -> WatchFigures:
    """The session is that of `postroom pipeline watch` over a lake that is nearly up to date."""
    lake, source, stop = Lake(str(folder / "lake")), SqliteSource(str(store)), threading.Event()
    bronze: list[float] = []
    gold: list[float] = []
    with lazy_session(Where()) as spark, Watch() as seen:
        say("filling the lake")
        run(spark, lake, source, SystemClock())
        events = source.snapshot().head
        watcher = threading.Thread(target=watch, args=(spark, lake, source, SystemClock(), stop))
        with open_sync(f"sqlite:///{store}", actor="bench", housekeeping=False) as room:
            watcher.start()
            try:
                spent = 0.0
                for number in range(WARM + messages):
                    if number == WARM:
                        spent = seen.spend()
                    # Not always at the same moment between two looks.
                    time.sleep(number * 0.37 % 1)
                    begun = time.perf_counter()
                    room.publish(QUEUE, {"number": number})
                    head = source.snapshot().head
                    _wait_for(lake, (LEDGER,), head, watcher)
                    bronze.append(time.perf_counter() - begun)
                    _wait_for(lake, GOLD, head, watcher)
                    gold.append(time.perf_counter() - begun)
                    say(f"message {number + 1}: bronze {bronze[-1]:.1f} s, gold {gold[-1]:.1f} s")
                spent = seen.spend() - spent
            finally:
                stop.set()
                watcher.join()
    return WatchFigures(
        events=events,
        messages=messages,
        date=date,
        bronze_p50_s=_share(bronze[WARM:], 50),
        bronze_p95_s=_share(bronze[WARM:], 95),
        gold_p50_s=_share(gold[WARM:], 50),
        gold_p95_s=_share(gold[WARM:], 95),
        cpu_s=round(spent / messages, 2),
        others=round(seen.others, 3),
    )


def _wait_for(lake: Lake, tables: Iterable[Table], head: int, watcher: threading.Thread) -> None:
    end = time.monotonic() + LONGEST_S
    while any(lake.positions(table).ledger < head for table in tables):
        if time.monotonic() > end or not watcher.is_alive():
            raise RuntimeError("the message did not arrive in the lake")
        time.sleep(0.05)


def _share(seconds: list[float], share: int) -> float:
    return round(statistics.quantiles(seconds, n=100, method="inclusive")[share - 1], 2)


def tell_watch(found: WatchFigures) -> list[str]:
    """A part of the benchmark's page."""
    rows = (
        ("bronze", found.bronze_p50_s, found.bronze_p95_s, MOST_BRONZE_S),
        ("gold", found.gold_p50_s, found.gold_p95_s, MOST_GOLD_S),
    )
    return [
        "## Staying warm",
        "",
        f"Measured on {found.date} with `scripts/bench pipeline --watch {found.messages}`: a watch over a",
        f"lake of {found.events:,} events, {found.messages} messages one at a time, from publishing to",
        f"being in the lake. One cost {found.cpu_s} processor seconds. Other programs took",
        f"{found.others:.0%} of the machine meanwhile.",
        "",
        "| layer | half within | 95 % within | target | |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {layer} | {half} s | {most} s | {target:g} s | {'met' if most < target else '**missed**'} |"
            for layer, half, most, target in rows
        ),
    ]
