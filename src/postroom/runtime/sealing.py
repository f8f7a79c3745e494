"""Numbers and chains the events of a store that does so after the commit, and wakes readers of the ledger.

Every process that has the store open runs one; the store lets one of them work at a time.
"""

import logging
import threading

from postroom.kernel.ports import Fault, Store
from postroom.runtime.wakeups import Wakeups

log = logging.getLogger("postroom.sealing")

AT_ONCE = 5000
# What a process that died left behind waits no longer than this.
PERIOD_S = 1.0


class Sealer:
    def __init__(self, store: Store, wakeups: Wakeups) -> None:
        self._store = store
        self._wakeups = wakeups
        self._news = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="postroom-sealer", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """There is something to seal."""
        self._news.set()

    def close(self) -> None:
        """Seal what there is, then stop."""
        self._is_closed = True
        self._news.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._news.wait(PERIOD_S)
            self._news.clear()
            self._seal()

    def _seal(self) -> None:
        try:
            while sealed := self._store.seal(AT_ONCE):
                self._wakeups.ring_tails()
                if sealed < AT_ONCE:
                    return
        except Exception as error:
            # The next round tries again: nothing is lost, readers only wait.
            fault, named = self._store.classify(error)
            if fault is Fault.FINAL:
                log.error("the ledger could not be sealed: %s", named, exc_info=error)
