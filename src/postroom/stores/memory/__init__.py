"""A store in memory, for the tests of programs that use a post room. It keeps nothing on disk."""

from postroom.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
