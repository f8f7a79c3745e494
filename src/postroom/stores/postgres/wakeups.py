"""Hears what other processes have committed, and looks between whether one of them stands still. What is
missed costs time only: who waits looks again now and then."""

import contextlib
import json
import logging
import threading
from collections.abc import Callable, Mapping

import psycopg

from postroom.stores.postgres.connection import PostgresReadConnection
from postroom.stores.postgres.dialect import READ_SQL
from postroom.stores.postgres.frozen import FrozenSessions

log = logging.getLogger("postroom.postgres")

# How long a closed store may wait for this thread, if the server cannot wake it.
LOOK_S = 2.0
AGAIN_S = 1.0
WATCH_S = 0.05
# Of more than this who waits finds out by itself.
MOST_EVENTS = 5000


class Listener:
    def __init__(
        self,
        connect: Callable[[], psycopg.Connection],
        channel: str,
        own_name: str,
        wake: Callable[[Mapping[int, int]], None],
        *,
        hears: bool = True,
        tend: Callable[[psycopg.Connection], object] | None = None,
    ) -> None:
        """`hears`: whether notifications arrive. Before a server with a pool they do not: then the end of the
        ledger is looked at. `tend` is called now and then, with the connection that listens."""
        self._connect = connect
        self._channel = channel
        self._own_name = own_name
        self._wake = wake
        self._tend = tend
        self._work = self._listen if hears else self._watch
        self.is_closed = threading.Event()
        self.is_listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="postroom-listener", daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        while not self.is_closed.is_set():
            try:
                self._work()
            except (psycopg.Error, OSError) as error:
                log.info("what others commit is not heard at the moment: %s", error)
            self.is_listening.clear()
            self.is_closed.wait(AGAIN_S)

    def _listen(self) -> None:
        with contextlib.closing(self._connect()) as db:
            db.execute(f"LISTEN {self._channel}".encode())
            # Something may have come while nobody listened.
            self._wake({})
            self.is_listening.set()
            frozen = FrozenSessions()
            while not self.is_closed.is_set():
                self._look_around(frozen, db)
                for note in db.notifies(timeout=LOOK_S):
                    self._hear(note.payload)
                    if self.is_closed.is_set():
                        return

    def _watch(self) -> None:
        with contextlib.closing(self._connect()) as db:
            frozen, reads = FrozenSessions(), PostgresReadConnection(db)
            [(seen,)] = reads.fetch(READ_SQL["head"])
            # Something may have come while nobody looked.
            self._wake({})
            self.is_listening.set()
            while not self.is_closed.wait(WATCH_S):
                self._look_around(frozen, db)
                [(head,)] = reads.fetch(READ_SQL["head"])
                if head != seen:
                    # Its own events are among them; then it looks for nothing.
                    since = max(seen, head - MOST_EVENTS)
                    self._wake(dict(reads.fetch(READ_SQL["woken_since"], (since,))))
                seen = head

    def _look_around(self, frozen: FrozenSessions, db: psycopg.Connection) -> None:
        if self._tend is not None:
            self._tend(db)
        for name in frozen.look(db):
            log.warning("%s stands still in a transaction, and was ended by the others", name)

    def _hear(self, payload: str) -> None:
        try:
            name, lines = json.loads(payload)
            woken = {int(line): int(count) for line, count in lines}
        except (ValueError, TypeError):
            log.warning("a notification that nobody of us has sent: %.100r", payload)
            return
        if name != self._own_name:
            self._wake(woken)
