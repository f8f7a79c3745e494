"""A fake signal-cli daemon: JSON-RPC over TCP, with messages that are handed out once."""

from postroom.testing.platforms.signal.server import FakeSignal

__all__ = ["FakeSignal"]
