"""Dead letters: back to the queue they came from, or given up for good."""

import msgspec

from postroom.errors import InvalidField, WrongState
from postroom.kernel import checks
from postroom.kernel import commands as c
from postroom.kernel.desk import Desk, is_original, told
from postroom.kernel.model import DEAD_LETTER, Queue
from postroom.kernel.rows import Row
from postroom.kernel.states import Change, State
from postroom.kernel.verbs.publish import deliveries_of


def _dead(desk: Desk, command: c.Replay | c.Discard, verb: str) -> list[Row]:
    if command.scope is not None:
        if command.message_ids:
            raise InvalidField("scope", "and message ids exclude each other")
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


def _check_limit(desk: Desk, limit: int) -> None:
    checks.check_count("limit", limit, least=1, most=desk.limits.claim_batch)


def replay(desk: Desk, command: c.Replay) -> list[str]:
    """All or none of the ids, each with a clean slate of attempts.

    It goes to the end of a fifo queue, and by rank and age elsewhere. Of a whole scope, deliveries whose
    subscriber is gone stay where they are; asked for by id, they are an error.
    """
    _check_limit(desk, command.limit)
    rows = _replayable(desk, command)
    # A broadcast goes to all its subscribers anew, also to those who had given it up.
    anew = {row.id for row in rows if row.subscription_id is None}
    revived = []
    for row in rows:
        if row.subscription_id is not None and (row.parent_id in anew or _on_its_way(desk, row)):
            desk.move(row, Change.DISCARDED, State.CANCELLED)
            desk.tx.save([row])
        else:
            _revive(desk, row)
            revived.append(row.id)
    return revived


def _replayable(desk: Desk, command: c.Replay) -> list[Row]:
    if command.scope is None:
        rows = _dead(desk, command, "replayed")
        for row in rows:
            if _addressee(desk, row) is None:
                raise WrongState(message_id=row.id, state="dead and its subscriber gone", verb="replayed")
        return rows
    asked = command.limit
    while True:
        found = _dead(desk, msgspec.structs.replace(command, limit=asked), "replayed")
        rows = [row for row in found if _addressee(desk, row) is not None]
        if len(rows) >= command.limit or len(found) < asked:
            return rows[: command.limit]
        asked *= 4


def _on_its_way(desk: Desk, row: Row) -> bool:
    """Whether its subscriber is being given the same broadcast again already."""
    assert row.parent_id is not None, "a delivery knows its broadcast"
    return any(other.subscription_id == row.subscription_id for other in desk.tx.deliveries(row.parent_id))


def _addressee(desk: Desk, row: Row) -> int | None:
    """The queue or subscription it came from, when that is still there."""
    assert row.origin_queue_id is not None, "a dead letter knows where it came from"
    if row.subscription_id is None:
        return row.origin_queue_id
    known = {subscription.id for subscription in desk.tx.subscriptions(row.origin_queue_id)}
    return row.subscription_id if row.subscription_id in known else None


def _revive(desk: Desk, row: Row) -> None:
    assert row.origin_queue_id is not None, "a dead letter knows where it came from"
    queue, home = desk.tx.queue_by_id(row.origin_queue_id), desk.tx.queue_by_id(row.queue_id)
    row.attempts = 0
    row.visible_at = None
    # What ran out of time before would only expire again; it gets the time it had, anew.
    if row.expires_at is not None and row.expires_at <= desk.now:
        row.expires_at = desk.now + max(row.expires_at - row.created_at, 1)
    desk.reorder(row, queue, entered_at=desk.now)
    desk.tally(row, home, -1)
    row.queue_id, row.origin_queue_id = queue.id, None
    desk.tally(row, queue, 1)
    desk.move(row, Change.REPLAYED, State.PENDING)
    desk.tx.relocate([row])
    if is_original(row, queue):
        broadcast_anew(desk, row, queue)


def broadcast_anew(desk: Desk, row: Row, queue: Queue) -> None:
    reached = {delivery.subscription_id for delivery in desk.tx.deliveries(row.id)}
    subscriptions = [each for each in desk.tx.subscriptions(queue.id) if each.id not in reached]
    deliveries = deliveries_of(desk, row, subscriptions)
    desk.admit(deliveries, queue, [told(delivery, parent=row.id) for delivery in deliveries])
    desk.tx.insert(deliveries, [desk.tx.content(row)] * len(deliveries))
    if not deliveries and not reached:
        desk.move(row, Change.COMPLETED, State.COMPLETED)
        desk.tx.save([row])


def discard(desk: Desk, command: c.Discard) -> list[str]:
    _check_limit(desk, command.limit)
    rows = _dead(desk, command, "discarded")
    for row in rows:
        desk.move(row, Change.DISCARDED, State.CANCELLED)
    desk.tx.save(rows)
    return [row.id for row in rows]
