"""Words for a turn that goes on: what its person writes meanwhile, for providers that can take it.

What was accepted here is part of the turn; a provider that gives up leaves it to the next one's prompt.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator


class Steering:
    def __init__(self) -> None:
        self._unsent: deque[str] = deque()
        self._changed = asyncio.Event()
        self._accepted: list[str] = []
        self._is_open = False
        self._is_over = False

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def is_over(self) -> bool:
        """Whether there is an answer already: what comes now is for another turn."""
        return self._is_over

    @property
    def accepted(self) -> tuple[str, ...]:
        return tuple(self._accepted)

    def open(self) -> None:
        """By a provider whose prompt has all that was accepted before."""
        self._unsent.clear()
        self._changed.clear()
        self._is_open, self._is_over = True, False

    def close(self) -> None:
        """Once the answer is given: nothing more is accepted; what was accepted is still handed on."""
        self._is_over |= self._is_open
        self._is_open = False
        self._changed.set()

    def offer(self, text: str) -> bool:
        """Whether the turn takes it."""
        if not self._is_open:
            return False
        self._accepted.append(text)
        self._unsent.append(text)
        self._changed.set()
        return True

    async def words(self) -> AsyncIterator[str]:
        """What is accepted, as it comes, until there will be no more."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._unsent:
                yield self._unsent.popleft()
            if not self._is_open:
                return
