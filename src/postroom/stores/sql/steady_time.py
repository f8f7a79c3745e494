"""Time that goes on but never back, whatever the clock of the machine does."""


class SteadyTime:
    """A clock that was put back would disturb the order of entry and of the ledger. From where it stood, time
    then goes on at its pace, so that leases and delays end, until the clock has caught up."""

    def __init__(self) -> None:
        self._ahead = 0

    def steady(self, found: int, not_before: int) -> int:
        if found >= not_before:
            self._ahead = 0
            return found
        self._ahead = max(self._ahead, not_before - found)
        return found + self._ahead
