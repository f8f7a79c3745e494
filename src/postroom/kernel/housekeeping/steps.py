"""One bounded step of each housekeeper, as a command in its own short transaction."""

import logging
from collections.abc import Callable

import msgspec

from postroom.clock import micros
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.housekeeping import housekeepers, pruning
from postroom.kernel.model import DEAD_LETTER, Ordering
from postroom.kernel.ports import HousekeeperRun
from postroom.kernel.rows import Row
from postroom.kernel.transitions import due, priorities
from postroom.kernel.transitions.context import TransitionContext

log = logging.getLogger("postroom.housekeeping")
TOP_SCORE = 1000


class HousekeepingStep(msgspec.Struct, frozen=True):
    """What a step did, and where the next one goes on; None when the work is done."""

    items: int
    cursor: int | None = None


def housekeep(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    work = _WORK.get(command.name)
    if work is None:
        raise InvalidField("name", f"{command.name!r} is no housekeeper; known are {', '.join(_WORK)}")
    return work(ctx, command)


def _sweep(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    done = due.sweep(ctx, limit=command.limit)
    return HousekeepingStep(done, 0 if done == command.limit else None)


def _archive(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    keep = ctx.env.retention
    rows: list[Row] = []
    if keep.archive_after_s is not None:
        rows = ctx.tx.finished(ctx.now - micros(keep.archive_after_s), command.limit)
    if len(rows) < command.limit and keep.dead_after_s is not None:
        rows += ctx.tx.dead_before(ctx.now - micros(keep.dead_after_s), command.limit - len(rows))
    if rows:
        archive_rows(ctx, rows)
        ctx.record("archive.moved", data={"messages": len(rows)})
    return HousekeepingStep(len(rows), 0 if len(rows) == command.limit else None)


def archive_rows(ctx: TransitionContext, rows: list[Row]) -> None:
    for row in rows:
        ctx.tally(row, ctx.tx.queue_by_id(row.queue_id), -1)
    ctx.tx.archive(rows)


def _monitor(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    grown = 0
    for queue in ctx.tx.all_queues():
        if queue.slug != DEAD_LETTER:
            continue
        memo = f"dead_letters:{queue.id}"
        depth = ctx.tx.counts(queue.id).dead
        before = int(ctx.tx.memo(memo) or 0)
        if depth > before:
            grown += 1
            ctx.record(
                "dead_letters.grew",
                tenant=queue.tenant,
                scope=queue.scope,
                queue=queue.slug,
                data={"depth": depth, "before": before},
            )
            log.warning("dead letters of scope %s grew from %d to %d", queue.scope, before, depth)
        if depth != before:
            ctx.tx.set_memo(memo, str(depth))
    return HousekeepingStep(grown)


def _age(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    keep = ctx.env.retention
    entered_before = ctx.now - micros(keep.aging_after_s)
    rows = ctx.tx.aging(entered_before, TOP_SCORE, command.cursor, command.limit)
    for row in rows:
        queue = ctx.tx.queue_by_id(row.queue_id)
        assert queue.settings.ordering is Ordering.PRIORITY
        row.priority_score = min(row.priority_score + keep.aging_step, TOP_SCORE)
        priorities.place(ctx, row, queue)
    return HousekeepingStep(len(rows), rows[-1].seq if len(rows) == command.limit else None)


def _prune(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    done, more = pruning.prune(ctx, command.limit)
    return HousekeepingStep(done, 0 if more else None)


_WORK: dict[str, Callable[[TransitionContext, c.Housekeep], HousekeepingStep]] = {
    housekeepers.VISIBILITY: _sweep,
    housekeepers.EXPIRY: _sweep,
    housekeepers.ARCHIVER: _archive,
    housekeepers.MONITOR: _monitor,
    housekeepers.AGING: _age,
    housekeepers.PRUNER: _prune,
}


def report_run(ctx: TransitionContext, command: c.ReportRun) -> None:
    before = ctx.tx.run_of(command.name)
    ctx.tx.report_run(
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


def lead(ctx: TransitionContext, command: c.Lead) -> bool:
    """Whether the holder leads now. Giving up is a lease that has ended."""
    return ctx.tx.lead(command.name, command.holder, ctx.now, ctx.now + micros(command.seconds))
