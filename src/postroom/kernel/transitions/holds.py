"""Messages that wait for an account to thaw, and the end of a whole conversation."""

from typing import Any

from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import HeldMessage
from postroom.kernel.ports import RowFilter
from postroom.kernel.states import OPEN, Change, State
from postroom.kernel.transitions import settle
from postroom.kernel.transitions.context import OPEN_STATES, TransitionContext
from postroom.kernel.transitions.reservations import emit_budget


def hold(ctx: TransitionContext, command: c.Hold) -> bool:
    """Whether it waits now. When the account has thawed meanwhile, the message is given back instead."""
    checks.check_name("account", command.account, ctx.limits)
    account = ctx.session.budget(ctx.tenant, command.account)
    about: dict[str, Any] = {"message_id": command.message_id, "token": command.token}
    if account is None or account.frozen is None:
        settle.release(ctx, c.Release(**about))
        return False
    reason = command.reason or f"{command.account}: {account.frozen}"
    settle.snooze(ctx, c.Snooze(until=command.until, seconds=command.seconds, reason=reason, **about))
    row = ctx.session.row(command.message_id)
    if row is None or row.state != State.DELAYED or row.visible_at is None:
        return False
    held = HeldMessage(message_id=row.id, claims=row.claims, until=row.visible_at)
    ctx.session.changes.budgets.held.append((ctx.tenant, command.account, held))
    return True


def thaw(ctx: TransitionContext, command: c.Thaw) -> int:
    """The account takes reservations again, and what waited for it goes on, in its old place."""
    checks.check_name("account", command.account, ctx.limits)
    account = ctx.session.budget(ctx.tenant, command.account)
    if account is None or account.frozen is None:
        return 0
    ctx.session.save_budget(ctx.tenant, account.thawed(ctx.now))
    emit_budget(ctx, "account.thawed", command, {"account": command.account})
    woken = 0
    holds = ctx.session.holds(ctx.tenant, command.account)
    if holds:
        ctx.session.changes.budgets.thawed.append((ctx.tenant, command.account))
    ctx.session.load(held.message_id for held in holds)
    for held in holds:
        row = ctx.session.row(held.message_id)
        if row is None or (row.state, row.claims, row.visible_at) != (State.DELAYED, held.claims, held.until):
            continue
        row.visible_at = row.failure_reason = None
        ctx.move(row, Change.READY, State.PENDING)
        woken += 1
    return woken


def cancel_conversation(ctx: TransitionContext, command: c.CancelConversation) -> int:
    """Every open message of a conversation, but those in queues whose names begin as in `keep`."""
    checks.check_name("correlation_id", command.correlation_id, ctx.limits)
    ended = 0
    about = RowFilter(tenant=ctx.tenant, correlation_id=command.correlation_id, states=OPEN_STATES)
    for row in ctx.session.find(about):
        if ctx.session.queue_by_id(row.queue_id).slug.startswith(command.keep):
            continue
        # A broadcast that was cancelled just now took its deliveries along.
        if row.state in OPEN:
            settle.cancel(ctx, c.Cancel(message_id=row.id, reason=command.reason))
            ended += 1
    return ended
