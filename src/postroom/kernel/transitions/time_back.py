"""Setting the ledger's time back to the clock, after a clock that was ahead and came back.

What was counted from the wrong time is counted from the right one; moments that callers named stay. What the
ledger says stays as it is, and the place where its time goes back is remembered.
"""

from collections.abc import Iterator

import msgspec

from postroom.clock import SECOND
from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import BudgetFilter, HeldMessage
from postroom.kernel.facts import LEADER, MEMO, RATE, ROOM, Leadership, to_leadership
from postroom.kernel.model import Ordering
from postroom.kernel.ports import FactFilter, RowFilter
from postroom.kernel.rows import Row
from postroom.kernel.states import State
from postroom.kernel.time_steps import NAME, TimeStep, read_steps
from postroom.kernel.transitions import schedules
from postroom.kernel.transitions.context import OPEN_STATES, TransitionContext

PAGE = 1000
EVENT = "time.set_back"


class TimeSetBack(msgspec.Struct):
    """By how many microseconds, and how much was counted anew."""

    ahead: int = 0
    leases: int = 0
    delays: int = 0
    lives: int = 0
    places: int = 0
    """Messages of fifo queues that would have waited behind all that come now."""
    reservations: int = 0
    schedules: int = 0
    leaderships: int = 0
    ended: int = 0
    """Messages whose time was over only by the wrong clock; they have ended, and stay so."""


def set_time_back(ctx: TransitionContext, command: c.SetTimeBack) -> TimeSetBack:
    """All of it in one transaction, which is the first of the right time."""
    checks.check_moment("to", command.to)
    head = ctx.session.tx.chain().head
    done = TimeSetBack(ahead=head.time - command.to)
    if done.ahead <= 0:
        raise InvalidField("to", "is not before the newest event: the time needs no setting back")
    ctx.now = ctx.session.tx.now = command.to
    tenants: set[str] = set()
    for row in _open_rows(ctx):
        tenants.add(row.tenant)
        _count_anew(ctx, row, done)
    for tenant in sorted(tenants):
        _renew_budgets(ctx, tenant, done)
    done.ended = sum(1 for row in _rows(ctx, (State.EXPIRED,)) if (row.expires_at or 0) > command.to)
    done.schedules = schedules.go_on_from_now(ctx)
    done.leaderships = _end_leaderships(ctx)
    rates = [fact for fact in ctx.session.scan(FactFilter(kind=RATE)) if fact.updated_at > ctx.now]
    ctx.session.drop_facts([(ROOM, RATE, fact.key) for fact in rates])
    steps = [*read_steps(ctx.session.fact(MEMO, NAME)), TimeStep(head.seq + 1, command.to)]
    ctx.session.remember(MEMO, NAME, steps, ctx.now)
    ctx.emit(EVENT, data=msgspec.to_builtins(done))
    return done


def _open_rows(ctx: TransitionContext) -> Iterator[Row]:
    """Those that were changed in the wrong time."""
    return (row for row in _rows(ctx, OPEN_STATES) if max(row.updated_at, row.created_at) > ctx.now)


def _rows(ctx: TransitionContext, states: tuple[str, ...]) -> Iterator[Row]:
    after = 0
    while found := ctx.session.tx.find(RowFilter(states=states), after, PAGE):
        after = found[-1].seq
        yield from found


def _count_anew(ctx: TransitionContext, found: Row, done: TimeSetBack) -> None:
    row = ctx.session.row(found.id)
    assert row is not None, "it was found in this transaction"
    content, queue = ctx.session.content(row), ctx.session.queue_by_id(row.queue_id)
    if row.lease_until is not None:
        row.lease_until = max(ctx.now, row.lease_until - done.ahead)
        done.leases += 1
    if row.visible_at is not None and not _is_named(row.visible_at):
        row.visible_at = max(ctx.now, row.visible_at - done.ahead)
        done.delays += 1
    if row.expires_at not in (None, content.deadline) and row.created_at > ctx.now:
        row.expires_at -= done.ahead
        done.lives += 1
    if queue.settings.ordering is Ordering.FIFO and row.sort_key > ctx.now:
        row.sort_key = ctx.now
        done.places += 1
    ctx.set_due(row, queue)
    ctx.session.touch(row)


def _is_named(moment: int) -> bool:
    """Whether somebody named it. What is counted from a clock is no whole second, but by a rare chance."""
    return moment % SECOND == 0


def _renew_budgets(ctx: TransitionContext, tenant: str, done: TimeSetBack) -> None:
    """What is reserved, and what waits for a frozen one."""
    changes = ctx.session.budget_changes
    for each in ctx.session.tx.holdings(tenant, "", "").reservations:
        if each.since > ctx.now:
            moved = {"since": ctx.now, "expires_at": max(ctx.now, each.expires_at - done.ahead)}
            changes.reserved.append((tenant, msgspec.structs.replace(each, **moved)))
            done.reservations += 1
    for budget in ctx.session.tx.budgets(BudgetFilter(tenant=tenant, frozen=True), ctx.now):
        for held in ctx.session.tx.holds(tenant, budget.name):
            row = ctx.session.row(held.message_id)
            if row is not None and row.visible_at is not None and row.visible_at != held.until:
                again = HeldMessage(message_id=row.id, claims=held.claims, until=row.visible_at)
                changes.held.append((tenant, budget.name, again))


def _end_leaderships(ctx: TransitionContext) -> int:
    """Nobody leads while this runs: whoever did is asked anew."""
    count = 0
    for fact in ctx.session.scan(FactFilter(kind=LEADER)):
        known = to_leadership(fact.data)
        if known.until > ctx.now:
            ctx.session.put(fact.next(Leadership(known.holder, ctx.now), ctx.now))
            count += 1
    return count
