"""Which messages a `MessageFilter` means."""

from collections.abc import Callable
from typing import Any

from postroom.kernel import jsontext
from postroom.kernel.ports import MessageFilter
from postroom.kernel.rows import Content, Row
from postroom.stores.memory.queues import MemoryQueues

Fits = Callable[[Row, Content], bool]

ROW_FIELDS = ("message_type", "correlation_id", "causation_id", "parent_id")
CONTENT_FIELDS = ("agent", "channel", "sender_id")


def fits(wanted: MessageFilter, places: MemoryQueues) -> Fits | None:
    """A test for one message; None when the filter names a place that does not exist, so nothing can fit."""
    tests: list[Fits] = [lambda row, _: row.tenant == wanted.tenant]
    for place in (_place(wanted, places), _subscription(wanted, places)):
        if place is None:
            return None
        tests.append(place)
    if wanted.states:
        tests.append(lambda row, _: row.state in wanted.states)
    after, before = wanted.created_after, wanted.created_before
    if after is not None:
        tests.append(lambda row, _: row.created_at > after)
    if before is not None:
        tests.append(lambda row, _: row.created_at < before)
    own = _asked(wanted, ROW_FIELDS)
    if own:
        tests.append(lambda row, _: all(getattr(row, name) == value for name, value in own))
    carried = _asked(wanted, CONTENT_FIELDS)
    if carried:
        tests.append(lambda _, content: all(getattr(content, name) == value for name, value in carried))
    queue_ids = wanted.queue_ids
    if queue_ids is not None:
        tests.append(lambda row, _: row.queue_id in queue_ids)
    if wanted.reviews:
        tests.append(lambda _, content: content.hitl_spec is not None)
    if wanted.labels:
        tests.append(lambda _, content: labelled(content, wanted.labels))
    return lambda row, content: all(test(row, content) for test in tests)


def _asked(wanted: MessageFilter, fields: tuple[str, ...]) -> list[tuple[str, Any]]:
    return [(name, value) for name in fields if (value := getattr(wanted, name)) is not None]


def _place(wanted: MessageFilter, places: MemoryQueues) -> Fits | None:
    scope = None
    if wanted.scope is not None:
        scope = places.scope(wanted.tenant, wanted.scope)
        if scope is None:
            return None
    if wanted.queue is not None:
        queues = places.queues_named(wanted.tenant, wanted.scope)
        found = next((queue.id for queue in queues if queue.path == wanted.queue), None)
        return None if found is None else lambda row, _: row.queue_id == found
    if scope is not None:
        scope_id = scope.id
        return lambda row, _: row.scope_id == scope_id
    return lambda _row, _content: True


def _subscription(wanted: MessageFilter, places: MemoryQueues) -> Fits | None:
    if wanted.subscription is None:
        # A dead delivery is a letter of its own; it shows among the dead letters.
        return lambda row, _: (
            wanted.deliveries or row.subscription_id is None or row.origin_queue_id is not None
        )
    ids = {number for number, name in places.subscription_names().items() if name == wanted.subscription}
    return (lambda row, _: row.subscription_id in ids) if ids else None


def labelled(content: Content, labels: tuple[tuple[str, Any], ...]) -> bool:
    known: dict[str, Any] = jsontext.decode_any(content.labels, {})
    return all(name in known and _same(known[name], value) for name, value in labels)


def _same(known: Any, value: Any) -> bool:
    # In JSON `true` is not 1, although Python holds them equal.
    return known == value and isinstance(known, bool) == isinstance(value, bool)
