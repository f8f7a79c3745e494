"""What the holder of a claim may do with it, and how an open message is ended from outside.

A claim is its token. It stays good until the message is settled, given back or taken over: a holder that is
late but was not replaced may still finish.
"""

from typing import Any

from postroom.clock import micros
from postroom.errors import BodyTooLarge, ClaimLost, InvalidField, PostroomError, WrongState
from postroom.kernel import checks, jsontext
from postroom.kernel import commands as c
from postroom.kernel.backoff import backoff_s
from postroom.kernel.model import REVIEW
from postroom.kernel.ports import Shape
from postroom.kernel.rows import Row
from postroom.kernel.states import OPEN, Change, State
from postroom.kernel.transitions.context import TransitionContext
from postroom.kernel.transitions.due import lease_end


def _held(ctx: TransitionContext, command: c.ClaimCommand) -> Row:
    row = ctx.message(command.message_id)
    if row is None or row.state != State.CLAIMED or row.token != command.token:
        raise _lost(row, command.message_id)
    return row


def _lost(row: Row | None, message_id: str) -> ClaimLost:
    if row is None:
        return ClaimLost(message_id=message_id, state="archived")
    state = f"claimed by {row.claimed_by}" if row.state == State.CLAIMED else row.state
    return ClaimLost(message_id=row.id, state=state)


class CompletionRun:
    """Completions one after the other; those of which nothing follows are carried out with the `end`."""

    __slots__ = ("_actor", "_ctx", "_plain")

    def __init__(self, ctx: TransitionContext) -> None:
        self._ctx = ctx
        self._actor = ctx.actor
        self._plain: dict[str, Row] = {}

    def end(self) -> None:
        if self._plain:
            rows, self._plain = self._plain, {}
            self._ctx.complete(list(rows.values()), self._actor)

    def take(self, message_id: str, token: str, result: Any) -> Row | None:
        """Ends the work. Saying it again with the same token is no error: a lost answer may be retried.

        The row as it is then; None when rules may change the message before the commit."""
        ctx = self._ctx
        if ctx.actor != self._actor:
            self.end()
            self._actor = ctx.actor
        encoded = None if result is None else _encode_result(ctx, result)
        row = ctx.message(message_id)
        if row is None or row.token != token:
            raise _lost(row, message_id)
        if row.state == "claimed":
            if row.parent_id is None and not ctx.has_rules(row.scope_id):
                if row.id not in self._plain:
                    row.result = encoded
                    self._plain[row.id] = row
                return row
            row.result = encoded
            ctx.complete((row,), ctx.actor)
        elif row.state == State.PENDING:
            # The lease ran out, and nobody was given the message since: the work is done.
            row.result = encoded
            ctx.move(row, Change.COMPLETED, State.COMPLETED, late=True)
        elif row.state == State.COMPLETED:
            return row
        else:
            raise _lost(row, message_id)
        if row.parent_id is None:
            return None if ctx.has_rules(row.scope_id) else row
        if row.subscription_id is not None:
            ctx.end_delivery(row)
        elif row.message_type == REVIEW:
            ctx.hooks.give_up_review(ctx, row, "it was completed without an answer", result)
        return None


def _encode_result(ctx: TransitionContext, result: Any) -> bytes:
    encoded = jsontext.encode_strict(result, "result")
    if len(encoded) > ctx.limits.body_bytes:
        raise BodyTooLarge(what="result", size=len(encoded), limit=ctx.limits.body_bytes)
    return encoded


def complete(ctx: TransitionContext, command: c.Complete) -> Row | None:
    run = CompletionRun(ctx)
    row = run.take(command.message_id, command.token, command.result)
    run.end()
    return row


def complete_many(ctx: TransitionContext, command: c.CompleteMany) -> list[Row | PostroomError | None]:
    """As `complete` for each, or why it was refused."""
    if len(command.done) > ctx.limits.claim_batch:
        raise InvalidField("done", f"has {len(command.done)}, at most {ctx.limits.claim_batch} at once")
    run = CompletionRun(ctx)
    outcomes: list[Row | PostroomError | None] = []
    for message_id, token, result in command.done:
        try:
            outcomes.append(run.take(message_id, token, result))
        except PostroomError as error:
            outcomes.append(error)
    run.end()
    return outcomes


