"""The ledger in memory: events in one list, with the head they end at and the anchor they begin after."""

from collections.abc import Iterable
from typing import Any

from postroom.kernel import ledger
from postroom.kernel.ledger import Draft, Event, Head
from postroom.stores.memory.journal import Journal


class Chain:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        # As `ledger.seal` makes them: (seq, fields…, hash). The first one's seq is the anchor's plus one.
        self._rows: list[tuple[Any, ...]] = []
        self.head = Head()
        self.anchor = Head()

    def seal(self, drafts: Iterable[Draft]) -> None:
        """Number and chain what a transaction appended. The last step of a commit: nothing undoes it."""
        rows, self.head = ledger.seal(drafts, self.head)
        self._rows += rows

    def events(self, after: int, limit: int) -> list[Event]:
        start = max(after - self.anchor.seq, 0)
        previous = self._rows[start - 1][-1] if 0 < start <= len(self._rows) else self.anchor.hash
        return list(ledger.unroll(self._rows[start : start + max(limit, 0)], previous))

    def prune(self, before: int, up_to_seq: int | None, limit: int) -> int:
        """Drop from the old end, but never the last event."""
        most = min(limit, len(self._rows) - 1)
        if up_to_seq is not None:
            most = min(most, up_to_seq - self.anchor.seq)
        count = 0
        while count < most and self._rows[count][1] < before:
            count += 1
        if count:
            dropped, anchor = self._rows[:count], self.anchor
            seq, time, digest = dropped[-1][0], dropped[-1][1], dropped[-1][-1]
            self._journal.note(lambda: self._restore(dropped, anchor))
            del self._rows[:count]
            self.anchor = Head(seq, digest, time)
        return count

    def _restore(self, dropped: list[tuple[Any, ...]], anchor: Head) -> None:
        self._rows[:0] = dropped
        self.anchor = anchor
