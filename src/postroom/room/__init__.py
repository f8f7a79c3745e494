"""The Python API: a room is opened from a URL and used directly, asynchronously or not."""

from postroom.room.core import RoomOptions
from postroom.room.rooms import Room, open_room
from postroom.room.sync import SyncRoom, open_sync

__all__ = ["Room", "RoomOptions", "SyncRoom", "open_room", "open_sync"]
