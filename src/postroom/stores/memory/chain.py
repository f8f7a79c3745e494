"""The ledger in memory: events in one list, with the head they end at and the anchor they begin after."""

from collections.abc import Callable, Iterable
from typing import Any

from postroom.kernel import ledger
from postroom.kernel.budgets.model import Budget, Key, fold_accounts
from postroom.kernel.ledger import Event, EventDraft, Folded, Head
from postroom.stores.memory.journal import Journal


class Chain:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        # As `ledger.seal` makes them: (seq, fields…, hash). The first one's seq is the anchor's plus one.
        self._rows: list[tuple[Any, ...]] = []
        self.head = Head()
        self.anchor = Head()
        # How messages and accounts stood there.
        self.messages: dict[str, Folded] = {}
        self.accounts: dict[Key, Budget] = {}

    def seal(self, drafts: Iterable[EventDraft]) -> None:
        """Number and chain what a transaction appended. The last step of a commit: nothing undoes it."""
        rows, self.head = ledger.seal(drafts, self.head)
        self._rows += rows

    def events(self, after: int, limit: int) -> list[Event]:
        start = max(after - self.anchor.seq, 0)
        previous = self._rows[start - 1][-1] if 0 < start <= len(self._rows) else self.anchor.hash
        return list(ledger.unroll(self._rows[start : start + max(limit, 0)], previous))

    def _old(self, before: int, most: int) -> int:
        count = 0
        while count < most and self._rows[count][1] < before:
            count += 1
        return count

    def time_of(self, seq: int) -> int:
        place = min(seq - self.anchor.seq, len(self._rows))
        if place > 0:
            return self._rows[place - 1][1]
        return self.anchor.time if place == 0 else 0

    def prune(self, before: int, up_to_seq: int | None, limit: int, is_there: Callable[[str], bool]) -> int:
        """Drop from the old end, but never the last event."""
        most = min(limit, len(self._rows) - 1)
        if up_to_seq is not None:
            most = min(most, up_to_seq - self.anchor.seq)
        count = self._old(before, most)
        if count:
            dropped, anchor = self._rows[:count], self.anchor
            seq, time, digest = dropped[-1][0], dropped[-1][1], dropped[-1][-1]
            messages, accounts = dict(self.messages), dict(self.accounts)
            self._journal.note(lambda: self._restore(dropped, anchor, messages, accounts))
            events = list(ledger.unroll(dropped, anchor.hash))
            told = ledger.fold(events, dict(messages), cut=True)
            self.messages = {message_id: each for message_id, each in told.items() if is_there(message_id)}
            self.accounts = fold_accounts(events, dict(accounts))
            del self._rows[:count]
            self.anchor = Head(seq, digest, time)
        return count

    def _restore(
        self,
        dropped: list[tuple[Any, ...]],
        anchor: Head,
        messages: dict[str, Folded],
        accounts: dict[Key, Budget],
    ) -> None:
        self._rows[:0] = dropped
        self.anchor, self.messages, self.accounts = anchor, messages, accounts

    def forget(self, message_id: str) -> None:
        """A message is gone: how it stood at the anchor no longer matters."""
        if message_id in self.messages:
            self._journal.delete(self.messages, message_id)
