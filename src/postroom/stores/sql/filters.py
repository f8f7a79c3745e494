"""A filter of messages as a WHERE with bound values, over live and archived rows alike."""

from typing import Any

from postroom.kernel.ports import RowFilter
from postroom.kernel.states import TERMINAL
from postroom.stores.sql.dialect import Dialect

_EQUALS = {
    "tenant": "m.tenant = ?",
    "scope_id": "m.scope_id = ?",
    "origin_queue_id": "m.origin_queue_id = ?",
    "line": "m.line = ?",
    "message_type": "m.message_type = ?",
    "causation_id": "m.causation_id = ?",
    "created_after": "m.created_at > ?",
    "created_before": "m.created_at < ?",
    "score_below": "m.priority_score < ?",
    "agent": "c.agent = ?",
    "channel": "c.channel = ?",
    "sender_id": "c.sender_id = ?",
}
_KINDS = {
    "original": "m.subscription_id IS NULL",
    "delivery": "m.subscription_id IS NOT NULL",
    # A dead delivery is a letter of its own; it shows among the dead letters.
    "listed": "(m.subscription_id IS NULL OR m.origin_queue_id IS NOT NULL)",
}
# Two searches, by two indexes: what began the conversation, and what belongs to it.
_TALK = "(m.id = ? AND m.correlation_id = m.id OR m.correlation_id = ? AND m.correlation_id <> m.id)"
# What is claimed comes due some day, so it is found among what does.
_HELD = (
    "m.due_at > 0 AND m.due_at IS NOT NULL AND (m.claimed_by = ? OR m.claimed_by >= ? AND m.claimed_by < ?)"
)

LAST = "\U0010ffff"
Clauses = list[tuple[str, tuple[Any, ...]]]


def clauses(wanted: RowFilter, dialect: Dialect) -> Clauses:
    """The conditions with their values, those first that an index leads to."""
    found: Clauses = []
    if wanted.queue_ids is not None:
        if len(wanted.queue_ids) == 1:
            found.append(("m.queue_id = ?", wanted.queue_ids))
        else:
            marks = ", ".join("?" * len(wanted.queue_ids)) or "NULL"
            found.append((f"m.queue_id IN ({marks})", wanted.queue_ids))
    for field, clause in _EQUALS.items():
        value = getattr(wanted, field)
        if value is not None:
            found.append((clause, (value,)))
    if wanted.parent_id is not None:
        found.append(("m.parent_id = ? AND m.parent_id IS NOT NULL", (wanted.parent_id,)))
    if wanted.correlation_id is not None:
        found.append((_TALK, (wanted.correlation_id, wanted.correlation_id)))
    if wanted.states:
        # Written out, since an index of some states is found only by words.
        states = ", ".join(f"'{state}'" for state in sorted(map(str, wanted.states)))
        found.append((f"m.state IN ({states})" if len(wanted.states) > 1 else f"m.state = {states}", ()))
    if wanted.kind != "any":
        found.append((_KINDS[wanted.kind], ()))
    if wanted.subscription_ids is not None:
        marks = ", ".join("?" * len(wanted.subscription_ids)) or "NULL"
        found.append((f"m.subscription_id IN ({marks})", wanted.subscription_ids))
    if wanted.claimed_by is not None:
        below = f"{wanted.claimed_by}/"
        found.append((_HELD, (wanted.claimed_by, below, below + LAST)))
    if wanted.ended_before is not None:
        found.append(("m.finished_at <= ? AND m.finished_at IS NOT NULL", (wanted.ended_before,)))
    if wanted.reviews:
        found.append(("c.hitl_spec IS NOT NULL", ()))
    for name, value in wanted.labels:
        found.append((dialect.labelled(), tuple(dialect.bind_label(name, value))))
    return found


def may_be_archived(wanted: RowFilter) -> bool:
    """The archive holds only what has ended."""
    return not wanted.states or not TERMINAL.isdisjoint(wanted.states)


def join(found: Clauses) -> tuple[str, tuple[Any, ...]]:
    where = " AND ".join(clause for clause, _ in found) or "1 = 1"
    return where, tuple(value for _, values in found for value in values)
