"""Applies commands to a transaction: a group of requests from any callers, each all or nothing.

A refused command leaves no trace: single verbs check before they write, and a `Unit` runs in a savepoint.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from postroom.errors import InvalidField, PostroomError
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk, Kit
from postroom.kernel.housekeeping import steps
from postroom.kernel.store import Transaction
from postroom.kernel.verbs import (
    accounts,
    dead_letters,
    documents,
    filing,
    holds,
    places,
    priorities,
    records,
    schema_registry,
    settle,
    subscriptions,
    sweep,
)
from postroom.kernel.verbs.claims import ClaimRun
from postroom.kernel.verbs.publish import PublishRun
from postroom.kernel.verbs.settle import CompleteRun

Handler = Callable[[Desk, Any], Any]

HANDLERS: dict[type[c.Command], Handler] = {
    c.CreateScope: places.create_scope,
    c.UpdateScope: places.update_scope,
    c.SetScopeState: places.set_scope_state,
    c.DeleteScope: places.delete_scope,
    c.CreateQueue: places.create_queue,
    c.UpdateQueue: places.update_queue,
    c.SetQueueState: places.set_queue_state,
    c.DeleteQueue: places.delete_queue,
    c.Complete: settle.complete,
    c.Fail: settle.fail,
    c.Release: settle.release,
    c.Extend: settle.extend,
    c.Snooze: settle.snooze,
    c.Cancel: settle.cancel,
    c.Kill: settle.kill,
    c.Replay: dead_letters.replay,
    c.Discard: dead_letters.discard,
    c.Reprioritise: priorities.reprioritise,
    c.Subscribe: subscriptions.subscribe,
    c.Unsubscribe: subscriptions.unsubscribe,
    c.CheckSeen: subscriptions.check_seen,
    c.RegisterSchema: schema_registry.register,
    c.AddRecord: records.add_record,
    c.PutDocument: documents.put,
    c.DropDocument: documents.drop,
    c.ExpectDocument: documents.expect,
    c.SetPosition: records.set_position,
    c.Reserve: accounts.reserve,
    c.Settle: accounts.settle,
    c.ReleaseReservation: accounts.release,
    c.SetLimit: accounts.set_limit,
    c.Freeze: accounts.freeze,
    c.Thaw: holds.thaw,
    c.Hold: holds.hold,
    c.CancelConversation: holds.cancel_conversation,
    c.Housekeep: steps.housekeep,
    c.ReportRun: steps.report_run,
    c.Lead: steps.lead,
    c.TakeOver: sweep.take_over,
    **filing.HANDLERS,
}


class Outcome:
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


def _meet_rules(desk: Desk) -> None:
    from postroom.kernel.rules.running import triggered

    triggered(desk)


class Engine:
    def __init__(self, kit: Kit) -> None:
        self._kit = kit

    def apply(
        self, tx: Transaction, commands: Sequence[c.Command]
    ) -> tuple[list[Outcome], Mapping[int, int]]:
        """Outcomes in the order of the commands, and the lines on which messages became claimable.

        Claims go last, so that they find what was published in the same group.
        """
        desk = Desk(tx, self._kit)
        outcomes = [Outcome() for _ in commands]
        claiming: list[tuple[Outcome, c.Claim]] = []
        publishing: PublishRun | None = None
        run: PublishRun | CompleteRun | None = None
        for place, (outcome, command) in enumerate(zip(outcomes, commands, strict=True)):
            if type(command) is c.Claim:
                claiming.append((outcome, command))
                continue
            desk.actor, desk.tenant = command.actor, command.tenant
            try:
                if type(command) is c.PublishLike or type(command) is c.Publish:
                    if type(run) is not PublishRun:
                        publishing = publishing or PublishRun(desk, len(commands))
                        run = _next_run(run, publishing)
                    outcome.value = run.take(command)
                elif type(command) is c.Complete:
                    if type(run) is not CompleteRun:
                        run = _next_run(run, CompleteRun(desk, _completions(commands, place)))
                    run.add(command)
                else:
                    run = _next_run(run, None)
                    outcome.value = self._apply_one(desk, command)
            except PostroomError as error:
                outcome.error = error
        _next_run(run, None)
        if desk.triggered:
            _meet_rules(desk)
        if claiming:
            self._claim(desk, claiming)
        return outcomes, desk.woken

    def _claim(self, desk: Desk, claiming: list[tuple[Outcome, c.Claim]]) -> None:
        desk.actor = "system"
        sweep.sweep(desk, limit=sweep.AT_CLAIM)
        if desk.triggered:
            _meet_rules(desk)
        run = ClaimRun(desk, [command for _, command in claiming])
        for outcome, command in claiming:
            desk.actor, desk.tenant = command.actor, command.tenant
            try:
                outcome.value = run.add(command)
            except PostroomError as error:
                outcome.error = error
        run.flush()
        if desk.triggered:
            _meet_rules(desk)

    def _apply_one(self, desk: Desk, command: c.Command) -> Any:
        if isinstance(command, c.Unit):
            return self._apply_unit(desk, command)
        return HANDLERS[type(command)](desk, command)

    def _apply_unit(self, desk: Desk, unit: c.Unit) -> list[Any]:
        for command in unit.commands:
            if isinstance(command, c.Unit | c.Claim | c.Housekeep):
                raise InvalidField("commands", f"a unit of work cannot hold {type(command).__name__}")
        values = []
        with desk.savepoint():
            for command in unit.commands:
                desk.actor, desk.tenant = command.actor, command.tenant
                if isinstance(command, c.Publish | c.PublishLike):
                    run = PublishRun(desk)
                    values.append(run.take(command))
                    run.flush()
                else:
                    values.append(HANDLERS[type(command)](desk, command))
        return values
