"""Wake-ups inside this process: who waits for messages of a line or for ledger events is woken by the commit.

As many waiters are woken as there are new messages, first come first served. A waiter that leaves without
having used its wake-up passes it on. Other processes poll.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

log = logging.getLogger("postroom.wakeups")


class Waiter:
    """One waiter; `wake` may be called from any thread."""

    __slots__ = ("is_woken", "lines", "wake")

    def __init__(self, lines: Iterable[int], wake: Callable[[], None]) -> None:
        self.lines = tuple(lines)
        self.wake = wake
        self.is_woken = False


class Wakeups:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[int, deque[Waiter]] = {}
        self._tails: set[Callable[[], None]] = set()
        self._commits: set[Callable[[], None]] = set()
        self._watchers: dict[int, set[Callable[[], None]]] = {}
        self.news = 0
        """How often the ledger had something new: what was read at one number is all there was at it."""

    def join(self, waiter: Waiter) -> None:
        with self._lock:
            for line in waiter.lines:
                self._lines.setdefault(line, deque()).append(waiter)

    def watch(self, lines: Iterable[int], wake: Callable[[], None]) -> None:
        """Be woken whenever messages of these lines become claimable, without using up anybody's wake-up."""
        with self._lock:
            for line in lines:
                self._watchers.setdefault(line, set()).add(wake)

    def unwatch(self, lines: Iterable[int], wake: Callable[[], None]) -> None:
        with self._lock:
            for line in lines:
                watchers = self._watchers.get(line)
                if watchers is not None:
                    watchers.discard(wake)
                    if not watchers:
                        del self._watchers[line]

    @contextmanager
    def waiting(self, lines: Sequence[int], wake: Callable[[], None], *, is_choosy: bool) -> Iterator[Waiter]:
        """Be woken meanwhile. One that is choosy may not want what woke it, so it must not use up the wake-up
        of somebody who does."""
        waiter = Waiter(lines, wake)
        if is_choosy:
            self.watch(lines, wake)
        else:
            self.join(waiter)
        try:
            yield waiter
        finally:
            if is_choosy:
                self.unwatch(lines, wake)
            else:
                self.leave(waiter)

    def rearm(self, waiter: Waiter) -> None:
        """Before looking again: from here on the waiter can be woken anew."""
        waiter.is_woken = False

    def leave(self, waiter: Waiter) -> None:
        with self._lock:
            for line in waiter.lines:
                waiters = self._lines.get(line)
                if waiters is not None:
                    waiters.remove(waiter)
                    if not waiters:
                        del self._lines[line]
        if waiter.is_woken:
            self.wake(dict.fromkeys(waiter.lines, 1))

    def wake(self, woken: Mapping[int, int]) -> None:
        """Wake waiters of these lines, as many as messages became claimable."""
        if not self._lines and not self._watchers:
            return
        found: list[Waiter] = []
        watching: set[Callable[[], None]] = set()
        with self._lock:
            for line, count in woken.items():
                watching |= self._watchers.get(line, set())
                waiters = self._lines.get(line)
                if not waiters:
                    continue
                for waiter in waiters:
                    if count <= 0:
                        break
                    if not waiter.is_woken:
                        waiter.is_woken = True
                        found.append(waiter)
                        count -= 1
        for waiter in found:
            _call(waiter.wake)
        for wake in watching:
            _call(wake)

    def wake_all(self) -> None:
        """Everybody, since there is nothing to wait for any more."""
        with self._lock:
            waiters = {waiter for waiters in self._lines.values() for waiter in waiters}
            watching = {wake for watchers in self._watchers.values() for wake in watchers}
        for wake in [*(waiter.wake for waiter in waiters), *watching]:
            _call(wake)
        self.wake_followers()

    def follow(self, wake: Callable[[], None], *, commits: bool = False) -> None:
        """Call it when the ledger has something new; with `commits`, whenever anything was committed."""
        with self._lock:
            (self._commits if commits else self._tails).add(wake)

    def unfollow(self, wake: Callable[[], None]) -> None:
        with self._lock:
            self._tails.discard(wake)
            self._commits.discard(wake)

    def wake_followers(self, *, news: bool = True) -> None:
        """Something was committed; `news` when it is in the ledger."""
        if news:
            with self._lock:  # and before anybody is woken: who wakes must not be given what was read before
                self.news += 1
        if self._commits or (news and self._tails):
            with self._lock:
                woken = [*self._commits, *(self._tails if news else ())]
            for wake in woken:
                _call(wake)


def _call(wake: Callable[[], None]) -> None:
    """One that cannot be woken must not keep the others asleep."""
    try:
        wake()
    except Exception:
        log.exception("somebody who waits could not be woken")
