"""What the holder of a claim may do with it, and how an open message is ended from outside.

A claim is its token. It stays good until the message is settled, given back or taken over: a holder that is
late but was not replaced may still finish.
"""

from collections.abc import Sequence

from postroom.clock import micros
from postroom.errors import BodyTooLarge, ClaimLost, InvalidField, WrongState
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.backoff import backoff_s
from postroom.kernel.reviews import timeouts
from postroom.kernel.reviews.answering import REVIEW
from postroom.kernel.rows import Row
from postroom.kernel.states import OPEN, Change, State
from postroom.kernel.transitions.context import TransitionContext


def _held(ctx: TransitionContext, command: c.ClaimCommand) -> Row:
    return _check_held(ctx.message(command.message_id), command)


def _check_held(row: Row | None, command: c.ClaimCommand) -> Row:
    if row is None:
        raise ClaimLost(message_id=command.message_id, state="archived")
    if row.state != State.CLAIMED or row.token != command.token:
        raise ClaimLost(message_id=row.id, state=_seen_state(row))
    return row


def _seen_state(row: Row) -> str:
    return f"claimed by {row.claimed_by}" if row.state == State.CLAIMED else row.state


class CompleteRun:
    """Completions of one group: rows are fetched and saved together, as long as nothing else happens."""

    def __init__(self, ctx: TransitionContext, commands: Sequence[c.Complete] = ()) -> None:
        self._ctx = ctx
        self._ids = [command.message_id for command in commands]
        self._rows: dict[str, Row] | None = None
        self._done: list[Row] = []

    def flush(self) -> None:
        """Rows fetched so far may be out of date after whatever comes next, so they are forgotten."""
        self._save()
        self._rows = None

    def _save(self) -> None:
        if self._done:
            self._ctx.tx.save_completed(self._done)
            self._done = []

    def add(self, command: c.Complete) -> None:
        """Ends the work. Saying it again with the same token is no error: a lost answer may be retried."""
        ctx = self._ctx
        result = None if command.result is None else jsontext.encode_strict(command.result, "result")
        if result is not None and len(result) > ctx.limits.body_bytes:
            raise BodyTooLarge(what="result", size=len(result), limit=ctx.limits.body_bytes)
        row = self._row(command)
        if row is not None and row.state == State.COMPLETED and row.token == command.token:
            return
        row = _check_held(row, command)
        row.result = result
        ctx.complete(row)
        self._done.append(row)
        if row.parent_id is not None:
            self._tell_parent(row, row.parent_id, command)

    def _tell_parent(self, row: Row, parent_id: str, command: c.Complete) -> None:
        """A broadcast ends with its last delivery, and a message may wait for its review."""
        if row.subscription_id is None and row.message_type != REVIEW:
            return
        self._save()
        if row.subscription_id is None:
            timeouts.given_up(self._ctx, row, "it was completed without an answer", command.result)
        else:
            self._ctx.delivery_ended(row)
        # Of the rows that were fetched, no other can have changed.
        if self._rows is not None:
            self._rows.pop(parent_id, None)

    def _row(self, command: c.Complete) -> Row | None:
        if self._rows is None:
            several = len(self._ids) > 1
            self._rows = {row.id: row for row in self._ctx.tx.rows(self._ids)} if several else {}
        row = self._rows.get(command.message_id)
        if row is not None and row.tenant == self._ctx.tenant:
            return row
        return self._ctx.message(command.message_id)


def complete(ctx: TransitionContext, command: c.Complete) -> None:
    run = CompleteRun(ctx)
    run.add(command)
    run.flush()


