"""Ends sessions of processes that stand still in the middle of a transaction and hold others up. Their
clients find the connection lost, and try again if they ever go on. One for whom nobody waits is never ended.

The server's own time-outs do not see one that stands still between statements that go together, nor one that
does not read what it is sent: to the server, both are at work.
"""

import time
from typing import Any

import psycopg

LOOK_S = 2.0
STILL_S = 2
# How a room names its sessions to the server; those of one process have one name. Two digits after its 12
# letters are seconds: one that was ended while it worked asks for so many.
NAME = "room.2-"
# And those of rooms of the version before.
NAMES = r"room(\.2)?-"
# Sessions of rooms that others wait for, and that were not heard of for a while.
_FIND = """
SELECT DISTINCT f.pid, substring(f.application_name FROM '.*-[0-9a-f]{12}'), f.state_change
FROM pg_stat_activity w CROSS JOIN LATERAL unnest(pg_blocking_pids(w.pid)) AS b (pid)
JOIN pg_stat_activity f ON f.pid = b.pid
WHERE w.datname = current_database() AND w.wait_event_type = 'Lock'
    AND w.state_change < clock_timestamp() - make_interval(secs => $1)
    AND f.usename = current_user AND f.application_name ~ ('(^| )' || $2 || '[0-9a-f]{12,14}$')
    AND (f.state LIKE 'idle in transaction%' OR f.wait_event IN ('ClientRead', 'ClientWrite'))
    AND f.state_change < clock_timestamp() - make_interval(
        secs => coalesce(substring(f.application_name FROM '-[0-9a-f]{12}([0-9]{2})$')::float, $1)
    )
"""
# With one go the others of its process that wait: each would get the lock after it, and stand still with it.
_END = """
SELECT a.application_name, pg_terminate_backend(a.pid) FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.usename = current_user
    AND (a.pid = ANY($1) OR (substring(a.application_name FROM '.*-[0-9a-f]{12}') = ANY($2)
        AND a.wait_event_type = 'Lock' AND a.state_change < clock_timestamp() - make_interval(secs => $3)))
"""
Session = tuple[int, str, Any]


class FrozenSessions:
    """One that is found twice without having moved is ended."""

    def __init__(self) -> None:
        self._found: set[Session] = set()
        self._look_at = 0.0

    def look(self, db: psycopg.Connection) -> list[str]:
        """The names of processes whose sessions were ended; looks only now and then."""
        now = time.monotonic()
        if now < self._look_at:
            return []
        self._look_at = now + LOOK_S
        found: set[Session] = {(row[0], row[1], row[2]) for row in db.execute(_FIND, (STILL_S, NAMES))}
        still, self._found = found & self._found, found
        if not still:
            return []
        pids, names = [pid for pid, _, _ in still], [name for _, name, _ in still]
        return sorted({name for name, _ in db.execute(_END, (pids, names, STILL_S))})
