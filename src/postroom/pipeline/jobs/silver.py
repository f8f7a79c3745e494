"""The silver steps for messages and turns. Each goes on from where its table is."""

from collections.abc import Iterator, Sequence

import msgspec
import pyarrow as pa

from postroom.pipeline.bronze.ingest import EVENTS_PER_FILE
from postroom.pipeline.jobs.context import Context, in_portions, newer
from postroom.pipeline.jobs.progress import watched
from postroom.pipeline.jobs.quarantine import MOST, QuarantineFinding, bad_events
from postroom.pipeline.jobs.results import is_told, read_results, tell_counted, tell_files, tell_found
from postroom.pipeline.jobs.workers import Parcel
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import LakeFile, Positions
from postroom.pipeline.lake.reading import read_portions
from postroom.pipeline.lake.tables import LEDGER, MESSAGE_LIFE, RECORDS, TURNS, Table
from postroom.pipeline.lake.upsert import Target, find_old, parts_of, write_part
from postroom.pipeline.silver import events as ev
from postroom.pipeline.silver.message_life import lives_of, merge_lives, odd_lives
from postroom.pipeline.silver.turns import NEEDED, turns


class NewRows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows whose number lies in a range, from portions of a table's files."""

    column: str
    after: int
    up_to: int
    portions: list[list[LakeFile]]

    @property
    def rows(self) -> int:
        return sum(file.rows for portion in self.portions for file in portion)

    def read(self, number: int, table: Table, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        """A bounded number of rows at a time, however large files have become."""
        kept: list[pa.Table] = []
        for file in self.portions[number]:
            for rows in read_portions(file, table, columns):
                place = rows[self.column]
                within = pc.and_(pc.greater(place, self.after), pc.less_equal(place, self.up_to))
                kept.append(rows if pc.all(within).as_py() else rows.filter(within))
                if sum(each.num_rows for each in kept) >= EVENTS_PER_FILE:
                    yield pa.concat_tables(kept)
                    kept = []
        if kept:
            yield pa.concat_tables(kept)


def new_rows(files: Sequence[LakeFile], column: str, after: int, up_to: int) -> NewRows:
    portions = in_portions(newer(files, column, after), EVENTS_PER_FILE)
    return NewRows(column=column, after=after, up_to=up_to, portions=portions)


class LifeTasks(msgspec.Struct, frozen=True, kw_only=True):
    """Lives as far as some events tell them, by day. `bad` are numbers of events that nothing is built on."""

    new: NewRows
    bad: list[int]
    days: frozenset[str] | None = None
    """Only messages of these days; None for all."""

    def __call__(self, number: int) -> Iterator[Parcel]:
        for ledger in self.new.read(number, LEDGER, ev.NEEDED):
            if self.bad:
                altered = pc.is_in(ledger["seq"], value_set=pa.array(self.bad, pa.int64()))
                ledger = ledger.filter(pc.invert(altered))
            events = ev.message_events(ledger)
            yield tell_counted(events.num_rows)
            yield from _odd_events(events)
            yield from _on_days(lives_of(events), self.days)


def _on_days(rows: pa.Table, days: frozenset[str] | None) -> Iterator[Parcel]:
    for day, part in parts_of(rows, "day"):
        if days is None or day in days:
            yield day or "", part


def _odd_events(events: pa.Table) -> Iterator[Parcel]:
    reasons = ev.problems(events)
    odd = events.select(["seq", "type", "message_id"]).append_column("reason", reasons)
    odd = odd.filter(pc.is_valid(reasons))
    findings = [
        QuarantineFinding(
            table=LEDGER.name, key=str(row["seq"]), reason=row["reason"], row=row, seq=row["seq"]
        )
        for row in odd.slice(0, MOST).to_pylist()
    ]
    return tell_found(findings, odd.num_rows)


class GatherLives(msgspec.Struct, frozen=True):
    """Whole lives of a day: what is new together with what was known, and all others of the same files."""

    target: Target

    def __call__(self, day: str, parts: list[pa.Table]) -> Iterator[Parcel]:
        if is_told(day):
            yield from ((day, part) for part in parts)
            return
        lived = merge_lives(parts)
        old = find_old(self.target, day, ("message_id",), lived["message_id"].combine_chunks())
        if old.same:
            lived = merge_lives([lived, *old.same])
        yield from _odd_lives(lived)
        written = write_part(self.target, day, [lived.sort_by("message_id"), *old.others])
        yield from tell_files(self.target.table, written, old.files)


def _odd_lives(lived: pa.Table) -> Iterator[Parcel]:
    reasons = odd_lives(lived)
    odd = lived.select(["message_id", "last_seq"]).append_column("reason", reasons)
    odd = odd.filter(pc.is_valid(reasons))
    findings = [
        QuarantineFinding(
            table=MESSAGE_LIFE.name, key=row["message_id"], reason=row["reason"], seq=row["last_seq"]
        )
        for row in odd.slice(0, MOST).to_pylist()
    ]
    return tell_found(findings, odd.num_rows)


def live(at: Context, target: Positions) -> None:
    """`message_life` takes in the events it has not seen."""
    work = at.look(MESSAGE_LIFE)
    after = work.done.ledger
    if after >= target.ledger:
        return
    new = new_rows(at.lake.files(LEDGER), "seq", after, target.ledger)
    workers = at.crew.of(target.ledger - after)
    with (
        at.log.step("message_life", after, target.ledger) as step,
        watched(workers, at.told, "message_life", target.ledger - after),
    ):
        tasks = LifeTasks(new=new, bad=bad_events(at.lake))
        gather = GatherLives(work.target())
        results = read_results(workers.collect(tasks, len(new.portions), gather, rows=new.rows))
        # Before anything is committed: once it is, nobody would come back to it.
        if results.findings:
            at.quarantine(results.findings)
        step.quarantined = results.odd
        at.commit_results([work], results, Positions(target.ledger, 0))
        step.rows_in, step.rows_out = results.rows_in, results.rows(MESSAGE_LIFE.name)


class TurnTasks(msgspec.Struct, frozen=True):
    """Turns of new records, by day."""

    new: NewRows
    days: frozenset[str] | None = None

    def __call__(self, number: int) -> Iterator[Parcel]:
        for records in self.new.read(number, RECORDS, NEEDED):
            yield from _on_days(turns(records), self.days)


class GatherTurns(msgspec.Struct, frozen=True):
    target: Target

    def __call__(self, day: str, parts: list[pa.Table]) -> Iterator[Parcel]:
        rows = pa.concat_tables(parts).sort_by("record_id")
        yield from tell_files(self.target.table, write_part(self.target, day, [rows]))


def count_turns(at: Context, target: Positions) -> None:
    """`turns_clean` takes in the records it has not seen. Records never change, so its rows only grow."""
    work = at.look(TURNS)
    after = work.done.records
    if work.snapshot.exists and not work.anew and after >= target.records:
        return
    new = new_rows(at.lake.files(RECORDS), "id", after, target.records)
    workers = at.crew.of(target.records - after)
    with at.log.step("turns_clean", after, target.records) as step:
        step.rows_in = target.records - after
        with watched(workers, at.told, "turns_clean", step.rows_in):
            gather = GatherTurns(work.target([]))
            results = read_results(workers.collect(TurnTasks(new), len(new.portions), gather, rows=new.rows))
            at.commit_results([work], results, Positions(0, target.records))
        step.rows_out = results.rows(TURNS.name)
