"""Applies commands to a transaction: a group of requests from any callers, each all or nothing.

A refused command leaves no trace: single verbs check before they write, and a `Unit` runs in a savepoint.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from postroom.errors import InvalidField, PostroomError
from postroom.kernel import audit
from postroom.kernel import commands as c
from postroom.kernel.budgets import holds, reservations
from postroom.kernel.housekeeping import steps
from postroom.kernel.ports import Transaction
from postroom.kernel.transitions import (
    documents,
    due,
    priorities,
    queues,
    records,
    replay,
    schemas,
    service_documents,
    settle,
    subscriptions,
)
from postroom.kernel.transitions.claim import ClaimRun
from postroom.kernel.transitions.context import KernelEnvironment, TransitionContext
from postroom.kernel.transitions.publish import PublishRun
from postroom.kernel.transitions.settle import CompleteRun

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
    c.Complete: settle.complete,
    c.Fail: settle.fail,
    c.Release: settle.release,
    c.Extend: settle.extend,
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
    c.ReportRun: steps.report_run,
    c.Lead: steps.lead,
    c.TakeOver: due.take_over,
    **service_documents.HANDLERS,
}


class CommandOutcome:
    """What became of one command: its value, or the error that refused it."""

    __slots__ = ("error", "value")

    def __init__(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value = value
        self.error = error

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


Run = TypeVar("Run", PublishRun, CompleteRun, None)


def _next_run(before: PublishRun | CompleteRun | None, after: Run) -> Run:
    """What a run has gathered is written before anything of another kind looks at it."""
    if before is not None:
        before.flush()
    return after


def _completions(commands: Sequence[c.Command], start: int) -> list[c.Complete]:
    """Those that follow one another from here; claims between them go last and do not part them."""
    found = []
    for place in range(start, len(commands)):
        command = commands[place]
        if type(command) is c.Complete:
            found.append(command)
        elif type(command) is not c.Claim:
            break
    return found


def _meet_rules(ctx: TransitionContext) -> None:
    from postroom.kernel.rules.evaluation import triggered

    triggered(ctx)


class Engine:
    def __init__(self, env: KernelEnvironment) -> None:
        self._env = env

    def apply(
        self, tx: Transaction, commands: Sequence[c.Command]
    ) -> tuple[list[CommandOutcome], Mapping[int, int]]:
        """Outcomes in the order of the commands, and the lines on which messages became claimable.

        Claims go last, so that they find what was published in the same group.
        """
        ctx = TransitionContext(tx, self._env)
        outcomes = [CommandOutcome() for _ in commands]
        claiming: list[tuple[CommandOutcome, c.Claim]] = []
        publishing: PublishRun | None = None
        run: PublishRun | CompleteRun | None = None
        for place, (outcome, command) in enumerate(zip(outcomes, commands, strict=True)):
            if type(command) is c.Claim:
                claiming.append((outcome, command))
                continue
            ctx.actor, ctx.tenant = command.actor, command.tenant
            try:
                if type(command) is c.PublishLike or type(command) is c.Publish:
                    if type(run) is not PublishRun:
                        publishing = publishing or PublishRun(ctx, len(commands))
                        run = _next_run(run, publishing)
                    outcome.value = run.take(command)
                elif type(command) is c.Complete:
                    if type(run) is not CompleteRun:
                        run = _next_run(run, CompleteRun(ctx, _completions(commands, place)))
                    run.add(command)
                else:
                    run = _next_run(run, None)
                    outcome.value = self._apply_one(ctx, command)
            except PostroomError as error:
                outcome.error = error
        _next_run(run, None)
        if ctx.triggered:
            _meet_rules(ctx)
        if claiming:
            self._claim(ctx, claiming)
        self._keep_audit(ctx, commands, outcomes)
        return outcomes, ctx.woken

    def _keep_audit(
        self, ctx: TransitionContext, commands: Sequence[c.Command], outcomes: list[CommandOutcome]
    ) -> None:
        applied = [
            (command, outcome.value)
            for command, outcome in zip(commands, outcomes, strict=True)
            if outcome.error is None and (command.audit is not None or type(command) is c.Unit)
        ]
        if applied and (entries := list(audit.complete_entries(applied, ctx.now))):
            ctx.tx.add_audit(entries)

    def _claim(self, ctx: TransitionContext, claiming: list[tuple[CommandOutcome, c.Claim]]) -> None:
        ctx.actor = "system"
        due.sweep(ctx, limit=due.AT_CLAIM)
        if ctx.triggered:
            _meet_rules(ctx)
        run = ClaimRun(ctx, [command for _, command in claiming])
        for outcome, command in claiming:
            ctx.actor, ctx.tenant = command.actor, command.tenant
            try:
                outcome.value = run.add(command)
            except PostroomError as error:
                outcome.error = error
        run.flush()
        if ctx.triggered:
            _meet_rules(ctx)

    def _apply_one(self, ctx: TransitionContext, command: c.Command) -> Any:
        if isinstance(command, c.Unit):
            return self._apply_unit(ctx, command)
        return HANDLERS[type(command)](ctx, command)

    def _apply_unit(self, ctx: TransitionContext, unit: c.Unit) -> list[Any]:
        for command in unit.commands:
            if isinstance(command, c.Unit | c.Claim | c.Housekeep):
                raise InvalidField("commands", f"a unit of work cannot hold {type(command).__name__}")
        values = []
        with ctx.savepoint():
            for command in unit.commands:
                ctx.actor, ctx.tenant = command.actor, command.tenant
                if isinstance(command, c.Publish | c.PublishLike):
                    run = PublishRun(ctx)
                    values.append(run.take(command))
                    run.flush()
                else:
                    values.append(HANDLERS[type(command)](ctx, command))
        return values
