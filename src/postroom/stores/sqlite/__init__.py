"""The default store: one SQLite file, owned by one process, through the SQLite that apsw brings along."""

from postroom.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
