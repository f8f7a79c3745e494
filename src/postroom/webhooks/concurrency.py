"""A receiver that does not answer keeps workers waiting: it gets few of them, so that others get theirs."""

from collections import Counter

AT_ONCE = 2
PAUSE_S = 5.0
LONGEST_S = 60.0


class ReceiverLimits:
    """Who is being delivered to, and who has not answered lately."""

    def __init__(self) -> None:
        self._inside: Counter[str] = Counter()
        self._silent: Counter[str] = Counter()

    def enter(self, webhook_id: str) -> float | None:
        """None when it may be delivered to now; else the seconds after which to ask again."""
        if webhook_id in self._silent and self._inside[webhook_id] >= AT_ONCE:
            # The more are put off, the longer: they would only be put off again.
            self._silent[webhook_id] += 1
            return min(PAUSE_S * (1 + self._silent[webhook_id] // AT_ONCE), LONGEST_S)
        self._inside[webhook_id] += 1
        return None

    def leave(self, webhook_id: str, *, answered: bool) -> None:
        self._inside[webhook_id] -= 1
        if not self._inside[webhook_id]:
            del self._inside[webhook_id]
        self._silent.pop(webhook_id, None)
        if not answered:
            self._silent[webhook_id] = 0
