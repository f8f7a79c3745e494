"""Schedules of plain queues: kept as documents, and published in the transaction that moves them on.

The next time of each is a fact whose key begins with it, so that the first look finds what is due. A time is
published once, however often a process dies; what cannot be published is told, and passed over.
"""

import logging
from typing import Any

import msgspec

from postroom.clock import iso
from postroom.errors import InvalidField, PostroomError
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.facts import ROOM, TICK, Fact, first
from postroom.kernel.model import Document, NewMessage, Receipt
from postroom.kernel.ports import FactFilter
from postroom.kernel.schedules.cron import Cron, known_zone
from postroom.kernel.schedules.due import DueTimes, find_due
from postroom.kernel.schedules.errors import InvalidCron, NotInFuture, ScheduleNotFound
from postroom.kernel.schedules.model import (
    KIND,
    OWN,
    PROGRESS,
    SOURCE,
    QueueSchedule,
    QueueScheduleProgress,
    to_data,
    to_progress,
    to_schedule,
)
from postroom.kernel.states import OPEN
from postroom.kernel.transitions import documents
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.publish import publish_one

log = logging.getLogger("postroom.housekeeping")

STILL_OPEN = "what it published before is still open"
LONGEST_S = 366 * 24 * 3600


def put(ctx: TransitionContext, command: c.PutSchedule) -> QueueSchedule:
    """Make it, or change it whole. Times that were passed over while it was otherwise are not made up."""
    scope, name = checks.split_path(command.name)
    checks.check_queue_slug(name)
    ctx.scope(scope)
    for field in command.fields:
        if field not in OWN:
            raise InvalidField(
                field, f"is nothing to say about a schedule; known are {', '.join(sorted(OWN))}"
            )
    before = ctx.session.document(ctx.tenant, KIND, f"{scope}/{name}")
    created = before.created_at if before is not None and not before.gone else ctx.now
    try:
        schedule = msgspec.convert(
            {"scope": scope, "name": name, "created_at": created, "updated_at": ctx.now, **command.fields},
            QueueSchedule,
        )
    except msgspec.ValidationError as error:
        problem, _, place = str(error).rpartition(" - at ")
        raise InvalidField(place.strip("`$.") or "schedule", (problem or str(error)).lower()) from None
    schedule = msgspec.structs.replace(schedule, queue=ctx.queue(schedule.queue).path)
    _check(ctx, schedule)
    documents.put(ctx, c.PutDocument(kind=KIND, key=schedule.path, data=to_data(schedule)))
    progress = _progress(ctx, ctx.tenant, schedule.path) or QueueScheduleProgress(after=ctx.now)
    _go_on(ctx, ctx.tenant, schedule, msgspec.structs.replace(progress, after=ctx.now, problem=""))
    return _read(ctx, ctx.tenant, schedule.path)


def drop(ctx: TransitionContext, command: c.DropSchedule) -> None:
    path = _path(command.name)
    _read(ctx, ctx.tenant, path)
    progress = _progress(ctx, ctx.tenant, path)
    documents.drop(ctx, c.DropDocument(kind=KIND, key=path))
    if progress is not None:
        _drop_tick(ctx, progress)
        ctx.session.drop_facts([(ctx.tenant, PROGRESS, path)])


def run_now(ctx: TransitionContext, command: c.RunSchedule) -> Receipt:
    """Once more, besides its times; also when it is switched off."""
    return _publish(ctx, _read(ctx, ctx.tenant, _path(command.name)), ctx.tenant)


def publish_due(ctx: TransitionContext, limit: int) -> int:
    """What has come; how many schedules there were."""
    ticks = [fact for fact in ctx.session.scan(FactFilter(kind=TICK), limit) if _time_of(fact) <= ctx.now]
    for tick in ticks:
        _, tenant, path = tick.key.split("|", 2)
        document = ctx.session.document(tenant, KIND, path)
        progress = _progress(ctx, tenant, path)
        if document is None or document.gone or progress is None or progress.tick != tick.key:
            ctx.session.drop_facts([(ROOM, TICK, tick.key)])
            continue
        _meet(ctx, tenant, to_schedule(document, None), progress)
    return len(ticks)


def go_on_from_now(ctx: TransitionContext) -> int:
    """Those that had come further than the time is now: they would sleep until it has come as far again."""
    count = 0
    for tick in ctx.session.scan(FactFilter(kind=TICK)):
        _, tenant, path = tick.key.split("|", 2)
        document = ctx.session.document(tenant, KIND, path)
        progress = _progress(ctx, tenant, path)
        if document is not None and progress is not None and progress.after > ctx.now:
            after = msgspec.structs.replace(progress, after=ctx.now)
            _go_on(ctx, tenant, to_schedule(document, None), after)
            count += 1
    return count


