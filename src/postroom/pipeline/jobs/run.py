"""One run: bronze, silver, gold, memory, each from where it is to where the store is now.

It may be killed anywhere. Every table's position is part of its own commits, so the next run goes on with
what is missing, and nothing is done twice.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from postroom.clock import Clock
from postroom.errors import PostroomError, StoreCorrupt
from postroom.pipeline.errors import LakeDamaged, LakeFull, SparkFailed
from postroom.pipeline.jobs.bronze import take_in
from postroom.pipeline.jobs.context import Context
from postroom.pipeline.jobs.conversations import converse
from postroom.pipeline.jobs.crew import FEW_ROWS, Crew
from postroom.pipeline.jobs.expect import check_lake, find_unchecked, findings, keep
from postroom.pipeline.jobs.gold import sum_up
from postroom.pipeline.jobs.ledger_identity import check_same_ledger
from postroom.pipeline.jobs.lineage import Lineage, tell_lineage
from postroom.pipeline.jobs.memory import remember
from postroom.pipeline.jobs.parallel import together
from postroom.pipeline.jobs.progress import Told, reported, silent
from postroom.pipeline.jobs.repair import MOST_REPAIRS, Repair, find_file, repair
from postroom.pipeline.jobs.run_log import RunLog, RunStep
from postroom.pipeline.jobs.silver import count_turns, live
from postroom.pipeline.jobs.upkeep import keep_up
from postroom.pipeline.jobs.verify import verify_lake
from postroom.pipeline.lake.lake import Lake, Positions, TableSnapshot
from postroom.pipeline.lake.lease import hold_lease
from postroom.pipeline.lake.reading import DAMAGED
from postroom.pipeline.lake.tables import (
    ALL,
    BRONZE,
    CHUNKS,
    GOLD,
    LEDGER,
    MEMORY,
    MESSAGE_LIFE,
    QUARANTINE,
    RECORDS,
    RUNS,
    SILVER,
    TURNS,
    Table,
)
from postroom.pipeline.sources.sqlite import SqliteSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from postroom.pipeline.jobs.session import LazySession

MOST_EVENTS = 2_000_000
# How Python notices that there is nobody at the other end.
_CLASS = re.compile(r"\[[A-Z][A-Z_.]{5,}\] ")
_JVM_GONE = ("Connection refused", "Answer from Java side is empty", "Error while sending or receiving")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`refresh` forgets silver and gold, or with `everything` bronze too; `at_once` bounds the memory.
    `since` is the moment from which a new lake takes events in. With `verify` every hash is checked; with
    `scrub` every file of the lake is read first, and what is damaged repaired. `upkeep` puts small files
    together and deletes what nobody needs; `keep` lets go of rows beyond an age in seconds, by table.
    `lineage` is where OpenLineage events go: an address, a file, or `env`; nowhere when it is empty. A step
    over `few` rows at most is carried out without Spark."""

    refresh: bool = False
    everything: bool = False
    accept_gap: bool = False
    since: int | None = None
    verify: bool = True
    scrub: bool = False
    at_once: int = MOST_EVENTS
    upkeep: bool = True
    keep: dict[str, float] = {}
    lineage: str = ""
    few: int = FEW_ROWS


NORMAL = Options()


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    events: int
    position: int
    records: int
    seconds: float
    quarantined: int
    steps: list[RunStep]
    repaired: list[str] = []
    broken: list[str] = []
    """Expectations that what was written does not keep, as sentences."""
    notices: list[str] = []
    """What else somebody should know of, though the run is whole."""


def run(
    spark: "SparkSession | LazySession",
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
        at = Context(Crew(spark, options.few), lake, source, clock, told, log, _built_anew(options))
        if options.everything:
            _empty(lake, QUARANTINE)
        repairs: list[Repair] = []
        try:
            with tell_lineage(
                options.lineage, "pipeline.run", lake, source.path, log, clock, at.written
            ) as lineage:
                if options.scrub:
                    at = _scrub(at, repairs)
                stood = _standing(lake)
                events, target = _work_through(at, options, repairs)
                broken = check_written(at, target, stood)
                if options.upkeep:
                    keep_up(lake, clock, log, options.keep)
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
        repaired=[each.sentence for each in repairs],
        broken=broken,
        notices=notices_of(lineage),
    )


def _standing(lake: Lake) -> Positions:
    """Where bronze is. A log that cannot be read is the business of the steps, which repair it."""
    try:
        return lake.positions(LEDGER)
    except LakeDamaged:
        return Positions()


def notices_of(lineage: Lineage | None) -> list[str]:
    return [lineage.problem] if lineage is not None and lineage.problem else []


def check_written(at: Context, target: Positions, stood: Positions | None = None) -> list[str]:
    """What was written against what is expected of it. What breaks it is set aside and told; all stays.

    `stood` is where the lake was before: what a run wrote that ended too early to check it is checked too.
    """
    if not any(at.written.values()):
        return []
    with at.log.step("expectations") as step:
        try:
            changed = find_unchecked(at.lake, at.written, stood or Positions())
            results = check_lake(at.lake, changed, target)
        except PostroomError as error:
            step.status, step.problem = "failed", str(error)
            return [f"The expectations could not be checked: {error} Look at it: postroom pipeline verify"]
        at.log.tell_checked(results)
        broken = [each for each in results if each.broken]
        step.rows_in, step.quarantined = len(results), sum(each.broken for each in broken)
        step.status = "broken" if broken else "ok"
        step.problem = broken[0].sentence if broken else None
        at.quarantine(findings(broken))
        keep(at.lake, results, at.log.run_id, at.clock, target if stood is not None else None)
    return [each.sentence for each in broken]


