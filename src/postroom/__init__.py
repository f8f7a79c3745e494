"""Postroom: a durable post room for people, programs and teams of AI agents.

async with postroom.open("sqlite:///room.db") as room:
    await room.create_queue("jobs", exist_ok=True)
    await room.publish("jobs", {"hello": "world"})
    [job] = await room.claim("jobs")
    await room.complete(job)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postroom.errors import (
        AccountFrozen,
        AlreadyFrozen,
        AlreadySettled,
        BodyTooLarge,
        ClaimLost,
        Conflict,
        DocumentChanged,
        DocumentNotFound,
        EventsPruned,
        IdempotencyConflict,
        Invalid,
        InvalidField,
        LedgerBroken,
        LimitReached,
        MessageNotFound,
        NotEmpty,
        NotFound,
        PositionMoved,
        PostroomError,
        QueueClosed,
        QueueFull,
        QueueNotFound,
        SchemaNotFound,
        SchemaTaken,
        SchemaViolation,
        ScopeClosed,
        ScopeNotFound,
        SlugTaken,
        StoreClosed,
        StoreCorrupt,
        StoreDiffers,
        StoreError,
        StoreFailed,
        StoreFull,
        StoreHalfMoved,
        StoreInUse,
        StoreMissing,
        StoreMoved,
        StoreNeedsExtra,
        StoreNotEmpty,
        StoreReadOnly,
        StoreRewritten,
        StoreRolledBack,
        StoreTooNew,
        StoreVanished,
        SubscriptionNotFound,
        SystemQueue,
        UnknownStore,
        WrongPlaceState,
        WrongState,
    )
    from postroom.kernel.ledger import Event
    from postroom.kernel.limits import Limits
    from postroom.kernel.model import (
        Counts,
        Message,
        NewMessage,
        Queue,
        Receipt,
        Record,
        Schema,
        Scope,
        Subscription,
    )
    from postroom.kernel.schedules.model import QueueSchedule
    from postroom.kernel.states import State
    from postroom.runtime import Room, SyncRoom, open_sync
    from postroom.runtime import open_room as open  # noqa: A004 - `postroom.open` reads as what it does
    from postroom.runtime.queries import Page
    from postroom.runtime.typed_queue import SyncTypedQueue, TypedQueue
    from postroom.runtime.workers import Reject, Retry, Snooze

    __version__: str

# The command line imports this package for every command: a name is imported when somebody asks for it.
_WHERE = {
    "Counts": "kernel.model",
    "Event": "kernel.ledger",
    "Limits": "kernel.limits",
    "Message": "kernel.model",
    "NewMessage": "kernel.model",
    "Page": "runtime.queries",
    "Queue": "kernel.model",
    "QueueSchedule": "kernel.schedules.model",
    "Receipt": "kernel.model",
    "Record": "kernel.model",
    "Reject": "runtime.workers",
    "Retry": "runtime.workers",
    "Room": "runtime",
    "Schema": "kernel.model",
    "Scope": "kernel.model",
    "Snooze": "runtime.workers",
    "State": "kernel.states",
    "Subscription": "kernel.model",
    "SyncRoom": "runtime",
    "SyncTypedQueue": "runtime.typed_queue",
    "TypedQueue": "runtime.typed_queue",
    "open": "runtime",
    "open_sync": "runtime",
}

__all__ = [
    "AccountFrozen",
    "AlreadyFrozen",
    "AlreadySettled",
    "BodyTooLarge",
    "ClaimLost",
    "Conflict",
    "Counts",
    "DocumentChanged",
    "DocumentNotFound",
    "Event",
    "EventsPruned",
    "IdempotencyConflict",
    "Invalid",
    "InvalidField",
    "LedgerBroken",
    "LimitReached",
    "Limits",
    "Message",
    "MessageNotFound",
    "NewMessage",
    "NotEmpty",
    "NotFound",
    "Page",
    "PositionMoved",
    "PostroomError",
    "Queue",
    "QueueClosed",
    "QueueFull",
    "QueueNotFound",
    "QueueSchedule",
    "Receipt",
    "Record",
    "Reject",
    "Retry",
    "Room",
    "Schema",
    "SchemaNotFound",
    "SchemaTaken",
    "SchemaViolation",
    "Scope",
    "ScopeClosed",
    "ScopeNotFound",
    "SlugTaken",
    "Snooze",
    "State",
    "StoreClosed",
    "StoreCorrupt",
    "StoreDiffers",
    "StoreError",
    "StoreFailed",
    "StoreFull",
    "StoreHalfMoved",
    "StoreInUse",
    "StoreMissing",
    "StoreMoved",
    "StoreNeedsExtra",
    "StoreNotEmpty",
    "StoreReadOnly",
    "StoreRewritten",
    "StoreRolledBack",
    "StoreTooNew",
    "StoreVanished",
    "Subscription",
    "SubscriptionNotFound",
    "SyncRoom",
    "SyncTypedQueue",
    "SystemQueue",
    "TypedQueue",
    "UnknownStore",
    "WrongPlaceState",
    "WrongState",
    "__version__",
    "open",
    "open_sync",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("postroom")
    elif name in _WHERE:
        found = getattr(import_module(f"postroom.{_WHERE[name]}"), "open_room" if name == "open" else name)
    elif name in __all__:
        found = getattr(import_module("postroom.errors"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
