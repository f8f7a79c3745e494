"""Listing messages: a filter becomes a WHERE with bound values, over live and archived rows alike."""

from typing import Any

import msgspec

from postroom.kernel.ports import MessageFilter
from postroom.kernel.rows import CONTENT_FIELDS, ROW_FIELDS
from postroom.kernel.states import TERMINAL

_ROW = ", ".join(f"m.{name}" for name in ROW_FIELDS)
_WHOLE = "SELECT " + _ROW + ", " + ", ".join(f"c.{name}" for name in CONTENT_FIELDS)
_LIVE = _WHOLE + " FROM messages m JOIN contents c ON c.seq = m.seq WHERE "
_ARCHIVED = _WHOLE + " FROM archive m JOIN archive c ON c.seq = m.seq WHERE "
# The other way round: of what asks a person there is little, and an index leads to it.
_REVIEWS = (
    _WHOLE + " FROM contents c INDEXED BY contents_reviews CROSS JOIN messages m ON m.seq = c.seq WHERE "
)

_EQUALS = {
    "message_type": "m.message_type = ?",
    "causation_id": "m.causation_id = ?",
    "parent_id": "m.parent_id = ?",
    "agent": "c.agent = ?",
    "channel": "c.channel = ?",
    "sender_id": "c.sender_id = ?",
    "created_after": "m.created_at > ?",
    "created_before": "m.created_at < ?",
}


# Two searches, by two indexes: what began the conversation, and what belongs to it.
_TALK = "(m.id = ? AND m.correlation_id = m.id OR m.correlation_id = ? AND m.correlation_id <> m.id)"


class ListedPlaces(msgspec.Struct, frozen=True):
    scopes: dict[tuple[str, str], int]
    queues: dict[tuple[str, str], int]


Clauses = list[tuple[str, tuple[Any, ...]]]


def clauses(wanted: MessageFilter, places: ListedPlaces) -> Clauses | None:
    """The conditions with their values; None when a named place does not exist."""
    found: Clauses = []
    if wanted.queue is not None:
        queue_id = places.queues.get((wanted.tenant, wanted.queue))
        if queue_id is None:
            return None
        found.append(("m.queue_id = ?", (queue_id,)))
    if wanted.scope is not None:
        scope_id = places.scopes.get((wanted.tenant, wanted.scope))
        if scope_id is None:
            return None
        found.append(("m.scope_id = ?", (scope_id,)))
    found.append(("m.tenant = ?", (wanted.tenant,)))
    for field, clause in _EQUALS.items():
        value = getattr(wanted, field)
        if value is not None:
            found.append((clause, (value,)))
    if wanted.correlation_id is not None:
        found.append((_TALK, (wanted.correlation_id, wanted.correlation_id)))
    if wanted.states:
        marks = ", ".join("?" * len(wanted.states))
        found.append((f"m.state IN ({marks})", tuple(str(state) for state in wanted.states)))
    if wanted.queue_ids is not None:
        marks = ", ".join("?" * len(wanted.queue_ids))
        found.append((f"m.queue_id IN ({marks})", wanted.queue_ids))
    if wanted.reviews:
        found.append(("c.hitl_spec IS NOT NULL", ()))
    for name, value in wanted.labels:
        found.append((LABELLED, (name, *typed(value))))
    if wanted.subscription is not None:
        named = "m.subscription_id IN (SELECT id FROM subscriptions WHERE name = ?)"
        found.append((named, (wanted.subscription,)))
    elif not wanted.deliveries:
        # A dead delivery is a letter of its own; it shows among the dead letters.
        found.append(("(m.subscription_id IS NULL OR m.origin_queue_id IS NOT NULL)", ()))
    return found


LABELLED = (
    "EXISTS (SELECT 1 FROM json_each(c.labels) label"
    " WHERE label.key = ? AND replace(label.type, 'real', 'integer') = ? AND label.atom IS ?)"
)


def typed(value: Any) -> tuple[str, Any]:
    """A label's value with SQLite's name of its JSON type, so that true is not taken for 1."""
    if value is None:
        return "null", None
    if isinstance(value, bool):
        return ("true" if value else "false"), int(value)
    return ("integer" if isinstance(value, int | float) else "text"), value


def parts(wanted: MessageFilter) -> tuple[bool, ...]:
    """Whether to look among those archived: first not, and then too, unless none of those could be wanted."""
    ended = not wanted.states or not TERMINAL.isdisjoint(wanted.states)
    return (False, True) if ended else (False,)


def statement(
    wanted: MessageFilter, found: Clauses, after: int | None, limit: int, *, archived: bool
) -> tuple[str, tuple[Any, ...]]:
    clauses, values = [clause for clause, _ in found], [value for _, vs in found for value in vs]
    head, seq = (_REVIEWS, "c.seq") if wanted.reviews and not archived else (_LIVE, "m.seq")
    if after is not None:
        clauses.append(f"{seq} < ?" if wanted.newest_first else f"{seq} > ?")
        values.append(after)
    sql = (_ARCHIVED if archived else head) + " AND ".join(clauses)
    sql += f" ORDER BY {seq} DESC LIMIT ?" if wanted.newest_first else f" ORDER BY {seq} LIMIT ?"
    return sql, (*values, limit)