def nothing_to_do(lake: Lake, source: SqliteSource, options: Options) -> Summary | None:
    """What a run would tell that finds nothing new; None when there is work. Needs no Spark, writes
    nothing."""
    if options.refresh or options.everything or options.scrub:
        return None
    snapshot = source.snapshot()
    target = Positions(snapshot.head, snapshot.records)
    if not all(_is_current(lake.snapshot(table), target) for table in (*BRONZE, *SILVER, *GOLD, *MEMORY)):
        return None
    check_same_ledger(lake, source, snapshot, target.ledger, accept_gap=options.accept_gap)
    return Summary(
        run_id="", events=0, position=target.ledger, records=target.records, seconds=0.0, quarantined=0,
        steps=[],
    )  # fmt: skip


def _is_current(found: TableSnapshot, target: Positions) -> bool:
    if found.outgrown:
        return False
    takes = {MESSAGE_LIFE.name: Positions(target.ledger), CHUNKS.name: Positions(target.ledger)}
    takes[TURNS.name] = Positions(0, target.records)
    return found.positions.covers(takes.get(found.table.name, target))


def _work_through(at: Context, options: Options, repairs: list[Repair]) -> tuple[int, Positions]:
    """Until it is done: whatever damage is met on the way is repaired, and then the work goes on."""
    while True:
        try:
            with explained(at.lake, at.source):
                return _work(at, options)
        except LakeDamaged as damage:
            if len(repairs) >= MOST_REPAIRS:
                raise
            at = _repair(at, damage, repairs)


def _scrub(at: Context, repairs: list[Repair]) -> Context:
    with at.log.step("verify") as step:
        damages = verify_lake(at.lake)
        step.rows_in, step.quarantined = len(ALL), len(damages)
    for damage in damages:
        at = _repair(at, damage, repairs)
    return at


def _repair(at: Context, damage: LakeDamaged, repairs: list[Repair]) -> Context:
    with at.log.step("repair") as step:
        at, done = repair(at, damage)
        step.problem, step.status = done.sentence, "repaired"
    repairs.append(done)
    return at


def _work(at: Context, options: Options) -> tuple[int, Positions]:
    snapshot = at.source.snapshot()
    if options.since is not None and at.lake.open(LEDGER) is None:
        start = Positions(at.source.seq_before(options.since), at.source.record_before(options.since))
        for table in BRONZE:
            at.lake.commit(table, [], start, base=Positions())
    first = at.look(LEDGER).done.ledger
    check_same_ledger(at.lake, at.source, snapshot, first, accept_gap=options.accept_gap)
    done = Positions(first, at.look(RECORDS).done.records)
    target = Positions(snapshot.head, snapshot.records)
    _steps(at, done, target, options)
    return snapshot.head - first, target


def _steps(at: Context, done: Positions, target: Positions, options: Options) -> None:
    after, records = done.ledger, done.records
    # What is built anew is replaced in one commit, so that nobody meets half of it.
    at_once = max(target.ledger, target.records) if at.anew else options.at_once
    while True:
        step = Positions(min(target.ledger, after + at_once), min(target.records, records + at_once))
        take_in(at, step, verify=options.verify)
        after, records = step.ledger, step.records
        if step == target:
            break
        live(at, step)
    with together(at.crew.spark) as begin:
        begin(remember, at, target)
        lived, counted = begin(live, at, target), begin(count_turns, at, target)
        lived.result()
        counted.result()
        talked = begin(converse, at, target)
        begin(sum_up, at, target, talked)


def committed(lake: Lake) -> int:
    """Up to which event everything of the store is safe in bronze. Nothing after it may be pruned."""
    return min(lake.positions(table).ledger for table in BRONZE)


def _built_anew(options: Options) -> frozenset[str]:
    """What can be built from what stays. Bronze only when asked: the store may no longer have all of it."""
    kept = (QUARANTINE, RUNS) if options.everything else (*BRONZE, QUARANTINE, RUNS)
    anew = ALL if options.refresh or options.everything else ()
    return frozenset(table.name for table in anew if table not in kept)


def _empty(lake: Lake, table: Table) -> None:
    files = lake.files(table)
    if files:
        lake.commit(table, [], None, removed=files)


@contextlib.contextmanager
def explained(lake: Lake, source: SqliteSource) -> Iterator[None]:
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
                DAMAGED,
                "could not verify page integrity",
                "is not a Parquet file",
                "CANNOT_READ",
                "FAILED_READ_FILE",
                "NOT_EXIST",
            )
        ):
            found = find_file(lake, text)
            if found is None:
                raise LakeDamaged(table=_table_in(text), problem=_line(text)) from error
            raise LakeDamaged(table=found[0].name, problem=_line(text), file=found[1]) from error
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
    """The line that says most: what Spark gives a class in brackets, else what an exception says."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line[line.index("[") :] for line in lines if _CLASS.search(line)]
    telling += [line for line in lines if "Error" in line or "Exception" in line]
    return (telling or lines or ["unknown"])[0][:300]


def _table_in(text: str) -> str:
    return next((table.name for table in ALL if f"/{table.name}/" in text), "unknown")
