"""Tells other processes of commits from a thread of its own, gathered: no commit waits for it, and commits of
one moment are one piece of news. What is lost on the way costs time only: who waits looks again now and then.
"""

import threading
import time
from collections.abc import Callable, Mapping

# Between two pieces of news, at least; after a longer pause one goes at once.
GAP_S = 0.01
# When nothing became claimable, so that only readers of the ledger wait for it.
QUIET_GAP_S = 0.04
# Of so many lines at most; who waits on another finds out by itself.
MOST_LINES = 10_000


class GatheredNews:
    def __init__(self, send: Callable[[Mapping[int, int]], None], name: str) -> None:
        """`send` must not raise."""
        self._send = send
        self._changed = threading.Condition()
        self._lines: dict[int, int] = {}
        self._has_news = self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def tell(self, woken: Mapping[int, int]) -> None:
        """That something was committed, and on which lines how many messages became claimable."""
        with self._changed:
            if len(self._lines) < MOST_LINES:
                for line, count in woken.items():
                    self._lines[line] = self._lines.get(line, 0) + count
            if woken or not self._has_news:
                self._changed.notify()
            self._has_news = True

    def close(self) -> None:
        """What was told is sent first."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        sent = 0.0
        while (news := self._gather(sent)) is not None:
            self._send(news)
            sent = time.monotonic()

    def _gather(self, sent: float) -> Mapping[int, int] | None:
        """Wait until there is something to tell and it is time to; None when all is told and it is closed."""
        with self._changed:
            while not self._closed:
                wait = None
                if self._has_news:
                    wait = sent + (GAP_S if self._lines else QUIET_GAP_S) - time.monotonic()
                    if wait <= 0:
                        break
                self._changed.wait(wait)
            if not self._has_news:
                return None
            self._has_news = False
            lines, self._lines = self._lines, {}
            return lines
