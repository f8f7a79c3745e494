"""Applies commands to a transaction: a group of requests from any callers, each all or nothing.

What the commands name is fetched first, each kind of it at once. A refused command leaves no trace: single
verbs check before they write, and a `Unit` runs in a savepoint.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from postroom.errors import InvalidField, PostroomError
from postroom.kernel import audit, service_handlers
from postroom.kernel import commands as c
from postroom.kernel.costly_checks import NO_ANSWERS, Answers, ChecksNeeded
from postroom.kernel.hooks import KernelHooks
from postroom.kernel.housekeeping import pruning, steps
from postroom.kernel.loading import ALONE, adopt_held, load
from postroom.kernel.ports import Transaction
from postroom.kernel.rules.breaker import Breaker
from postroom.kernel.rules.evaluation import rule_budget
from postroom.kernel.session import Session
from postroom.kernel.transitions import (
    documents,
    due,
    holds,
    leaders,
    priorities,
    publish,
    queues,
    records,
    replay,
    reservations,
    schedules,
    schemas,
    settle,
    subscriptions,
    time_back,
    waits,
)
from postroom.kernel.transitions.claim import ClaimRun
from postroom.kernel.transitions.context import KernelEnvironment, TransitionContext
from postroom.kernel.transitions.publish import PublishRun
from postroom.kernel.transitions.settle import CompletionRun

_AUDIT = attrgetter("audit")
Handler = Callable[[TransitionContext, Any], Any]

HANDLERS: dict[type[c.Command], Handler] = {
    c.CreateScope: queues.create_scope,
    c.UpdateScope: queues.update_scope,
    c.SetScopeState: queues.set_scope_state,
    c.DeleteScope: queues.delete_scope,
    c.CreateQueue: queues.create_queue,
    c.UpdateQueue: queues.update_queue,
    c.SetQueueState: queues.set_queue_state,
    c.DeleteQueue: queues.delete_queue,
    c.Publish: publish.publish,
    c.PublishLike: publish.publish,
    c.Complete: settle.complete,
    c.CompleteMany: settle.complete_many,
    c.Fail: settle.fail,
    c.Release: settle.release,
    c.Extend: settle.extend,
    c.ExtendMany: settle.extend_many,
    c.Snooze: settle.snooze,
    c.Cancel: settle.cancel,
    c.Kill: settle.kill,
    c.Replay: replay.replay,
    c.Discard: replay.discard,
    c.Reprioritise: priorities.reprioritise,
    c.Subscribe: subscriptions.subscribe,
    c.Unsubscribe: subscriptions.unsubscribe,
    c.CheckSeen: subscriptions.check_seen,
    c.RegisterSchema: schemas.register,
    c.AddRecord: records.add_record,
    c.PutSchedule: schedules.put,
    c.DropSchedule: schedules.drop,
    c.RunSchedule: schedules.run_now,
    c.PutDocument: documents.put,
    c.DropDocument: documents.drop,
    c.ExpectDocument: documents.expect,
    c.SetPosition: records.set_position,
    c.Reserve: reservations.reserve,
    c.Settle: reservations.settle,
    c.ReleaseReservation: reservations.release,
    c.SetLimit: reservations.set_limit,
    c.Freeze: reservations.freeze,
    c.Thaw: holds.thaw,
    c.Hold: holds.hold,
    c.CancelConversation: holds.cancel_conversation,
    c.Housekeep: steps.housekeep,
    c.PruneHistory: pruning.prune_history,
    c.ReportRun: steps.report_run,
    c.Lead: leaders.lead,
    c.TakeOver: due.take_over,
    c.SetTimeBack: time_back.set_time_back,
    **service_handlers.HANDLERS,
}


class CommandOutcome(msgspec.Struct):
    """What became of one command: its value, or the error that refused it."""

    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class AppliedGroup(msgspec.Struct, frozen=True):
    """Outcomes in the order of the commands, the lines on which messages became claimable (and how many),
    and whether the ledger has something new."""

    outcomes: list[CommandOutcome]
    woken: Mapping[int, int]
    has_news: bool


class Engine:
    def __init__(self, env: KernelEnvironment, breaker: Breaker | None = None) -> None:
        """The engines of one process share a breaker, or each would count for itself."""
        self._env = env
        self._hooks = KernelHooks(breaker)

    def apply(
        self, tx: Transaction, commands: Sequence[c.Command], answers: Answers = NO_ANSWERS
    ) -> AppliedGroup:
        """Everything is handed to the transaction; the caller commits, or gets what is needed to.

        Claims go last, so that they find what was published in the same group.
        """
        session = Session(tx, self._env.directory(tx.version))
        ctx = TransitionContext(session, self._env, self._hooks, answers)
        if self._env.held is not None:
            adopt_held(ctx, self._env.held, commands)
        if len(commands) == 1:
            outcomes = [self._apply_alone(ctx, commands[0])]
        else:
            outcomes = self._apply_together(ctx, commands)
        if ctx.checks.missing:
            raise ChecksNeeded(ctx.checks.missing)
        if any(map(_AUDIT, commands)) or c.Unit in map(type, commands):
            self._audit(session, commands, outcomes)
        session.flush()
        tx.woken = ctx.woken
        return AppliedGroup(outcomes, ctx.woken, session.has_news)

    def _apply_alone(self, ctx: TransitionContext, command: c.Command) -> CommandOutcome:
        outcome = CommandOutcome()
        if type(command) is c.Claim:
            self._claim(ctx, [(outcome, command)])
            return outcome
        if type(command) not in ALONE:
            load(ctx, (command,))
        ctx.actor, ctx.tenant = command.actor, command.tenant
        try:
            outcome.value = self._apply_one(ctx, command)
        except PostroomError as error:
            outcome.error = error
        self._settle(ctx)
        return outcome

    def _apply_together(self, ctx: TransitionContext, commands: Sequence[c.Command]) -> list[CommandOutcome]:
        """Alike commands next to each other as one."""
        load(ctx, commands)
        outcomes: list[CommandOutcome] = []
        claiming: list[tuple[CommandOutcome, c.Claim]] = []
        completing = CompletionRun(ctx)
        publishing = PublishRun(ctx, len(commands), completing)
        for command in commands:
            outcome = CommandOutcome()
            outcomes.append(outcome)
            if type(command) is c.Claim:
                claiming.append((outcome, command))
                continue
            ctx.actor, ctx.tenant = command.actor, command.tenant
            try:
                if type(command) is c.PublishLike or type(command) is c.Publish:
                    outcome.value = publishing.take(command)
                elif type(command) is c.Complete:
                    outcome.value = completing.take(command.message_id, command.token, command.result)
                else:
                    publishing.end()
                    completing.end()
                    outcome.value = self._apply_one(ctx, command)
            except PostroomError as error:
                outcome.error = error
        publishing.end()
        completing.end()
        self._settle(ctx)
        if claiming:
            self._claim(ctx, claiming)
        return outcomes

    def _audit(self, session: Session, commands: Sequence[c.Command], outcomes: list[CommandOutcome]) -> None:
        applied = [
            (command, outcome.value)
            for command, outcome in zip(commands, outcomes, strict=True)
            if outcome.error is None and (command.audit is not None or type(command) is c.Unit)
        ]
        if applied:
            session.add_audit(audit.complete_entries(applied, session.tx.now))

    def _claim(self, ctx: TransitionContext, claiming: list[tuple[CommandOutcome, c.Claim]]) -> None:
        ctx.actor = "system"
        due.sweep(ctx, limit=due.AT_CLAIM)
        self._settle(ctx)
        run = ClaimRun(ctx, [command for _, command in claiming])
        for outcome, command in claiming:
            ctx.actor, ctx.tenant = command.actor, command.tenant
            try:
                outcome.value = run.add(command)
            except PostroomError as error:
                outcome.error = error
        run.end()
        if self._env.held is not None:
            batches = (outcome.value for outcome, _ in claiming if outcome.error is None)
            self._env.held.keep(stored.row for batch in batches for stored in batch.messages)
        self._settle(ctx)

    def _settle(self, ctx: TransitionContext) -> None:
        """What follows from what was done: broadcasts and waits end, and rules meet what they wait for."""
        while ctx.ended or ctx.triggered or ctx.awaited:
            ctx.complete_broadcasts()
            if ctx.awaited:
                waits.end_waits(ctx)
            if ctx.triggered:
                self._hooks.meet_triggered(ctx)

    def _apply_one(self, ctx: TransitionContext, command: c.Command) -> Any:
        if type(command) is c.Unit:
            return self._apply_unit(ctx, command)
        return HANDLERS[type(command)](ctx, command)

    def _apply_unit(self, ctx: TransitionContext, unit: c.Unit) -> list[Any]:
        for command in unit.commands:
            if isinstance(command, c.Unit | c.Claim | c.CompleteMany | c.Housekeep):
                raise InvalidField("commands", f"a unit of work cannot hold {type(command).__name__}")
        values = []
        with ctx.savepoint(), rule_budget(ctx):
            for command in unit.commands:
                ctx.actor, ctx.tenant = command.actor, command.tenant
                value = HANDLERS[type(command)](ctx, command)
                # The row of a completion is for who reads it at once; callers of a unit get messages.
                values.append(None if isinstance(command, c.Complete) else value)
        return values
