"""Messages that wait for an account to thaw, and the end of a whole conversation."""

from typing import Any

from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.budgets import reservations
from postroom.kernel.budgets.model import HeldMessage
from postroom.kernel.states import OPEN, Change, State
from postroom.kernel.transitions import settle
from postroom.kernel.transitions.context import TransitionContext


def hold(ctx: TransitionContext, command: c.Hold) -> bool:
    """Whether it waits now. When the account has thawed meanwhile, the message is given back instead."""
    checks.check_name("account", command.account, ctx.limits)
    account = ctx.tx.account(ctx.tenant, command.account, ctx.now)
    about: dict[str, Any] = {"message_id": command.message_id, "token": command.token}
    if account is None or account.frozen is None:
        settle.release(ctx, c.Release(**about))
        return False
    reason = command.reason or f"{command.account}: {account.frozen}"
    settle.snooze(ctx, c.Snooze(until=command.until, seconds=command.seconds, reason=reason, **about))
    row = ctx.tx.row(command.message_id)
    if row is None or row.state != State.DELAYED or row.visible_at is None:
        return False
    held = HeldMessage(message_id=row.id, claims=row.claims, until=row.visible_at)
    ctx.tx.hold(ctx.tenant, command.account, held)
    return True


def thaw(ctx: TransitionContext, command: c.Thaw) -> int:
    """The account takes reservations again, and what waited for it goes on, in its old place."""
    checks.check_name("account", command.account, ctx.limits)
    account = ctx.tx.account(ctx.tenant, command.account, ctx.now)
    if account is None or account.frozen is None:
        return 0
    ctx.tx.save_account(ctx.tenant, account.thawed(ctx.now))
    reservations._tell(ctx, "account.thawed", command, {"account": command.account})
    woken = 0
    for held in ctx.tx.take_holds(ctx.tenant, command.account):
        row = ctx.tx.row(held.message_id)
        if row is None or (row.state, row.claims, row.visible_at) != (State.DELAYED, held.claims, held.until):
            continue
        row.visible_at = row.failure_reason = None
        ctx.move(row, Change.READY, State.PENDING)
        ctx.tx.save([row])
        woken += 1
    return woken


def cancel_conversation(ctx: TransitionContext, command: c.CancelConversation) -> int:
    """Every open message of a conversation, but those in queues whose names begin as in `keep`."""
    checks.check_name("correlation_id", command.correlation_id, ctx.limits)
    ended = 0
    for found in ctx.tx.open_of(ctx.tenant, command.correlation_id):
        if ctx.tx.queue_by_id(found.queue_id).slug.startswith(command.keep):
            continue
        # A broadcast that was cancelled just now took its deliveries along.
        row = ctx.tx.row(found.id)
        if row is not None and row.state in OPEN:
            settle.cancel(ctx, c.Cancel(message_id=row.id, reason=command.reason))
            ended += 1
    return ended
