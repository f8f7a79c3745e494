"""The one state machine of a message: which change may lead from which state to which.

Every change is also the type of the ledger event that records it; `docs/concepts/states.md` draws this table.
"""

from enum import StrEnum


class State(StrEnum):
    """Where a message is in its life: the first three are open, the others ends.

    >>> id = room.publish("orders", 1).id
    >>> room.get(id).state is State.PENDING
    True
    """

    PENDING = "pending"
    DELAYED = "delayed"
    CLAIMED = "claimed"
    COMPLETED = "completed"
    DEAD = "dead"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Change(StrEnum):
    PUBLISHED = "message.published"
    READY = "message.ready"
    CLAIMED = "message.claimed"
    EXTENDED = "message.extended"
    COMPLETED = "message.completed"
    FAILED = "message.failed"
    RELEASED = "message.released"
    SNOOZED = "message.snoozed"
    LEASE_EXPIRED = "message.lease_expired"
    DEAD_LETTERED = "message.dead_lettered"
    EXPIRED = "message.expired"
    CANCELLED = "message.cancelled"
    REPLAYED = "message.replayed"
    DISCARDED = "message.discarded"
    REORDERED = "message.reordered"
    ROUTED = "message.routed"
    TRANSFORMED = "message.transformed"
    HELD = "message.held"


OPEN = frozenset({State.PENDING, State.DELAYED, State.CLAIMED})
TERMINAL = frozenset(State) - OPEN
WAITING = frozenset({State.PENDING, State.DELAYED})

_P, _D, _C = State.PENDING, State.DELAYED, State.CLAIMED

# (from, to) pairs of each change; None is "not there yet". A broadcast message completes from pending, when
# its last delivery has ended; published straight to completed is a broadcast nobody subscribed to. A review
# that is answered and a message that a rule divides also complete while they wait.
TRANSITIONS: dict[Change, frozenset[tuple[State | None, State]]] = {
    Change.PUBLISHED: frozenset({(None, _P), (None, _D), (None, State.DEAD), (None, State.COMPLETED)}),
    Change.READY: frozenset({(_D, _P)}),
    Change.CLAIMED: frozenset({(_P, _C)}),
    Change.EXTENDED: frozenset({(_C, _C)}),
    Change.COMPLETED: frozenset({(_C, State.COMPLETED), (_P, State.COMPLETED), (_D, State.COMPLETED)}),
    Change.FAILED: frozenset({(_C, _D), (_C, _P)}),
    Change.RELEASED: frozenset({(_C, _P)}),
    Change.SNOOZED: frozenset({(_C, _D)}),
    Change.LEASE_EXPIRED: frozenset({(_C, _P)}),
    Change.DEAD_LETTERED: frozenset({(_C, State.DEAD), (_P, State.DEAD), (_D, State.DEAD)}),
    Change.EXPIRED: frozenset({(_P, State.EXPIRED), (_D, State.EXPIRED)}),
    Change.CANCELLED: frozenset({(s, State.CANCELLED) for s in OPEN}),
    Change.REPLAYED: frozenset({(State.DEAD, _P)}),
    Change.DISCARDED: frozenset({(State.DEAD, State.CANCELLED)}),
    Change.REORDERED: frozenset({(s, s) for s in OPEN}),
    Change.ROUTED: frozenset({(_P, _P), (_D, _D)}),
    Change.TRANSFORMED: frozenset({(_P, _P), (_D, _D)}),
    Change.HELD: frozenset({(_P, _D), (_D, _D)}),
}


def allowed(source: State | str | None, change: Change, target: State) -> bool:
    return (source, target) in TRANSITIONS[change]
