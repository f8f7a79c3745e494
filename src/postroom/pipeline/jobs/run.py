"""One run: bronze, silver, gold, memory, each from where it is to where the store is now.

It may be killed anywhere. Every table's position is part of its own commits, so the next run goes on with
what is missing, and nothing is done twice.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from postroom.clock import Clock
from postroom.errors import PostroomError, StoreCorrupt
from postroom.pipeline.errors import LakeDamaged, LakeFull, SparkFailed
from postroom.pipeline.jobs.bronze import take_in
from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.gold import sum_up
from postroom.pipeline.jobs.ledger_identity import check_same_ledger
from postroom.pipeline.jobs.memory import remember
from postroom.pipeline.jobs.parallel import together
from postroom.pipeline.jobs.progress import Told, reported, silent
from postroom.pipeline.jobs.run_log import RunLog, RunStep
from postroom.pipeline.jobs.session import sized
from postroom.pipeline.jobs.silver import converse, count_turns, live
from postroom.pipeline.lake.files import filesystem
from postroom.pipeline.lake.lake import Lake, Positions
from postroom.pipeline.lake.lease import hold_lease
from postroom.pipeline.lake.tables import ALL, BRONZE, LEDGER, MESSAGE_LIFE, QUARANTINE, RECORDS, RUNS
from postroom.pipeline.sources.sqlite import SqliteSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_EVENTS = 2_000_000
# How Python notices that there is nobody at the other end.
_JVM_GONE = ("Connection refused", "Answer from Java side is empty", "Error while sending or receiving")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`refresh` forgets silver and gold, or with `everything` bronze too; `at_once` bounds the memory.
    `since` is the moment from which a new lake takes events in. With `verify` every hash is checked."""

    refresh: bool = False
    everything: bool = False
    accept_gap: bool = False
    since: int | None = None
    verify: bool = True
    at_once: int = MOST_EVENTS


NORMAL = Options()


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    events: int
    position: int
    records: int
    seconds: float
    quarantined: int
    steps: list[RunStep]


def run(
    spark: "SparkSession",
    lake: Lake,
    source: SqliteSource,
    clock: Clock,
    options: Options = NORMAL,
    told: Told = silent,
) -> Summary:
    log = RunLog(lake, clock)
    begun = clock.now()
    with hold_lease(lake, clock) as lease:
        told = reported(lease, told)
        if options.refresh or options.everything:
            forget(lake, everything=options.everything)
        at = Context(spark, lake, source, clock, told, log)
        try:
            with _named(lake, source):
                events, target = _work(at, options)
        finally:
            with contextlib.suppress(PostroomError, OSError):
                log.save()
    return Summary(
        run_id=log.run_id,
        events=events,
        position=target.ledger,
        records=target.records,
        seconds=(clock.now() - begun) / 1e6,
        quarantined=sum(step.quarantined for step in log.steps),
        steps=log.steps,
    )


def _work(at: Context, options: Options) -> tuple[int, Positions]:
    snapshot = at.source.snapshot()
    if options.since is not None and at.lake.open(LEDGER) is None:
        start = Positions(at.source.seq_before(options.since), at.source.record_before(options.since))
        for table in BRONZE:
            at.lake.commit(table, [], start, base=Positions())
    check_same_ledger(at.lake, at.source, snapshot, accept_gap=options.accept_gap)
    first = at.lake.positions(LEDGER)
    after, records = max(first.ledger, 0), at.lake.positions(RECORDS).records
    target = Positions(snapshot.head, snapshot.records)
    known = min(after, at.lake.positions(MESSAGE_LIFE).ledger)
    with sized(at.spark, target.ledger - known, known):
        _steps(at, Positions(after, records), target, options)
    return snapshot.head - first.ledger, target


def _steps(at: Context, done: Positions, target: Positions, options: Options) -> None:
    after, records = done.ledger, done.records
    while True:
        step = Positions(
            min(target.ledger, after + options.at_once), min(target.records, records + options.at_once)
        )
        take_in(at, step, verify=options.verify)
        after, records = step.ledger, step.records
        if step == target:
            break
        live(at, step)
    with together(at.spark) as begin:
        begin(remember, at, target)
        lived, counted = begin(live, at, target), begin(count_turns, at, target)
        lived.result()
        counted.result()
        talked = begin(converse, at, target)
        begin(sum_up, at, target, talked)


def committed(lake: Lake) -> int:
    """Up to which event everything of the store is safe in bronze. Nothing after it may be pruned."""
    return min(lake.positions(table).ledger for table in BRONZE)


def forget(lake: Lake, *, everything: bool) -> None:
    """Drop what can be built anew. Bronze only when asked: the store may no longer have all of it."""
    kept = (RUNS,) if everything else (*BRONZE, RUNS, QUARANTINE)
    for table in ALL:
        if table in kept:
            continue
        if lake.folder is None:
            fs, path = filesystem(lake.uri(table))
            fs.delete_dir_contents(path, missing_dir_ok=True)
        else:
            shutil.rmtree(Path(lake.folder) / table.name, ignore_errors=True)


@contextlib.contextmanager
def _named(lake: Lake, source: SqliteSource) -> Iterator[None]:
    """What Spark says, in a line."""
    try:
        yield
    except (PostroomError, KeyboardInterrupt):
        raise
    except Exception as error:
        text = _story(error)
        if "disk image is malformed" in text:
            raise StoreCorrupt(path=source.path, problem="a page of it cannot be read") from error
        if "No space left" in text:
            raise LakeFull(lake=lake.location) from error
        if ".parquet" in text and any(
            word in text
            for word in (
                "is damaged",
                "is not a Parquet file",
                "CANNOT_READ",
                "FAILED_READ_FILE",
                "NOT_EXIST",
            )
        ):
            raise LakeDamaged(table=_table_in(text), problem=_line(text)) from error
        if any(word in text for word in _JVM_GONE):
            reason = "its Java process has ended (was it killed, or out of memory? see --memory)"
            raise SparkFailed(reason=reason) from error
        raise SparkFailed(reason=_line(text)) from error


def _story(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return repr(error)


def _line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line or "Exception" in line or "[" in line[:2]]
    return (telling or lines or ["unknown"])[0][:300]


def _table_in(text: str) -> str:
    return next((table.name for table in ALL if f"/{table.name}/" in text), "unknown")
