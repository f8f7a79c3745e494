"""The Python API: a room is opened from a URL and used directly, asynchronously or not."""

from postroom.runtime.core import RoomOptions
from postroom.runtime.room import Room, open_room
from postroom.runtime.sync_room import SyncRoom, open_sync

__all__ = ["Room", "RoomOptions", "SyncRoom", "open_room", "open_sync"]