def fail(ctx: TransitionContext, command: c.Fail) -> None:
    """Tried again after a pause while attempts are left, else a dead letter."""
    if command.delay_s is not None:
        checks.check_seconds("delay_s", command.delay_s, least=0, most=checks.YEAR_S)
    checks.check_text("kind", command.kind, ctx.limits)
    row = _held(ctx, command)
    settings = ctx.session.queue_by_id(row.queue_id).settings
    reason = checks.reason_text(command.reason, ctx.limits)
    if not command.retry or row.attempts >= settings.max_retries:
        ctx.bury(row, reason, command.kind)
        return
    row.failure_reason, row.failure_kind = reason, command.kind
    pause = command.delay_s
    if pause is None:
        pause = backoff_s(settings.backoff_base_s, settings.backoff_cap_s, row.attempts, ctx.rng)
    _back(ctx, row, Change.FAILED, ctx.now + micros(pause), reason=reason[:200], kind=command.kind)


def _back(ctx: TransitionContext, row: Row, change: Change, visible_at: int, **data: Any) -> None:
    later = visible_at > ctx.now
    row.visible_at = visible_at if later else None
    ctx.move(row, change, State.DELAYED if later else State.PENDING, visible_at=row.visible_at, **data)


def release(ctx: TransitionContext, command: c.Release) -> None:
    """Given back untouched: it keeps its place, and the attempt does not count."""
    row = _held(ctx, command)
    if _worn_out(ctx, row):
        return
    row.attempts -= 1
    ctx.move(row, Change.RELEASED, State.PENDING)


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
    lease_until = lease_end(ctx, row, ctx.now + micros(_lease(ctx, command.lease_s, row)))
    _extend(ctx, [row], [lease_until])
    return lease_until


def extend_many(ctx: TransitionContext, command: c.ExtendMany) -> dict[str, int]:
    """The new ends of the leases by message; of those not among them the claim is lost."""
    if len(command.claims) > ctx.limits.claim_batch:
        raise InvalidField("claims", f"has {len(command.claims)}, at most {ctx.limits.claim_batch} at once")
    held: dict[str, Row] = {}
    for message_id, token in command.claims:
        row = ctx.session.row(message_id) if checks.is_text(message_id) else None
        if row is not None and row.tenant == ctx.tenant and (row.state, row.token) == (State.CLAIMED, token):
            held[row.id] = row
    ends = [lease_end(ctx, row, ctx.now + micros(_lease(ctx, command.lease_s, row))) for row in held.values()]
    _extend(ctx, list(held.values()), ends)
    return dict(zip(held, ends, strict=True))


def _lease(ctx: TransitionContext, seconds: float | None, row: Row) -> float:
    if seconds is None:
        return ctx.session.queue_by_id(row.queue_id).settings.visibility_timeout_s
    checks.check_seconds("lease_s", seconds, least=0.001, most=ctx.limits.lease_s)
    return seconds


def _extend(ctx: TransitionContext, rows: list[Row], ends: list[int]) -> None:
    """Heartbeats would drown the ledger, so of a claim's only the first has a line, and then each time the
    claim is twice as old; those of one call have it together."""
    lines = [(row, end) for row, end in zip(rows, ends, strict=True) if _has_line(row, ctx.now)]
    for row, lease_until in zip(rows, ends, strict=True):
        row.lease_until, row.due_at = lease_until, max(lease_until, ctx.now)
        row.updated_at = ctx.now
        ctx.session.touch(row, Shape.EXTENDED)
    if len(lines) == 1:
        [(row, lease_until)] = lines
        queue = ctx.session.queue_by_id(row.queue_id)
        ctx.emit_change(row, Change.EXTENDED, queue, {"lease_until": lease_until})
    elif lines:
        ctx.emit("claims.extended", data={"messages": {row.id: end for row, end in lines}})


def _has_line(row: Row, now: int) -> bool:
    """Whether a claim that is extended now has doubled its age since it was last."""
    assert row.claimed_at is not None, "a claim has a beginning"
    before = row.updated_at - row.claimed_at
    return before <= 0 or (now - row.claimed_at).bit_length() > before.bit_length()


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
    ctx.end_delivery(row)
    ctx.hooks.give_up_review(ctx, row, command.reason)


def kill(ctx: TransitionContext, command: c.Kill) -> None:
    row = _open(ctx, command.message_id, "ended as a dead letter")
    ctx.bury_all(row, command.reason, "guard")
