"""Those who ask the same tables long questions meanwhile. What a transaction of theirs may still see cannot
be cleaned away, however old it is.
"""

import threading

import psycopg

QUESTIONS = (
    "SELECT queue, type, count(*), avg(length(data)), max(time) FROM ledger GROUP BY queue, type",
    "SELECT queue_id, state, count(*), max(updated_at - created_at) FROM messages GROUP BY queue_id, state",
)
PAUSE_S = 30.0


class Analyst:
    """Keeps one transaction open for `seconds`, then begins the next, until it is stopped."""

    def __init__(self, url: str, seconds: float, begin_after: float = 0.0) -> None:
        self._url = url
        self._seconds = seconds
        self._begin_after = begin_after
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        if self._stopped.wait(self._begin_after):
            return
        with psycopg.connect(self._url) as db:
            db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            while not self._stopped.is_set():
                with db.transaction():
                    self._ask(db)

    def _ask(self, db: psycopg.Connection) -> None:
        left = self._seconds
        while left > 0 and not self._stopped.is_set():
            for question in QUESTIONS:
                db.execute(question.encode()).fetchall()
            pause = min(PAUSE_S, left)
            self._stopped.wait(pause)
            left -= pause

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
