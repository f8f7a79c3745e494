"""Rules at work: what was triggered is matched and acted on before the transaction ends.

Nothing that goes wrong in a rule refuses the change that triggered it: the message stays where it is, and the
scope's `_integrity` queue tells what happened. Only where a person was to be asked first it does not stay:
a message about which nobody could be asked is a dead letter, which asks again when it is retried.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from postroom.clock import micros
from postroom.errors import PostroomError
from postroom.kernel.access.permissions import Permission
from postroom.kernel.access.reach import may_act
from postroom.kernel.model import INTEGRITY, NewMessage, Queue
from postroom.kernel.ports import MANY
from postroom.kernel.rows import Content, Row
from postroom.kernel.rule_budget import RuleBudget, RuleBudgetSpent
from postroom.kernel.rules.actions import AppliedAction
from postroom.kernel.rules.breaker import MOST_HOPS, MOST_MATCHES, REST_S, Breaker, ProcessBreaker
from postroom.kernel.rules.matching import (
    SLOW_S,
    RuleMatch,
    answered,
    considered,
    costly_check,
    fact_sizes,
    facts_of,
    is_costly,
    looks,
)
from postroom.kernel.rules.rule import KIND, Rule, Trigger, ordered, written
from postroom.kernel.states import WAITING, State
from postroom.kernel.transitions.context import NOT_ASKED, TransitionContext, is_original
from postroom.kernel.transitions.publish import publish_one

log = logging.getLogger("postroom.rules")

KEEP_S = 30 * 24 * 3600
# What a message must be for a trigger still to be true of it.
FITTING = {
    Trigger.PUBLISHED: frozenset({State.PENDING, State.DELAYED}),
    Trigger.COMPLETED: frozenset({State.COMPLETED}),
    Trigger.FAILED: frozenset({State.PENDING, State.DELAYED}),
    Trigger.DEAD_LETTERED: frozenset({State.DEAD}),
    Trigger.EXPIRED: frozenset({State.EXPIRED}),
}


class RuleEvaluation:
    """How often rules have met conversations lately is remembered by the breaker, which threads may share."""

    def __init__(self, breaker: Breaker | None = None) -> None:
        self._breaker = breaker or ProcessBreaker()

    def rules_of(self, ctx: TransitionContext, scope_id: int) -> list[Rule]:
        directory, key = ctx.session.directory, (KIND, scope_id)
        found = directory.notes.get(key)
        if found is None:
            tenant = ctx.session.scope_by_id(scope_id).tenant
            found = ordered(ctx.session.documents(tenant, KIND, f"{scope_id}/", "", MANY))
            directory.notes[key] = found
        return found

    def meet_published(self, ctx: TransitionContext, message_ids: Sequence[str]) -> None:
        """Messages of one command, or the copies a rule has made, which spend what is left of its budget."""
        if ctx.rule_budget is not None and ctx.rule_budget.is_acting:
            ctx.rule_budget.copies += message_ids
            return
        with rule_budget(ctx) as budget:
            for message_id in message_ids:
                _add_root(ctx, budget, message_id)
                self.meet(ctx, message_id, Trigger.PUBLISHED)
                self._meet_copies(ctx, budget)

    def meet_triggered(self, ctx: TransitionContext) -> None:
        """Everything that was triggered so far, and what that triggers in turn."""
        done: set[tuple[str, str, int]] = set()
        actor, tenant = ctx.actor, ctx.tenant
        # One for each tenant: what was triggered by others is not kept waiting by what one has spent.
        budgets: dict[str, RuleBudget] = {}
        roots = len(ctx.triggered)
        while ctx.triggered:
            message_id, trigger, queue_id, attempts = ctx.triggered.pop(0)
            roots -= 1
            row = ctx.session.row(message_id)
            if row is not None and (message_id, trigger, attempts) not in done:
                done.add((message_id, trigger, attempts))
                budget = budgets.setdefault(row.tenant, RuleBudget(ctx.limits))
                if roots >= 0:
                    _add_root(ctx, budget, message_id)
                ctx.rule_budget = budget
                self.meet(ctx, message_id, Trigger(trigger), queue_id)
                self._meet_copies(ctx, budget)
        ctx.actor, ctx.tenant, ctx.rule_budget = actor, tenant, None

    def _meet_copies(self, ctx: TransitionContext, budget: RuleBudget) -> None:
        while budget.copies:
            self.meet(ctx, budget.copies.pop(0), Trigger.PUBLISHED)

    def meet(
        self, ctx: TransitionContext, message_id: str, trigger: Trigger, queue_id: int | None = None
    ) -> None:
        """Let a message meet the rules of its scope; again in each queue a rule moves it to."""
        moved, budget = False, ctx.rule_budget
        assert budget is not None, "whoever lets rules be met says how much they may make"
        while True:
            row = ctx.session.row(message_id)
            if row is None or row.state not in FITTING[trigger]:
                return
            queue = ctx.session.queue_by_id(row.queue_id if queue_id is None else queue_id)
            if queue.system or row.subscription_id is not None:
                return
            if budget.is_spent:
                self._pass_by(ctx, row, queue, trigger, moved)
                return
            if not self._meet_once(ctx, budget, row, queue, trigger, moved):
                return
            trigger, queue_id, moved = Trigger.PUBLISHED, None, True

    def _pass_by(self, ctx: TransitionContext, row: Row, queue: Queue, trigger: Trigger, moved: bool) -> None:
        """No rule is tried any more; where one might have asked a person, nobody gets the message."""
        rules = self._applicable(ctx, row, queue)
        gates = looks(
            [rule for rule in rules if rule.asks_first],
            {},
            trigger,
            queue.id,
            ctx.now,
            moved=moved,
            consider=lambda rule, _: RuleMatch(rule, True, "", 0.0),
        )
        if gates:
            why = "the rules met by its command had made or looked at too much already"
            _give_up(ctx, gates[0].rule, row, queue, "rule.failed", why)

    def _applicable(self, ctx: TransitionContext, row: Row, queue: Queue) -> list[Rule]:
        content = ctx.session.content(row)
        return [
            rule
            for rule in self.rules_of(ctx, queue.scope_id)
            if not _has_made(rule, content)
            and may_act(ctx.session, queue, rule.acts_as, Permission.MANAGE, ctx.now)
        ]

    def _meet_once(
        self,
        ctx: TransitionContext,
        budget: RuleBudget,
        row: Row,
        queue: Queue,
        trigger: Trigger,
        moved: bool,
    ) -> bool:
        """Whether the message was moved, so that it meets the rules of its new queue."""
        content = ctx.session.content(row)
        facts = facts_of(row, content, queue.scope, queue.slug, ctx.now)
        rules = self._applicable(ctx, row, queue)
        sizes = fact_sizes(row, content)

        def consider(rule: Rule, facts: dict[str, Any]) -> RuleMatch:
            if not is_costly(rule, sizes):
                return considered(rule, facts)
            return answered(rule, ctx.checks.ask(costly_check(rule, facts)))

        found = looks(rules, facts, trigger, queue.id, ctx.now, moved=moved, consider=consider)
        if not found:
            return False
        try:
            budget.spend_looks(len(found))
        except RuleBudgetSpent as error:
            _trip(ctx, found[-1].rule, row, queue, str(error))
            self._pass_by(ctx, row, queue, trigger, moved)
            return False
        for look in found:
            if look.seconds >= SLOW_S and not look.rule.asks_first:
                _trip(ctx, look.rule, row, queue, f"it took {look.seconds:.2f} s to look at one message")
        rule = found[-1].rule
        if not found[-1].matched:
            if found[-1].decides:
                _give_up(ctx, rule, row, queue, "rule.failed", found[-1].why)
            return False
        if row.hop >= MOST_HOPS:
            why = f"the message was passed on {row.hop} times, which is the limit"
            _give_up(ctx, rule, row, queue, "rule.hop_limit", why)
            return False
        if not rule.asks_first and self._breaker.trips(ctx, rule.id, row):
            why = f"it matched one conversation more than {MOST_MATCHES} times within a minute"
            _trip(ctx, rule, row, queue, why)
            return False
        return _act(ctx, budget, rule, row.id, queue, facts)


@contextmanager
def rule_budget(ctx: TransitionContext) -> Iterator[RuleBudget]:
    """What rules may make of the command that is carried out: begun here, unless it has begun."""
    before = ctx.rule_budget
    ctx.rule_budget = before or RuleBudget(ctx.limits)
    try:
        yield ctx.rule_budget
    finally:
        ctx.rule_budget = before


def _add_root(ctx: TransitionContext, budget: RuleBudget, message_id: str) -> None:
    row = ctx.session.row(message_id)
    if row is not None:
        budget.add_root(len(ctx.session.content(row).body or b""))


def _has_made(rule: Rule, content: Content) -> bool:
    return content.source_type == "rule" and content.source_id == rule.id


def _act(
    ctx: TransitionContext,
    budget: RuleBudget,
    rule: Rule,
    message_id: str,
    queue: Queue,
    facts: dict[str, Any],
) -> bool:
    actor, tenant = ctx.actor, ctx.tenant
    ctx.actor, ctx.tenant = f"rule:{rule.id}", queue.tenant
    budget.is_acting = True
    try:
        with ctx.savepoint():
            return AppliedAction(ctx, rule, _live(ctx, message_id), facts).do()
    except RuleBudgetSpent as error:
        _trip(ctx, rule, _live(ctx, message_id), queue, str(error))
    except PostroomError as error:
        _give_up(ctx, rule, _live(ctx, message_id), queue, "rule.failed", f"it could not act: {error}")
    except Exception as error:
        log.exception("the rule %s failed in an unforeseen way", rule.id)
        why = f"it could not act: {type(error).__name__}"
        _give_up(ctx, rule, _live(ctx, message_id), queue, "rule.failed", why)
    finally:
        budget.is_acting = False
        ctx.actor, ctx.tenant = actor, tenant
    return False


def _live(ctx: TransitionContext, message_id: str) -> Row:
    row = ctx.session.row(message_id)
    assert row is not None, "it was there a moment ago"
    return row


def _trip(ctx: TransitionContext, rule: Rule, row: Row, queue: Queue, why: str) -> None:
    """The rule rests for a while, and says so."""
    if rule.asks_first:
        _give_up(ctx, rule, row, queue, "rule.failed", why)
        return
    until = ctx.now + micros(REST_S)
    rested = msgspec.structs.replace(rule, tripped_until=until, tripped_why=why)
    before = ctx.session.document(row.tenant, KIND, f"{queue.scope_id}/{rule.id}")
    if before is None or before.gone:
        return
    ctx.session.put_document(row.tenant, before.changed(written(rested), ctx.now))
    _report(ctx, "rule.tripped", rule, row, queue, f"{why}; it rests for {REST_S} s")


def _give_up(ctx: TransitionContext, rule: Rule, row: Row, queue: Queue, kind: str, why: str) -> None:
    """The rule does nothing, and says why. If it was to ask a person first, nobody gets the message."""
    if not rule.asks_first or row.state not in WAITING or is_original(row, queue):
        _report(ctx, kind, rule, row, queue, f"{why}; it stays in {queue.path}")
        return
    row.visible_at = None
    ctx.bury(row, f"the rule {rule.name!r} was to ask a person about it, but: {why}", NOT_ASKED)
    _report(ctx, kind, rule, row, queue, f"{why}; nobody was asked, so it is a dead letter")


def _report(ctx: TransitionContext, kind: str, rule: Rule, row: Row, queue: Queue, why: str) -> None:
    """An event of the ledger, and a message for whoever looks after the scope; one a minute is enough."""
    actor, tenant = ctx.actor, ctx.tenant
    ctx.actor, ctx.tenant = f"rule:{rule.id}", row.tenant
    data = {"rule": rule.id, "name": rule.name, "message_id": row.id, "hops": row.hop, "why": why}
    ctx.emit(kind, scope=queue.scope, queue=queue.slug, data=data)
    finding = NewMessage(
        body={**data, "queue": queue.slug, "correlation_id": row.correlation_id, "trigger": rule.trigger},
        message_type=kind,
        idempotency_key=f"{kind}:{rule.id}:{row.id}:{ctx.now // (60 * 1_000_000)}",
        correlation_id=row.correlation_id,
        causation_id=row.id,
        ttl_s=KEEP_S,
        source_type="rule",
        source_id=rule.id,
    )
    try:
        with ctx.savepoint():
            publish_one(ctx, ctx.queue(f"{queue.scope}/{INTEGRITY}"), finding)
    except PostroomError as error:
        # The same finding in other words within the minute, or a scope that takes nothing: the ledger has it.
        log.info("a finding was not published: %s", error)
    finally:
        ctx.actor, ctx.tenant = actor, tenant
