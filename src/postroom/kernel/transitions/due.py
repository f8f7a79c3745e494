"""What time does to messages: leases run out, delays end, lives end. Every `due_at` leads here."""

from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.reviews.timeouts import timed_out
from postroom.kernel.rows import Row
from postroom.kernel.states import WAITING, Change, State
from postroom.kernel.transitions.context import TransitionContext

AT_CLAIM = 200


def sweep(ctx: TransitionContext, *, limit: int) -> int:
    """Handle up to `limit` messages whose time has come; how many there were."""
    rows = ctx.tx.due(ctx.now, limit)
    ended = False
    for row in rows:
        # A review that has ended may let others of these go on, or end them.
        now = _still_due(ctx, row) if ended else row
        if now is not None:
            _come_due(ctx, now)
            ended = ended or now.state not in WAITING
    return len(rows)


def _still_due(ctx: TransitionContext, row: Row) -> Row | None:
    found = ctx.tx.row(row.id)
    return found if found is not None and found.due_at is not None and found.due_at <= ctx.now else None


def _come_due(ctx: TransitionContext, row: Row) -> None:
    if row.state == State.CLAIMED:
        _lease_ran_out(ctx, row)
    elif row.expires_at is not None and row.expires_at <= ctx.now:
        expire(ctx, row)
    else:
        row.visible_at = None
        ctx.move(row, Change.READY, State.PENDING)
        ctx.tx.save([row])


def take_over(ctx: TransitionContext, command: c.TakeOver) -> int:
    """The attempts count, as when a lease runs out: the work itself may be what killed the process."""
    checks.check_name("dead", command.dead, ctx.limits)
    ctx.tx.end_leaderships(command.dead, ctx.now)
    rows = ctx.tx.claimed_by(command.dead, command.limit)
    for row in rows:
        _lease_ran_out(ctx, row)
    return len(rows)


def expire(ctx: TransitionContext, row: Row) -> None:
    """A life ends; a review may have been told what to do when nobody answers."""
    if timed_out(ctx, row):
        return
    ctx.move(row, Change.EXPIRED, State.EXPIRED)
    ctx.tx.save([row])
    ctx.delivery_ended(row)


def _lease_ran_out(ctx: TransitionContext, row: Row) -> None:
    """The attempt counts, or a message that kills its workers would circulate for ever."""
    holder = row.claimed_by
    settings = ctx.tx.queue_by_id(row.queue_id).settings
    if row.attempts >= settings.max_retries:
        ctx.bury(row, f"the lease of {holder} ran out on attempt {row.attempts}", "lease_expired")
        return
    row.failure_reason = f"the lease of {holder} ran out"
    row.failure_kind = "lease_expired"
    ctx.move(row, Change.LEASE_EXPIRED, State.PENDING, worker=holder)
    ctx.tx.save([row])
