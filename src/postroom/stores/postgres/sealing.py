"""By what transactions take their turn at the end of the ledger: by a lock, or, while processes of the
version before may be at work, by the row that these know. When none was seen for a while, the lock is enough.
"""

import time

import psycopg

from postroom.stores.postgres.transaction import TRY_VERSION

BY_ROW, BY_LEDGER = "row", "ledger"
# How the version before named its sessions.
OLDER = r"(^| )room-[0-9a-f]+$"
UNSEEN_S = 30.0
LOOK_S = 2.0
_OLDER_SESSIONS = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ $1
"""
_CHANGE = "UPDATE meta SET value = $1 WHERE name = 'sealed_by' AND value <> $1"


class SealingWatch:
    def __init__(self) -> None:
        self._unseen_since: float | None = None
        self._look_at = 0.0

    def look(self, db: psycopg.Connection) -> bool:
        """Whether turns were just changed; looks only now and then. Every transaction shares the lock of the
        version with what it has read of this, so nobody is at work with what it was."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_S
        [(older,)] = db.execute(_OLDER_SESSIONS, (OLDER,)).fetchall()
        if older:
            self._unseen_since = None
            return False
        if self._unseen_since is None:
            self._unseen_since = now
        if now - self._unseen_since < UNSEEN_S:
            return False
        with db.transaction():
            [(alone,)] = db.execute(TRY_VERSION.encode()).fetchall()
            return alone and db.execute(_CHANGE, (BY_LEDGER,)).rowcount > 0
