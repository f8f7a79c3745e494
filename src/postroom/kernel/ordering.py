"""One sortable number per message; the lowest goes first, equal ones in the order of entry."""

from postroom.kernel.model import Ordering

TIER_RANK = {"critical": 4, "high": 3, "normal": 2, "low": 1, "background": 0}
LAST = 2**62


def sort_key(ordering: Ordering, *, entered_at: int, tier: str, score: int, deadline: int | None) -> int:
    if ordering is Ordering.FIFO:
        return entered_at
    if ordering is Ordering.PRIORITY:
        return -(TIER_RANK[tier] * 1000 + score)
    return LAST if deadline is None else deadline