def fail(ctx: TransitionContext, command: c.Fail) -> None:
    """Tried again after a pause while attempts are left, else a dead letter."""
    if command.delay_s is not None:
        checks.check_seconds("delay_s", command.delay_s, least=0, most=checks.YEAR_S)
    checks.check_text("kind", command.kind, ctx.limits)
    row = _held(ctx, command)
    settings = ctx.tx.queue_by_id(row.queue_id).settings
    reason = checks.reason_text(command.reason, ctx.limits)
    if not command.retry or row.attempts >= settings.max_retries:
        ctx.bury(row, reason, command.kind)
        return
    row.failure_reason, row.failure_kind = reason, command.kind
    pause = command.delay_s
    if pause is None:
        pause = backoff_s(settings.backoff_base_s, settings.backoff_cap_s, row.attempts, ctx.rng)
    _back(ctx, row, Change.FAILED, ctx.now + micros(pause), reason=reason[:200], kind=command.kind)


def _back(ctx: TransitionContext, row: Row, change: Change, visible_at: int, **data: object) -> None:
    later = visible_at > ctx.now
    row.visible_at = visible_at if later else None
    ctx.move(row, change, State.DELAYED if later else State.PENDING, visible_at=row.visible_at, **data)
    ctx.tx.save([row])


def release(ctx: TransitionContext, command: c.Release) -> None:
    """Given back untouched: it keeps its place, and the attempt does not count."""
    row = _held(ctx, command)
    if _worn_out(ctx, row):
        return
    row.attempts -= 1
    ctx.move(row, Change.RELEASED, State.PENDING)
    ctx.tx.save([row])


def snooze(ctx: TransitionContext, command: c.Snooze) -> None:
    """Later, without counting an attempt."""
    until = _until(ctx, command)
    row = _held(ctx, command)
    if _worn_out(ctx, row):
        return
    row.attempts -= 1
    row.visible_at = max(until, ctx.now + 1)
    reason = None
    if command.reason is not None:
        row.failure_reason = checks.reason_text(command.reason, ctx.limits)
        reason = row.failure_reason[:200]
    ctx.move(row, Change.SNOOZED, State.DELAYED, visible_at=row.visible_at, reason=reason)
    ctx.tx.save([row])


def _until(ctx: TransitionContext, command: c.Snooze) -> int:
    if (command.seconds is None) == (command.until is None):
        raise InvalidField("until", "give either seconds or until")
    if command.until is not None:
        checks.check_moment("until", command.until)
        return command.until
    checks.check_seconds("seconds", command.seconds, least=0, most=checks.YEAR_S)
    return ctx.now + micros(command.seconds or 0)


def _worn_out(ctx: TransitionContext, row: Row) -> bool:
    """Coming back without counting must end too: a message cannot circle for ever."""
    if row.claims < ctx.limits.claims_per_message:
        return False
    ctx.bury(row, f"claimed {row.claims} times without an outcome", "worn_out")
    return True


def extend(ctx: TransitionContext, command: c.Extend) -> int:
    """The lease begins anew from now; answers with its new end."""
    row = _held(ctx, command)
    seconds = command.lease_s
    if seconds is None:
        seconds = ctx.tx.queue_by_id(row.queue_id).settings.visibility_timeout_s
    else:
        checks.check_seconds("lease_s", seconds, least=0.001, most=ctx.limits.lease_s)
    row.lease_until = ctx.now + micros(seconds)
    ctx.move(row, Change.EXTENDED, State.CLAIMED, lease_until=row.lease_until)
    ctx.tx.save([row])
    return row.lease_until


def _open(ctx: TransitionContext, message_id: str, verb: str) -> Row:
    row = ctx.message(message_id)
    if row is None:
        raise WrongState(message_id=message_id, state="archived", verb=verb)
    if row.state not in OPEN:
        raise WrongState(message_id=message_id, state=row.state, verb=verb)
    return row


def cancel(ctx: TransitionContext, command: c.Cancel) -> None:
    """Never again. A holder learns of it when it next uses its claim; a broadcast ends for everybody."""
    row = _open(ctx, command.message_id, "cancelled")
    for each in ctx.with_deliveries(row):
        ctx.cancel(each, command.reason)
    ctx.delivery_ended(row)
    timeouts.given_up(ctx, row, command.reason)


def kill(ctx: TransitionContext, command: c.Kill) -> None:
    row = _open(ctx, command.message_id, "ended as a dead letter")
    ctx.bury_all(row, command.reason, "guard")
