"""A process that stands still in a transaction holds others up, so its session is ended after some seconds
in which it was not heard of. One that was ended while it worked (a large batch, a busy machine) must get
there all the same: it is given more time when it tries again.
"""

import threading

MOST_S = 80


class Patience(threading.local):
    """Of the next transaction of each thread."""

    def __init__(self, first_s: int) -> None:
        self._first_s = self.seconds = first_s

    @property
    def is_longer(self) -> bool:
        return self.seconds > self._first_s

    def extend_after(self, silence_s: float) -> None:
        """A transaction has failed that had not been heard of for so long."""
        if silence_s >= self.seconds:
            self.seconds = min(4 * self.seconds, MOST_S)

    def reset(self) -> None:
        self.seconds = self._first_s
