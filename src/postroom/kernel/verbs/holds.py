"""Messages that wait for an account to thaw, and the end of a whole conversation."""

from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.accounts import Hold
from postroom.kernel.desk import Desk
from postroom.kernel.states import OPEN, Change, State
from postroom.kernel.verbs import accounts, settle


def hold(desk: Desk, command: c.Hold) -> bool:
    """Whether it waits now. When the account has thawed meanwhile, the message is given back instead."""
    checks.check_name("account", command.account, desk.limits)
    account = desk.tx.account(desk.tenant, command.account, desk.now)
    about = {"message_id": command.message_id, "token": command.token}
    if account is None or account.frozen is None:
        settle.release(desk, c.Release(**about))
        return False
    reason = command.reason or f"{command.account}: {account.frozen}"
    settle.snooze(desk, c.Snooze(until=command.until, seconds=command.seconds, reason=reason, **about))
    row = desk.tx.row(command.message_id)
    if row is None or row.state != State.DELAYED or row.visible_at is None:
        return False
    held = Hold(message_id=row.id, claims=row.claims, until=row.visible_at)
    desk.tx.hold(desk.tenant, command.account, held)
    return True


def thaw(desk: Desk, command: c.Thaw) -> int:
    """The account takes reservations again, and what waited for it goes on, in its old place."""
    checks.check_name("account", command.account, desk.limits)
    account = desk.tx.account(desk.tenant, command.account, desk.now)
    if account is None or account.frozen is None:
        return 0
    desk.tx.save_account(desk.tenant, account.thawed(desk.now))
    accounts._tell(desk, "account.thawed", command, {"account": command.account})
    woken = 0
    for held in desk.tx.take_holds(desk.tenant, command.account):
        row = desk.tx.row(held.message_id)
        if row is None or (row.state, row.claims, row.visible_at) != (State.DELAYED, held.claims, held.until):
            continue
        row.visible_at = row.failure_reason = None
        desk.move(row, Change.READY, State.PENDING)
        desk.tx.save([row])
        woken += 1
    return woken


def cancel_conversation(desk: Desk, command: c.CancelConversation) -> int:
    """Every open message of a conversation, but those in queues whose names begin as in `keep`."""
    checks.check_name("correlation_id", command.correlation_id, desk.limits)
    ended = 0
    for found in desk.tx.open_of(desk.tenant, command.correlation_id):
        if desk.tx.queue_by_id(found.queue_id).slug.startswith(command.keep):
            continue
        # A broadcast that was cancelled just now took its deliveries along.
        row = desk.tx.row(found.id)
        if row is not None and row.state in OPEN:
            settle.cancel(desk, c.Cancel(message_id=row.id, reason=command.reason))
            ended += 1
    return ended
