"""Dead letters: back to the queue they came from, or given up for good."""

from postroom.errors import WrongState
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk
from postroom.kernel.model import DEAD_LETTER
from postroom.kernel.rows import Row
from postroom.kernel.states import Change, State


def _dead(desk: Desk, command: c.Replay | c.Discard, verb: str) -> list[Row]:
    if command.scope is not None:
        scope = desk.scope(command.scope)
        home = desk.tx.queue(desk.tenant, scope.slug, DEAD_LETTER)
        assert home is not None, "every scope has its dead letters"
        return desk.tx.rows_in_state(home.id, State.DEAD, command.limit)
    rows = []
    for message_id in dict.fromkeys(command.message_ids):
        row = desk.message(message_id)
        state = "archived" if row is None else row.state
        if row is None or row.state != State.DEAD:
            raise WrongState(message_id=message_id, state=state, verb=verb)
        rows.append(row)
    return rows


def replay(desk: Desk, command: c.Replay) -> list[str]:
    """All or none of the ids. Each goes to the end of its queue with a clean slate of attempts."""
    rows = _dead(desk, command, "replayed")
    for row in rows:
        dead_letters = row.queue_id
        assert row.origin_queue_id is not None, "a dead letter knows where it came from"
        queue = desk.tx.queue_by_id(row.origin_queue_id)
        row.attempts = 0
        row.visible_at = None
        # What ran out of time before would only expire again; it gets the time it had, anew.
        if row.expires_at is not None and row.expires_at <= desk.now:
            row.expires_at = desk.now + max(row.expires_at - row.created_at, 1)
        desk.reorder(row, queue, entered_at=desk.now)
        desk.tx.count(dead_letters, row.subscription_id or 0, State.DEAD, -1)
        row.queue_id, row.origin_queue_id = queue.id, None
        desk.tx.count(queue.id, row.subscription_id or 0, State.DEAD, 1)
        desk.move(row, Change.REPLAYED, State.PENDING)
    desk.tx.relocate(rows)
    return [row.id for row in rows]


def discard(desk: Desk, command: c.Discard) -> list[str]:
    rows = _dead(desk, command, "discarded")
    for row in rows:
        desk.move(row, Change.DISCARDED, State.CANCELLED)
    desk.tx.save(rows)
    return [row.id for row in rows]
