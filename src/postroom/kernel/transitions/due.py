"""What time does to messages: leases run out, delays end, lives end. Every `due_at` leads here."""

from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.ports import RowFilter
from postroom.kernel.rows import Row
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.leaders import end_leaderships

AT_CLAIM = 200


def sweep(ctx: TransitionContext, *, limit: int) -> int:
    """Handle up to `limit` messages whose time has come; how many there were."""
    rows = ctx.session.due(ctx.now, limit).rows
    for row in rows:
        # A review that has ended may have let others of these go on, or ended them.
        if row.due_at is not None and row.due_at <= ctx.now:
            _come_due(ctx, row)
    return len(rows)


def _come_due(ctx: TransitionContext, row: Row) -> None:
    if row.state == State.CLAIMED:
        if row.expires_at is not None and row.expires_at <= ctx.now and ctx.hooks.is_review(ctx, row):
            # Its time is over for its holder too.
            ctx.move(row, Change.LEASE_EXPIRED, State.PENDING, worker=row.claimed_by)
            expire(ctx, row)
        else:
            _lease_ran_out(ctx, row)
    elif row.expires_at is not None and row.expires_at <= ctx.now:
        expire(ctx, row)
    else:
        row.visible_at = None
        ctx.move(row, Change.READY, State.PENDING)


def take_over(ctx: TransitionContext, command: c.TakeOver) -> int:
    """The attempts count, as when a lease runs out: the work itself may be what killed the process."""
    checks.check_name("dead", command.dead, ctx.limits)
    end_leaderships(ctx, command.dead)
    wanted = RowFilter(states=(State.CLAIMED,), claimed_by=command.dead)
    rows = ctx.session.find(wanted, limit=command.limit)
    for row in rows:
        _lease_ran_out(ctx, row)
    return len(rows)


def expire(ctx: TransitionContext, row: Row) -> None:
    """A life ends; a review may have been told what to do when nobody answers."""
    if ctx.hooks.time_out_review(ctx, row):
        return
    ctx.move(row, Change.EXPIRED, State.EXPIRED)
    ctx.end_delivery(row)


def lease_end(ctx: TransitionContext, row: Row, until: int) -> int:
    """The end of a lease that should last until then: a review is held no longer than there is to answer."""
    if row.expires_at is None or until <= row.expires_at or not ctx.hooks.is_review(ctx, row):
        return until
    return row.expires_at


def _lease_ran_out(ctx: TransitionContext, row: Row) -> None:
    """The attempt counts, or a message that kills its workers would circulate for ever."""
    holder = row.claimed_by
    settings = ctx.session.queue_by_id(row.queue_id).settings
    if row.attempts >= settings.max_retries:
        ctx.bury(row, f"the lease of {holder} ran out on attempt {row.attempts}", "lease_expired")
        return
    row.failure_reason = f"the lease of {holder} ran out"
    row.failure_kind = "lease_expired"
    ctx.move(row, Change.LEASE_EXPIRED, State.PENDING, worker=holder)
