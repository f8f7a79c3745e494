"""Rows as the claims of this process left them, so that completing one need not read it again.

Nothing here is trusted: the store writes such a completion only if the claim's token is still the message's.
A row is handed out once, so what turns out to be old is read by whoever tries again.
"""

import threading
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import islice

from postroom.kernel.rows import Row

MOST = 10_000


class HeldRows:
    """Shared by all writers of a process."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._rows: dict[str, Row] = {}
        self._lock = threading.Lock()

    def keep(self, rows: Iterable[Row]) -> None:
        with self._lock:
            for row in rows:
                # Behind all others: the oldest go first.
                self._rows.pop(row.id, None)
                self._rows[row.id] = row
            for message_id in list(islice(self._rows, max(0, len(self._rows) - self._most))):
                del self._rows[message_id]

    def take(self, claims: Sequence[tuple[str, str]]) -> list[Row]:
        """Of these messages and tokens, what is known; each time as a row of its own."""
        with self._lock:
            found = [(self._rows.pop(message_id, None), token) for message_id, token in claims]
        return [copy(row) for row, token in found if row is not None and row.token == token]
