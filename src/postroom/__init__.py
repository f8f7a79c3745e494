"""Postroom: a durable post room for people, programs and teams of AI agents.

async with postroom.open("sqlite:///room.db") as room:
    await room.create_queue("jobs", exist_ok=True)
    await room.publish("jobs", {"hello": "world"})
    [job] = await room.claim("jobs")
    await room.complete(job)
"""

from importlib.metadata import version

from postroom.errors import PostroomError
from postroom.kernel.limits import Limits
from postroom.kernel.model import Message, NewMessage, Receipt
from postroom.kernel.states import State
from postroom.runtime import Room, SyncRoom, open_sync
from postroom.runtime import open_room as open  # noqa: A004 - `postroom.open` reads as what it does
from postroom.runtime.workers import Reject, Retry, Snooze

__version__ = version("postroom")

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
