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
    from postroom.errors import PostroomError
    from postroom.kernel.limits import Limits
    from postroom.kernel.model import Message, NewMessage, Receipt
    from postroom.kernel.states import State
    from postroom.runtime import Room, SyncRoom, open_sync
    from postroom.runtime import open_room as open  # noqa: A004 - `postroom.open` reads as what it does
    from postroom.runtime.workers import Reject, Retry, Snooze

    __version__: str

# The command line imports this package for every command: a name is imported when somebody asks for it.
_WHERE = {
    "Limits": "kernel.limits",
    "Message": "kernel.model",
    "NewMessage": "kernel.model",
    "PostroomError": "errors",
    "Receipt": "kernel.model",
    "Reject": "runtime.workers",
    "Retry": "runtime.workers",
    "Room": "runtime",
    "Snooze": "runtime.workers",
    "State": "kernel.states",
    "SyncRoom": "runtime",
    "open": "runtime",
    "open_sync": "runtime",
}

__all__ = [
    "Limits",
    "Message",
    "NewMessage",
    "PostroomError",
    "Receipt",
    "Reject",
    "Retry",
    "Room",
    "Snooze",
    "State",
    "SyncRoom",
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
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
