"""An hour of steady load on PostgreSQL while others ask its tables long questions: do dead rows and the time
of a claim stay what they were?

`scripts/bench steady` takes an hour; `--minutes 1` only shows that it runs.
"""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psycopg

import postroom
from benchmarks.databases import servers
from benchmarks.queueing import disk
from benchmarks.queueing.letter import QUEUE, room_options
from benchmarks.steadily import page, plot
from benchmarks.steadily.analysts import Analyst
from benchmarks.steadily.load import Load
from benchmarks.steadily.samples import Sample, sum_up, take
from postroom.kernel import ledger
from postroom.kernel.ledger import Head

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/reference/steady-load.md"
PICTURE = ROOT / "benchmarks/results/steady.png"
CONSUMERS = 2
QUERY_S = 120.0
WHOLE_MINUTES = 60.0
LEAST_MINUTES = 30.0

Analysts = Callable[[str, float], list[Analyst]]
"""Who asks, given the address and how long the part lasts."""


def _nobody(_: str, __: float) -> list[Analyst]:
    return []


def _taking_turns(url: str, seconds: float) -> list[Analyst]:
    """Three, so that at every moment some question is open, and none for longer than its own time."""
    each = min(QUERY_S, seconds / 3)
    return [Analyst(url, each, begin_after=each * number / 3) for number in range(3)]


def _one_for_all_time(url: str, seconds: float) -> list[Analyst]:
    return [Analyst(url, seconds)]


PARTS: tuple[tuple[str, float, Analysts], ...] = (
    ("nobody asks", 1 / 12, _nobody),
    ("three ask, two minutes each", 6 / 12, _taking_turns),
    ("one transaction stays open", 4 / 12, _one_for_all_time),
    ("nobody asks any more", 1 / 12, _nobody),
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench steady", description=__doc__)
    parser.add_argument("--minutes", type=float, default=WHOLE_MINUTES, help="how long it takes in all")
    parser.add_argument("--rate", type=int, default=200, help="messages a second")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="also keep what was seen, as JSON")
    return parser.parse_args()


def _measure(url: str, minutes: float, rate: int) -> list[Sample]:
    samples: list[Sample] = []
    every = min(10.0, minutes)
    load = Load(url, rate, CONSUMERS)
    with psycopg.connect(url, autocommit=True) as db:
        while db.execute("SELECT to_regclass('count_changes')").fetchall()[0][0] is None:
            time.sleep(0.2)
        start = time.monotonic()
        end = 0.0
        for name, share, begin in PARTS:
            end += minutes * 60 * share
            analysts = begin(url, minutes * 60 * share)
            try:
                while (now := time.monotonic() - start) < end:
                    time.sleep(min(every, max(0.0, end - now)))
                    load.check()
                    sample = take(db, time.monotonic() - start, name, load.take())
                    samples.append(sample)
                    _show(sample)
            finally:
                for analyst in analysts:
                    analyst.stop()
        rest = load.finish()
        samples.append(take(db, time.monotonic() - start, PARTS[-1][0], rest))
    return samples


def _show(sample: Sample) -> None:
    dead = sum(sample.dead.values())
    line = f"{sample.at_s / 60:5.1f} min  {sample.part:28}  {dead:9,} dead  {sample.pending:6,} waiting"
    print(line, file=sys.stderr, flush=True)


def _check(url: str, samples: list[Sample]) -> int:
    """Everything that was published was completed once, and the ledger is whole; how many these were."""
    published = sum(sample.published for sample in samples)
    completed = sum(sample.completed for sample in samples)
    with postroom.open_sync(url, **room_options(housekeeping=False)) as room:
        counts = room.counts(QUEUE)
        ledger.verify(room.events(0), Head(), room.head())
    # What was completed an hour ago is in the archive, and not counted.
    if published != completed or counts.open:
        raise AssertionError(f"{published} were published, {completed} completed, {counts} are there")
    return published


def main() -> int:
    chosen = arguments()
    folder = Path(tempfile.mkdtemp(prefix="postroom-bench-", dir=disk.real_disk()))
    folder.chmod(0o711)
    tempfile.tempdir = str(folder)
    try:
        with servers.start_postgres() as postgres, postgres.database() as url:
            samples = _measure(url, chosen.minutes, chosen.rate)
            if chosen.samples:
                chosen.samples.write_bytes(msgspec.json.encode(samples))
            messages = _check(url, samples)
            conditions = {
                "date": datetime.now(UTC).date().isoformat(),
                "cpus": os.cpu_count(),
                "file_system": disk.file_system(folder),
                "python": platform.python_version(),
                "postgres": postgres.version(),
                "rate": chosen.rate,
                "consumers": CONSUMERS,
                "messages": messages,
                "minutes": round(samples[-1].at_s / 60),
                "load": os.getloadavg()[2],
                "megabytes": samples[-1].megabytes,
            }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = page.render(sum_up(samples), conditions)
    # One that only shows that it runs must not replace figures.
    if chosen.minutes >= LEAST_MINUTES:
        PAGE.write_text(text, "utf-8")
        plot.draw(samples, f"{chosen.rate} messages a second on PostgreSQL, {conditions['date']}", PICTURE)
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
