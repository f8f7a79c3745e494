"""The store for tests: everything in memory, gone when the process ends.

Readers and the writer take turns, so keep a reader's block short: the writer waits until it is left.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from postroom.errors import StoreClosed
from postroom.kernel.ports import Reader, Transaction
from postroom.stores.memory.reader import MemoryReader
from postroom.stores.memory.tables import Tables
from postroom.stores.memory.transaction import MemoryTransaction


class MemoryStore:
    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._tables = Tables()
        self._open: MemoryTransaction | None = None
        self._readers: Counter[int] = Counter()
        self._closed = False

    def begin(self) -> Transaction:
        """Waits for readers, but not for those of its own thread, which would wait for ever."""
        me = threading.get_ident()
        with self._turn:
            self._turn.wait_for(lambda: self._open is None and not self._readers.keys() - {me})
            self._refuse_when_closed()
            self._open = MemoryTransaction(self._tables)
            return self._open

    def commit(self, tx: Transaction) -> None:
        """May come from another thread than `begin`. When it fails, the transaction can be rolled back."""
        if self._open is None or tx is not self._open:
            raise RuntimeError("this transaction has ended")
        self._open.commit()
        self._end()

    def rollback(self, tx: Transaction) -> None:
        """Without effect when it has ended already."""
        if self._open is not None and tx is self._open:
            self._open.rollback()
            self._end()

    def explain(self, error: Exception) -> Exception:
        return error

    def _end(self) -> None:
        with self._turn:
            self._open = None
            self._turn.notify_all()

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        me = threading.get_ident()
        with self._turn:
            self._turn.wait_for(lambda: self._open is None)
            self._refuse_when_closed()
            self._readers[me] += 1
        try:
            yield MemoryReader(self._tables)
        finally:
            with self._turn:
                self._readers[me] -= 1
                if not self._readers[me]:
                    del self._readers[me]
                self._turn.notify_all()

    def left_behind(self, owner: str) -> str | None:
        """Nothing outlives the process."""
        return None

    def close(self) -> None:
        """A transaction that is open may still end."""
        with self._turn:
            self._closed = True

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise StoreClosed