def _meet(
    ctx: TransitionContext, tenant: str, schedule: QueueSchedule, progress: QueueScheduleProgress
) -> None:
    come = find_due(schedule.times, schedule.missed, progress.after, ctx.now)
    if come is None:
        _go_on(ctx, tenant, schedule, progress)
        return
    problem, told = "", {}
    if not schedule.overlap and _is_open(ctx, progress.last_message_id):
        problem = STILL_OPEN
    else:
        try:
            with ctx.savepoint():
                told = _publish_all(ctx, tenant, schedule, progress, come)
        except PostroomError as error:
            problem = str(error)
    if problem:
        log.warning("the schedule %s of %s was not published: %s", schedule.path, schedule.queue, problem)
    after = msgspec.structs.replace(progress, after=come.after, problem=problem, **told)
    _go_on(ctx, tenant, schedule, after)


def _publish_all(
    ctx: TransitionContext,
    tenant: str,
    schedule: QueueSchedule,
    progress: QueueScheduleProgress,
    come: DueTimes,
) -> dict[str, Any]:
    if not come.slots:
        return {}
    receipts = [_publish(ctx, schedule, tenant, slot) for slot in come.slots]
    return {
        "last_at": come.slots[-1],
        "last_message_id": receipts[-1].id,
        "published": progress.published + len(receipts),
    }


def _publish(
    ctx: TransitionContext, schedule: QueueSchedule, tenant: str, slot: int | None = None
) -> Receipt:
    told = {"schedule": schedule.path} | ({} if slot is None else {"time": iso(slot)})
    message = NewMessage(
        body=schedule.body,
        message_type=schedule.message_type,
        priority_tier=schedule.priority_tier,
        labels=schedule.labels or None,
        source_type=SOURCE,
        source_id=schedule.path,
        metadata=told,
    )
    before, ctx.tenant = ctx.tenant, tenant
    try:
        return publish_one(ctx, ctx.queue(schedule.queue), message)
    finally:
        ctx.tenant = before


def _is_open(ctx: TransitionContext, message_id: str | None) -> bool:
    row = None if message_id is None else ctx.session.row(message_id)
    return row is not None and row.state in OPEN


def _check(ctx: TransitionContext, schedule: QueueSchedule) -> None:
    queue = ctx.queue(schedule.queue)
    if queue.system:
        raise InvalidField("queue", f"{queue.path} belongs to the system")
    ways = [bool(schedule.cron), schedule.every_s is not None, schedule.at is not None]
    if sum(ways) != 1:
        raise InvalidField("cron", "or every_s, or at: say one of them")
    known_zone(schedule.zone)
    if schedule.every_s is not None:
        checks.check_seconds("every_s", schedule.every_s, least=1, most=LONGEST_S)
    if schedule.at is not None:
        checks.check_moment("at", schedule.at)
        if schedule.enabled and schedule.at <= ctx.now:
            raise NotInFuture(at=iso(schedule.at))
    if schedule.cron and Cron(schedule.cron, schedule.zone).next(ctx.now) is None:
        raise InvalidCron(cron=schedule.cron, problem="it does not come in the next fifty years")
    message = NewMessage(
        body=schedule.body,
        message_type=schedule.message_type,
        priority_tier=schedule.priority_tier,
        labels=schedule.labels or None,
    )
    checks.check_message(message, ctx.limits)
    checks.body_bytes(message, ctx.limits)


def _go_on(
    ctx: TransitionContext, tenant: str, schedule: QueueSchedule, progress: QueueScheduleProgress
) -> None:
    """The next time is found under its own key; the one before is dropped."""
    _drop_tick(ctx, progress)
    following = next(schedule.times(progress.after), None) if schedule.enabled else None
    tick = "" if following is None else f"{following:020d}|{tenant}|{schedule.path}"
    progress = msgspec.structs.replace(progress, next_at=following, tick=tick)
    before = ctx.session.document(tenant, PROGRESS, schedule.path)
    data = msgspec.to_builtins(progress)
    ctx.session.put_document(tenant, Document.next(before, PROGRESS, schedule.path, data, ctx.now))
    if tick:
        ctx.session.put(first(TICK, tick, True, ctx.now))


def _drop_tick(ctx: TransitionContext, progress: QueueScheduleProgress) -> None:
    if progress.tick:
        ctx.session.drop_facts([(ROOM, TICK, progress.tick)])


def _progress(ctx: TransitionContext, tenant: str, path: str) -> QueueScheduleProgress | None:
    found = ctx.session.document(tenant, PROGRESS, path)
    return None if found is None or found.gone else to_progress(found)


def _read(ctx: TransitionContext, tenant: str, path: str) -> QueueSchedule:
    document = ctx.session.document(tenant, KIND, path)
    if document is None or document.gone:
        raise ScheduleNotFound(schedule=path)
    return to_schedule(document, ctx.session.document(tenant, PROGRESS, path))


def _path(name: str) -> str:
    return "/".join(checks.split_path(name))


def _time_of(tick: Fact) -> int:
    return int(tick.key.partition("|")[0])
