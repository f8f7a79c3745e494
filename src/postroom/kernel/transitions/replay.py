"""Dead letters: back to the queue they came from, or given up for good."""

import msgspec

from postroom.errors import InvalidField, WrongState
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.model import Queue
from postroom.kernel.ports import RowFilter, Shape
from postroom.kernel.rows import Row
from postroom.kernel.states import Change, State
from postroom.kernel.transitions.context import OPEN_STATES, UNREVIEWED, TransitionContext, is_original
from postroom.kernel.transitions.drafts import delivery_data, draft_deliveries

PAGE = 1000


def _dead(ctx: TransitionContext, command: c.Replay | c.Discard, verb: str) -> list[Row]:
    if command.scope is not None:
        if command.message_ids:
            raise InvalidField("scope", "and message ids exclude each other")
        scope = ctx.scope(command.scope)
        home = ctx.dead_letters(ctx.tenant, scope.slug)
        return _dead_of(ctx, home, command)
    ctx.session.load(command.message_ids)
    rows = []
    for message_id in dict.fromkeys(command.message_ids):
        row = ctx.message(message_id)
        state = "archived" if row is None else row.state
        if row is None or row.state != State.DEAD:
            raise WrongState(message_id=message_id, state=state, verb=verb)
        rows.append(row)
    return rows


def _dead_of(ctx: TransitionContext, home: Queue, command: c.DeadLetterCommand) -> list[Row]:
    wanted = RowFilter(queue_ids=(home.id,), states=(State.DEAD,))
    if command.origins is None:
        return ctx.session.find(wanted, limit=command.limit)
    rows: list[Row] = []
    after = 0
    while len(rows) < command.limit:
        found = ctx.session.find(wanted, after=after, limit=PAGE)
        rows += [row for row in found if row.origin_queue_id in command.origins]
        if len(found) < PAGE:
            break
        after = found[-1].seq
    return rows[: command.limit]


def _check_limit(ctx: TransitionContext, limit: int) -> None:
    checks.check_count("limit", limit, least=1, most=ctx.limits.claim_batch)


def replay(ctx: TransitionContext, command: c.Replay) -> list[str]:
    """All or none of the ids, each with a clean slate of attempts.

    It goes to the end of a fifo queue, and by rank and age elsewhere. Of a whole scope, deliveries whose
    subscriber is gone stay where they are; asked for by id, they are an error.
    """
    _check_limit(ctx, command.limit)
    rows = _replayable(ctx, command)
    # A broadcast goes to all its subscribers anew, also to those who had given it up.
    anew = {row.id for row in rows if row.subscription_id is None}
    revived = []
    for row in rows:
        if row.subscription_id is not None and (row.parent_id in anew or _on_its_way(ctx, row)):
            ctx.move(row, Change.DISCARDED, State.CANCELLED)
        else:
            _revive(ctx, row)
            revived.append(row.id)
    return revived


def _replayable(ctx: TransitionContext, command: c.Replay) -> list[Row]:
    if command.scope is None:
        rows = _dead(ctx, command, "replayed")
        for row in rows:
            if _addressee(ctx, row) is None:
                raise WrongState(message_id=row.id, state="dead and its subscriber gone", verb="replayed")
        return rows
    asked = command.limit
    while True:
        found = _dead(ctx, msgspec.structs.replace(command, limit=asked), "replayed")
        rows = [row for row in found if _addressee(ctx, row) is not None]
        if len(rows) >= command.limit or len(found) < asked:
            return rows[: command.limit]
        asked *= 4


def _on_its_way(ctx: TransitionContext, row: Row) -> bool:
    """Whether its subscriber is being given the same broadcast again already."""
    assert row.parent_id is not None, "a delivery knows its broadcast"
    wanted = RowFilter(parent_id=row.parent_id, kind="delivery", states=OPEN_STATES)
    return any(other.subscription_id == row.subscription_id for other in ctx.session.find(wanted))


def _addressee(ctx: TransitionContext, row: Row) -> int | None:
    """The queue or subscription it came from, when that is still there."""
    assert row.origin_queue_id is not None, "a dead letter knows where it came from"
    if row.subscription_id is None:
        return row.origin_queue_id
    known = {subscription.id for subscription in ctx.session.subscriptions(row.origin_queue_id)}
    return row.subscription_id if row.subscription_id in known else None


def _revive(ctx: TransitionContext, row: Row) -> None:
    assert row.origin_queue_id is not None, "a dead letter knows where it came from"
    queue, home = ctx.session.queue_by_id(row.origin_queue_id), ctx.session.queue_by_id(row.queue_id)
    row.attempts = 0
    row.visible_at = None
    # What ran out of time before would only expire again; it gets the time it had, anew.
    if row.expires_at is not None and row.expires_at <= ctx.now:
        row.expires_at = ctx.now + max(row.expires_at - row.created_at, 1)
    ctx.reorder(row, queue, entered_at=ctx.now)
    ctx.tally(row, home, -1)
    row.queue_id, row.origin_queue_id = queue.id, None
    ctx.tally(row, queue, 1)
    ctx.move(row, Change.REPLAYED, State.PENDING, shape=Shape.MOVED)
    if is_original(row, queue):
        broadcast_anew(ctx, row, queue)
    elif row.failure_kind in UNREVIEWED and ctx.has_rules(row.scope_id):
        # Nobody has decided about it: who replays it lets it ask again.
        ctx.triggered.append((row.id, "message_published", queue.id, row.attempts))


def broadcast_anew(ctx: TransitionContext, row: Row, queue: Queue) -> None:
    reached = {delivery.subscription_id for delivery in ctx.open_deliveries(row)}
    subscriptions = [each for each in ctx.session.subscriptions(queue.id) if each.id not in reached]
    deliveries = draft_deliveries(ctx, row, subscriptions)
    content = ctx.session.content(row)
    ctx.admit(deliveries, queue, [delivery_data(delivery, content) for delivery in deliveries])
    ctx.session.add(deliveries, [content] * len(deliveries))
    if not deliveries and not reached:
        ctx.move(row, Change.COMPLETED, State.COMPLETED)


def discard(ctx: TransitionContext, command: c.Discard) -> list[str]:
    _check_limit(ctx, command.limit)
    rows = _dead(ctx, command, "discarded")
    for row in rows:
        ctx.move(row, Change.DISCARDED, State.CANCELLED)
    return [row.id for row in rows]
