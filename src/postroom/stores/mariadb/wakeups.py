"""Sees what other processes have committed: MariaDB tells nobody, so the end of the ledger is looked at many
times a second, which costs the server one small read. What is missed costs time only: who waits looks again
now and then."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import pymysql

from postroom.stores.mariadb.connection import MariadbReadConnection
from postroom.stores.mariadb.dialect import READ_SQL
from postroom.stores.mariadb.pool import close_all

log = logging.getLogger("postroom.mariadb")

LOOK_S = 0.025
AGAIN_S = 1.0
# Of more than this who waits finds out by itself.
MOST_EVENTS = 5000


class OwnEvents:
    """Which events of the ledger this process has committed lately: of these it has told everybody itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commits: deque[tuple[int, int]] = deque(maxlen=MOST_EVENTS)

    def note(self, last: int, count: int) -> None:
        """A commit, whose events follow each other and end with this number."""
        with self._lock:
            self._commits.append((last, count))

    def count(self, after: int, up_to: int) -> int:
        """How many of these numbers are its own. Who asks never asks for earlier ones again."""
        with self._lock:
            kept = [(last, count) for last, count in self._commits if last > after]
            self._commits = deque(kept, MOST_EVENTS)
        return sum(count for last, count in kept if last <= up_to)


class LedgerWatcher:
    def __init__(
        self,
        connect: "Callable[[], pymysql.Connection[Any]]",
        own_events: OwnEvents,
        wake: Callable[[Mapping[int, int]], None],
    ) -> None:
        self._connect = connect
        self._own_events = own_events
        self._wake = wake
        self.is_closed = threading.Event()
        self.is_listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="postroom-watcher", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        while not self.is_closed.is_set():
            try:
                db = self._connect()
            except (pymysql.MySQLError, OSError) as error:
                log.info("what others commit is not seen at the moment: %s", error)
            else:
                try:
                    self._watch(MariadbReadConnection(db))
                except (pymysql.MySQLError, OSError) as error:
                    log.info("what others commit is not seen at the moment: %s", error)
                finally:
                    close_all([db])
            self.is_listening.clear()
            self.is_closed.wait(AGAIN_S)

    def _watch(self, reads: MariadbReadConnection) -> None:
        seen = self._head(reads)
        # Something may have come while nobody looked.
        self._wake({})
        self.is_listening.set()
        while not self.is_closed.wait(LOOK_S):
            head = self._head(reads)
            if head == seen:
                continue
            # Its own events may be noted a moment later than they are seen; then this looks once too often.
            if self._own_events.count(seen, head) != head - seen:
                since = max(seen, head - MOST_EVENTS)
                self._wake(dict(reads.fetch(READ_SQL["woken_since"], (since,))))
            seen = head

    def _head(self, reads: MariadbReadConnection) -> int:
        return reads.fetch(READ_SQL["head"])[0][0]
