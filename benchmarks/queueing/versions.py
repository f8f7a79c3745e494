"""This version against that of another commit, in one run: rounds alternate, each in a process of its own.

The measuring code is this one's for both; only the package differs, and of it only what is public is used.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import postroom
from benchmarks.queueing import measure
from benchmarks.queueing.cases import CALLERS, RATE, Work, publish_batch, run_in_room
from benchmarks.queueing.letter import BODY, QUEUE, room_options, room_url
from benchmarks.queueing.measure import Effort, Outcome, Ratio, checked

REPOSITORY = Path(__file__).parents[2]
NOW = "this version"
# A case that is as fast as before must not fail for the noise of one run.
NOT_SLOWER = 0.95
CYCLE = f"publish → claim → complete, {CALLERS} in flight"
FASTER = {CYCLE: 1.5}


def _one_by_one(folder: Path, effort: Effort, step: Callable[[postroom.SyncRoom], None]) -> float:
    with postroom.open_sync(room_url(folder), **room_options()) as room:
        room.create_queue(QUEUE)
        pace = measure.Pace(effort.seconds)
        step(room)
        while pace.tick():
            step(room)
        counts = room.counts(QUEUE)
        rate = pace.done / (pace.last - pace.start)
        return checked(measure.Paced(rate, pace.total), counts.pending + counts.completed)


def _publish(room: postroom.SyncRoom) -> None:
    room.publish(QUEUE, BODY)


def _publish_keyed(room: postroom.SyncRoom) -> None:
    room.publish(QUEUE, BODY, key=f"{time.perf_counter_ns()}")


def _cycle(room: postroom.SyncRoom) -> None:
    room.publish(QUEUE, BODY)
    [job] = room.claim(QUEUE, limit=1)
    room.complete(job)


CASES: dict[str, Callable[[Path, Effort], float]] = {
    f"publish, {CALLERS} callers": lambda folder, effort: run_in_room(folder, effort.seconds, Work.PUBLISH),
    CYCLE: lambda folder, effort: run_in_room(folder, effort.seconds, Work.CYCLE),
    "publish, one caller": lambda folder, effort: _one_by_one(folder, effort, _publish),
    "publish with a key, one caller": lambda folder, effort: _one_by_one(folder, effort, _publish_keyed),
    "publish → claim → complete, one caller": lambda folder, effort: _one_by_one(folder, effort, _cycle),
    "publish, many in one call": lambda folder, effort: publish_batch(folder, effort.batch),
}


def compare(revision: str, effort: Effort, folder: Path) -> Outcome:
    outcome = Outcome()
    with _checked_out(revision, folder / "other") as other:
        sources = {NOW: REPOSITORY / "src", revision: other / "src"}
        for number, case in enumerate(CASES):
            print(f"… {case}", file=sys.stderr, flush=True)
            runs: dict[str, measure.Run] = {
                who: lambda place, source=source, number=number: _measure(source, number, place, effort)
                for who, source in sources.items()
            }
            found = measure.alternate(case, RATE, runs, effort.rounds, folder)
            value = measure.paired(found[NOW], found[revision])
            target = FASTER.get(case, NOT_SLOWER)
            outcome.figures += found.values()
            outcome.ratios.append(Ratio(case=case, what=f"against {revision}", value=value, target=target))
    return outcome


@contextlib.contextmanager
def _checked_out(revision: str, folder: Path) -> Iterator[Path]:
    git = ["git", "-C", str(REPOSITORY), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(folder), revision], check=True)
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", str(folder)], check=True)


def _measure(source: Path, case: int, folder: Path, effort: Effort) -> float:
    """In a process that finds the package there before the one that is installed."""
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, str(case), str(folder), str(effort.seconds), str(effort.batch)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(source)},
        check=True,
        capture_output=True,
        text=True,
    )
    package, figure = done.stdout.split("\n")[:2]
    assert Path(package).is_relative_to(source), f"{package} was measured instead of {source}"
    return float(figure)


def main(case: str, folder: str, seconds: str, batch: str) -> None:
    effort = Effort(
        rounds=1, seconds=float(seconds), batch=int(batch), backlog=0, claims=0, wakes=0, bursts=0
    )
    measured = list(CASES.values())[int(case)](Path(folder), effort)
    print(postroom.__file__, measured, sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
