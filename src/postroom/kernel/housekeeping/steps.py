"""One bounded step of each housekeeper, as a command in its own short transaction."""

import itertools
import logging
from collections.abc import Callable

import msgspec

from postroom.clock import SECOND, micros
from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel import jsontext
from postroom.kernel.digests import AUDIT_DIGESTED, DIGEST, audit_digest, joint_digest
from postroom.kernel.facts import MEMO, ROOM, RUN, FactKey, HousekeeperRun, to_run
from postroom.kernel.housekeeping import housekeepers, pruning
from postroom.kernel.model import Queue
from postroom.kernel.ports import ALL_AUDIT, QueueFilter, RowFilter
from postroom.kernel.rows import Row
from postroom.kernel.states import TERMINAL, State
from postroom.kernel.transitions import due, priorities, schedules
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.queues import archive_rows

log = logging.getLogger("postroom.housekeeping")
TOP_SCORE = 1000
# Dead letters stay longer than what ended otherwise.
ENDED = tuple(sorted(TERMINAL - {State.DEAD}))
# A cursor that goes on within a queue is its number times this, and the number of a message.
QUEUE_STEP = 2**40
DIGEST_AFTER = 60 * SECOND


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
    for states, seconds in ((ENDED, keep.archive_after_s), ((State.DEAD,), keep.dead_after_s)):
        if seconds is not None and len(rows) < command.limit:
            wanted = RowFilter(states=states, ended_before=ctx.now - micros(seconds))
            rows += ctx.session.find(wanted, limit=command.limit - len(rows))
    if rows:
        archive_rows(ctx, rows)
        ctx.emit("archive.moved", data={"messages": len(rows)})
    return HousekeepingStep(len(rows), 0 if len(rows) == command.limit else None)


def _monitor(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    """The dead letters of some scopes, and those of the next with the next step."""
    wanted = QueueFilter(sort="dead_letter", after=(0, command.cursor))
    queues = ctx.session.tx.queues(wanted, command.limit)
    counts = ctx.session.tx.counts([(queue.id, 0) for queue in queues])
    known = {fact.key: fact for fact in ctx.session.facts([_depth_memo(queue) for queue in queues])}
    grown = 0
    for queue in queues:
        place = (queue.id, 0)
        depth = counts[place].dead if place in counts else 0
        memo = known.get(_depth_memo(queue)[2])
        before = 0 if memo is None else jsontext.decode(memo.data)
        if depth > before:
            grown += 1
            ctx.emit(
                "dead_letters.grew",
                tenant=queue.tenant,
                scope=queue.scope,
                queue=queue.slug,
                data={"depth": depth, "before": before},
            )
            log.warning("dead letters of scope %s grew from %d to %d", queue.scope, before, depth)
        if depth != before:
            ctx.session.remember(MEMO, _depth_memo(queue)[2], depth, ctx.now)
    return HousekeepingStep(grown, queues[-1].id if len(queues) == command.limit else None)


def _depth_memo(queue: Queue) -> FactKey:
    return ROOM, MEMO, f"dead_letters:{queue.id}"


def _age(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    """Queue by queue; where a queue has more than fits into a step, the next one goes on in it."""
    keep = ctx.env.retention
    first, after = divmod(command.cursor, QUEUE_STEP)
    wanted = QueueFilter(sort="priority", after=(0, first - 1))
    queues = ctx.session.tx.queues(wanted, command.limit)
    waiting = ctx.session.tx.counts([(queue.id, 0) for queue in queues])
    done = 0
    for queue in queues:
        place = (queue.id, 0)
        if place not in waiting or not waiting[place].pending:
            continue
        rows = ctx.session.find(
            RowFilter(
                queue_ids=(queue.id,),
                states=(State.PENDING,),
                created_before=ctx.now - micros(keep.aging_after_s) + 1,
                score_below=TOP_SCORE,
            ),
            after=after if queue.id == first else 0,
            limit=command.limit - done,
        )
        for row in rows:
            row.priority_score = min(row.priority_score + keep.aging_step, TOP_SCORE)
            priorities.reposition(ctx, row, queue)
        done += len(rows)
        if done == command.limit:
            return HousekeepingStep(done, queue.id * QUEUE_STEP + rows[-1].seq)
    more = (queues[-1].id + 1) * QUEUE_STEP if len(queues) == command.limit else None
    return HousekeepingStep(done, more)


def _prune(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    done, more = pruning.prune(ctx, command.limit)
    return HousekeepingStep(done, 0 if more else None)


def _publish_scheduled(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    done = schedules.publish_due(ctx, command.limit)
    return HousekeepingStep(done, 0 if done == command.limit else None)


def _digest_audit(ctx: TransitionContext, command: c.Housekeep) -> HousekeepingStep:
    """The audit entries since the last digest. The newest wait: others may still commit some before them."""
    before = ctx.session.fact(MEMO, AUDIT_DIGESTED)
    last = None if before is None else jsontext.decode(before.data)
    found = ctx.session.tx.audit(ALL_AUDIT, last, command.limit)
    entries = list(itertools.takewhile(lambda entry: entry.created_at < ctx.now - DIGEST_AFTER, found))
    if entries:
        data = {"first": entries[0].id, "last": entries[-1].id, "entries": len(entries)}
        ctx.emit(AUDIT_DIGESTED, data={**data, DIGEST: joint_digest(map(audit_digest, entries))})
        ctx.session.remember(MEMO, AUDIT_DIGESTED, entries[-1].id, ctx.now)
    return HousekeepingStep(len(entries), 0 if len(entries) == command.limit else None)


_WORK: dict[str, Callable[[TransitionContext, c.Housekeep], HousekeepingStep]] = {
    housekeepers.VISIBILITY: _sweep,
    housekeepers.EXPIRY: _sweep,
    housekeepers.ARCHIVER: _archive,
    housekeepers.MONITOR: _monitor,
    housekeepers.AGING: _age,
    housekeepers.PRUNER: _prune,
    housekeepers.SCHEDULER: _publish_scheduled,
    housekeepers.DIGESTER: _digest_audit,
}


def report_run(ctx: TransitionContext, command: c.ReportRun) -> None:
    known = ctx.session.fact(RUN, command.name)
    before = None if known is None else to_run(known.data)
    run = HousekeeperRun(
        name=command.name,
        last_run_at=command.started_at,
        last_status="failed" if command.error else "ok",
        last_duration_us=command.duration_us,
        items_processed=command.items,
        total_items=(before.total_items if before else 0) + command.items,
        runs=(before.runs if before else 0) + command.runs,
        last_error=command.error or (before.last_error if before else None),
    )
    ctx.session.remember(RUN, command.name, run, ctx.now)
