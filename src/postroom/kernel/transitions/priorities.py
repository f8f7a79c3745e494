"""Changing where a waiting message stands in its queue."""

from postroom.errors import WrongState
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.model import Ordering, Queue
from postroom.kernel.rows import Row
from postroom.kernel.states import WAITING, Change, State
from postroom.kernel.transitions.context import TransitionContext


def reprioritise(ctx: TransitionContext, command: c.Reprioritise) -> None:
    row = ctx.message(command.message_id)
    if row is None or row.state not in WAITING:
        state = "archived" if row is None else row.state
        raise WrongState(message_id=command.message_id, state=state, verb="given another priority")
    tier = row.priority_tier if command.tier is None else command.tier
    score = row.priority_score if command.score is None else command.score
    checks.check_priority(tier, score)
    for each in ctx.with_deliveries(row):
        if each.state in WAITING:
            each.priority_tier, each.priority_score = tier, score
            reposition(ctx, each, ctx.session.queue_by_id(each.queue_id))


def reposition(ctx: TransitionContext, row: Row, queue: Queue, *, anew: bool = False) -> None:
    """Put an open row where its priority says; `anew`, by whatever the queue now orders by."""
    if anew or queue.settings.ordering is Ordering.PRIORITY:
        ctx.reorder(row, queue, entered_at=row.created_at)
    ctx.move(row, Change.REORDERED, State(row.state), tier=row.priority_tier, score=row.priority_score)
