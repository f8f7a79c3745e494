"""Rules and reviews, called by the transitions when a message is published, ends, or runs out of time."""

from collections.abc import Sequence
from typing import Any

from postroom.kernel.model import NewMessage, Queue
from postroom.kernel.reviews import answering, publishing, timeouts
from postroom.kernel.rows import Row
from postroom.kernel.rules.breaker import Breaker
from postroom.kernel.rules.evaluation import RuleEvaluation
from postroom.kernel.transitions.context import TransitionContext


class KernelHooks:
    def __init__(self, breaker: Breaker | None = None) -> None:
        self._rules = RuleEvaluation(breaker)

    def rules_of(self, ctx: TransitionContext, scope_id: int) -> Sequence[Any]:
        return self._rules.rules_of(ctx, scope_id)

    def meet_rules(self, ctx: TransitionContext, message_ids: Sequence[str]) -> None:
        self._rules.meet_published(ctx, message_ids)

    def meet_triggered(self, ctx: TransitionContext) -> None:
        self._rules.meet_triggered(ctx)

    def prepare_review(
        self, ctx: TransitionContext, queue: Queue, message: NewMessage
    ) -> tuple[NewMessage, int | None]:
        message, until = publishing.prepare_review(ctx.session, queue, message, ctx.now)
        publishing.check_ways(ctx.session, queue, message.hitl_spec)
        return message, until

    def is_review(self, ctx: TransitionContext, row: Row) -> bool:
        return answering.is_review(ctx.session.content(row))

    def time_out_review(self, ctx: TransitionContext, row: Row) -> bool:
        return timeouts.time_out(ctx, row)

    def give_up_review(self, ctx: TransitionContext, row: Row, reason: str, answer: Any = None) -> None:
        timeouts.give_up(ctx, row, reason, answer)
