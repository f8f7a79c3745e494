"""Fixtures of the behaviour that all stores share."""

from typing import Any

import msgspec
import pytest

from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel import service_commands
from postroom.kernel.engine import Engine
from postroom.kernel.ports import NewMessages
from postroom.kernel.session import Session
from postroom.kernel.transitions.context import TransitionContext
from postroom.runtime import core, ledger_reader

_apply_one = Engine._apply_one
IN_SAVEPOINTS = (c.Unit, service_commands.AnswerReview)


def _gathered(session: Session) -> tuple[Any, ...]:
    """Everything a command may leave behind: what is gathered, what was sent, and rows as they are now."""
    changes, connection = session.changes, session.tx.connection  # type: ignore[attr-defined]
    is_sqlite = hasattr(connection.db, "total_changes")
    return (
        len(changes.events),
        {key: n for key, n in changes.counts.items() if n},
        sum(len(batch.rows if isinstance(batch, NewMessages) else batch.ids) for batch in changes.batches),
        {message_id: msgspec.structs.asdict(row) for message_id, row in session._rows.items()},
        set(changes.rows),
        dict(changes.facts),
        (len(changes.records), len(changes.audit), bool(changes.budgets)),
        connection.db.total_changes() if is_sqlite else connection.writes,
    )


def _apply_one_without_trace(engine: Engine, ctx: TransitionContext, command: c.Command) -> Any:
    before, triggered = _gathered(ctx.session), list(ctx.triggered)
    try:
        return _apply_one(engine, ctx, command)
    except PostroomError:
        after = _gathered(ctx.session)
        # What a savepoint took back may have been sent, and is gone; SQLite counts it all the same.
        cut = -1 if isinstance(command, IN_SAVEPOINTS) else None
        known = {message_id: after[3].get(message_id, row) for message_id, row in before[3].items()}
        after = (*after[:3], known, *after[4:])
        assert after[:cut] == before[:cut], f"{command} was refused after it had changed something"
        assert ctx.triggered == triggered
        raise


@pytest.fixture(autouse=True)
def _refused_commands_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single commands run without a savepoint, so each must check everything before it writes anything."""
    monkeypatch.setattr(Engine, "_apply_one", _apply_one_without_trace)


@pytest.fixture
def only_wakeups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits is woken, or waits for an hour: nobody looks again by himself."""
    for module in (core, ledger_reader):
        monkeypatch.setattr(module, "POLL_S", 3600.0)
