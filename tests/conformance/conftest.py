"""Fixtures of the behaviour that all stores share."""

from typing import Any

import pytest

from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.engine import Engine
from postroom.kernel.transitions.context import TransitionContext
from postroom.runtime import ledger_reader, room, sync_room

_apply_one = Engine._apply_one
IN_SAVEPOINTS = (c.Unit, service_commands.AnswerReview)


def _written(tx: Any) -> tuple[Any, ...]:
    """How much a transaction has written so far."""
    if hasattr(tx, "_journal"):
        return len(tx._drafts), tx._journal.mark()
    return len(tx._events), dict(tx._deltas), tx._message_seq, tx._db.total_changes()


def _apply_one_without_trace(engine: Engine, desk: TransitionContext, command: c.Command) -> Any:
    before, triggered = _written(desk.tx), list(desk.triggered)
    try:
        return _apply_one(engine, desk, command)
    except PostroomError:
        # What a savepoint took back has been written, and is gone; SQLite counts it all the same.
        after = _written(desk.tx)
        cut = 3 if isinstance(command, IN_SAVEPOINTS) else None
        assert after[:cut] == before[:cut], f"{command} was refused after it had written"
        assert desk.triggered == triggered
        raise


@pytest.fixture(autouse=True)
def _refused_commands_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single commands run without a savepoint, so each must check everything before it writes anything."""
    monkeypatch.setattr(Engine, "_apply_one", _apply_one_without_trace)


@pytest.fixture
def only_wakeups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits is woken, or waits for an hour: nobody looks again by himself."""
    for module in (room, sync_room, ledger_reader):
        monkeypatch.setattr(module, "POLL_S", 3600.0)
