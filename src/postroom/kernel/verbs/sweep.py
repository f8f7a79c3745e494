"""What time does to messages: leases run out, delays end, lives end. Every `due_at` leads here."""

from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk
from postroom.kernel.reviews.timeouts import timed_out
from postroom.kernel.rows import Row
from postroom.kernel.states import WAITING, Change, State

AT_CLAIM = 200


def sweep(desk: Desk, *, limit: int) -> int:
    """Handle up to `limit` messages whose time has come; how many there were."""
    rows = desk.tx.due(desk.now, limit)
    ended = False
    for row in rows:
        # A review that has ended may let others of these go on, or end them.
        now = _still_due(desk, row) if ended else row
        if now is not None:
            _come_due(desk, now)
            ended = ended or now.state not in WAITING
    return len(rows)


def _still_due(desk: Desk, row: Row) -> Row | None:
    found = desk.tx.row(row.id)
    return found if found is not None and found.due_at is not None and found.due_at <= desk.now else None


def _come_due(desk: Desk, row: Row) -> None:
    if row.state == State.CLAIMED:
        _lease_ran_out(desk, row)
    elif row.expires_at is not None and row.expires_at <= desk.now:
        expire(desk, row)
    else:
        row.visible_at = None
        desk.move(row, Change.READY, State.PENDING)
        desk.tx.save([row])


def take_over(desk: Desk, command: c.TakeOver) -> int:
    """The attempts count, as when a lease runs out: the work itself may be what killed the process."""
    checks.check_name("dead", command.dead, desk.limits)
    desk.tx.end_leaderships(command.dead, desk.now)
    rows = desk.tx.claimed_by(command.dead, command.limit)
    for row in rows:
        _lease_ran_out(desk, row)
    return len(rows)


def expire(desk: Desk, row: Row) -> None:
    """A life ends; a review may have been told what to do when nobody answers."""
    if timed_out(desk, row):
        return
    desk.move(row, Change.EXPIRED, State.EXPIRED)
    desk.tx.save([row])
    desk.delivery_ended(row)


def _lease_ran_out(desk: Desk, row: Row) -> None:
    """The attempt counts, or a message that kills its workers would circulate for ever."""
    holder = row.claimed_by
    settings = desk.tx.queue_by_id(row.queue_id).settings
    if row.attempts >= settings.max_retries:
        desk.bury(row, f"the lease of {holder} ran out on attempt {row.attempts}", "lease_expired")
        return
    row.failure_reason = f"the lease of {holder} ran out"
    row.failure_kind = "lease_expired"
    desk.move(row, Change.LEASE_EXPIRED, State.PENDING, worker=holder)
    desk.tx.save([row])
