"""A fake Matrix homeserver: sync, rooms, sending by transaction, media."""

from postroom.testing.platforms.matrix.server import FakeMatrix

__all__ = ["FakeMatrix"]
