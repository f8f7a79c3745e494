"""One bounded step of each housekeeper, as a command in its own short transaction."""

import logging
from collections.abc import Callable

import msgspec

from postroom.clock import micros
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk
from postroom.kernel.housekeeping import pruning, roster
from postroom.kernel.model import DEAD_LETTER, Ordering
from postroom.kernel.rows import Row
from postroom.kernel.store import HousekeeperRun
from postroom.kernel.verbs import priorities, sweep

log = logging.getLogger("postroom.housekeeping")
TOP_SCORE = 1000


class Step(msgspec.Struct, frozen=True):
    """What a step did, and where the next one goes on; None when the work is done."""

    items: int
    cursor: int | None = None


def housekeep(desk: Desk, command: c.Housekeep) -> Step:
    work = _WORK.get(command.name)
    if work is None:
        raise InvalidField("name", f"{command.name!r} is no housekeeper; known are {', '.join(_WORK)}")
    return work(desk, command)


def _sweep(desk: Desk, command: c.Housekeep) -> Step:
    done = sweep.sweep(desk, limit=command.limit)
    return Step(done, 0 if done == command.limit else None)


def _archive(desk: Desk, command: c.Housekeep) -> Step:
    keep = desk.kit.retention
    rows: list[Row] = []
    if keep.archive_after_s is not None:
        rows = desk.tx.finished(desk.now - micros(keep.archive_after_s), command.limit)
    if len(rows) < command.limit and keep.dead_after_s is not None:
        rows += desk.tx.dead_before(desk.now - micros(keep.dead_after_s), command.limit - len(rows))
    if rows:
        archive_rows(desk, rows)
        desk.record("archive.moved", data={"messages": len(rows)})
    return Step(len(rows), 0 if len(rows) == command.limit else None)


def archive_rows(desk: Desk, rows: list[Row]) -> None:
    for row in rows:
        desk.tally(row, desk.tx.queue_by_id(row.queue_id), -1)
    desk.tx.archive(rows)


def _monitor(desk: Desk, command: c.Housekeep) -> Step:
    grown = 0
    for queue in desk.tx.all_queues():
        if queue.slug != DEAD_LETTER:
            continue
        memo = f"dead_letters:{queue.id}"
        depth = desk.tx.counts(queue.id).dead
        before = int(desk.tx.memo(memo) or 0)
        if depth > before:
            grown += 1
            desk.record(
                "dead_letters.grew",
                tenant=queue.tenant,
                scope=queue.scope,
                queue=queue.slug,
                data={"depth": depth, "before": before},
            )
            log.warning("dead letters of scope %s grew from %d to %d", queue.scope, before, depth)
        if depth != before:
            desk.tx.set_memo(memo, str(depth))
    return Step(grown)


def _age(desk: Desk, command: c.Housekeep) -> Step:
    keep = desk.kit.retention
    entered_before = desk.now - micros(keep.aging_after_s)
    rows = desk.tx.aging(entered_before, TOP_SCORE, command.cursor, command.limit)
    for row in rows:
        queue = desk.tx.queue_by_id(row.queue_id)
        assert queue.settings.ordering is Ordering.PRIORITY
        row.priority_score = min(row.priority_score + keep.aging_step, TOP_SCORE)
        priorities.place(desk, row, queue)
    return Step(len(rows), rows[-1].seq if len(rows) == command.limit else None)


def _prune(desk: Desk, command: c.Housekeep) -> Step:
    done, more = pruning.prune(desk, command.limit)
    return Step(done, 0 if more else None)


_WORK: dict[str, Callable[[Desk, c.Housekeep], Step]] = {
    roster.VISIBILITY: _sweep,
    roster.EXPIRY: _sweep,
    roster.ARCHIVER: _archive,
    roster.MONITOR: _monitor,
    roster.AGING: _age,
    roster.PRUNER: _prune,
}


def report_run(desk: Desk, command: c.ReportRun) -> None:
    before = desk.tx.run_of(command.name)
    desk.tx.report_run(
        HousekeeperRun(
            name=command.name,
            last_run_at=command.started_at,
            last_status="failed" if command.error else "ok",
            last_duration_us=command.duration_us,
            items_processed=command.items,
            total_items=(before.total_items if before else 0) + command.items,
            runs=(before.runs if before else 0) + command.runs,
            last_error=command.error or (before.last_error if before else None),
        )
    )


def lead(desk: Desk, command: c.Lead) -> bool:
    """Whether the holder leads now. Giving up is a lease that has ended."""
    return desk.tx.lead(command.name, command.holder, desk.now, desk.now + micros(command.seconds))
