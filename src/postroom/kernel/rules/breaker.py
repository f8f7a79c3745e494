"""The circuit breaker: a rule that meets the same conversation again and again within a minute is stopped."""

import hashlib
import threading
from collections import deque
from typing import Protocol

import msgspec

from postroom.clock import SECOND
from postroom.kernel.facts import RATE
from postroom.kernel.rows import Row
from postroom.kernel.transitions.context import TransitionContext

WINDOW = 60 * SECOND
MOST_MATCHES = 20
REST_S = 60
MOST_HOPS = 10
MOST_KNOWN = 10_000


class Breaker(Protocol):
    """How often each rule has met each conversation lately."""

    def trips(self, ctx: TransitionContext, rule_id: str, row: Row) -> bool:
        """Count one match; whether it is one too many."""
        ...


class ProcessBreaker:
    """Kept by this process, for a store that has one."""

    def __init__(self) -> None:
        self._met: dict[tuple[str, str], deque[int]] = {}
        self._lock = threading.Lock()

    def trips(self, ctx: TransitionContext, rule_id: str, row: Row) -> bool:
        since, conversation = ctx.now - WINDOW, row.correlation_id or row.id
        with self._lock:
            if len(self._met) > MOST_KNOWN:
                self._met = {who: met for who, met in self._met.items() if met[-1] > since}
            met = self._met.setdefault((rule_id, conversation), deque())
            while met and met[0] <= since:
                met.popleft()
            met.append(ctx.now)
            return len(met) > MOST_MATCHES


class StoreBreaker:
    """Kept in the store, with the change that the rule makes, so that it holds over all processes. Of a
    message that begins a conversation nobody knows anything yet, so batches of them cost nothing."""

    def __init__(self) -> None:
        self._beginnings = ProcessBreaker()

    def trips(self, ctx: TransitionContext, rule_id: str, row: Row) -> bool:
        if row.correlation_id in (None, row.id):
            return self._beginnings.trips(ctx, rule_id, row)
        key = f"breaker/{rule_id}/{hashlib.sha256(row.correlation_id.encode()).hexdigest()[:32]}"
        fact = ctx.session.fact(RATE, key)
        known = msgspec.json.decode(fact.data, type=list[int]) if fact is not None else []
        met = [*(at for at in known if at > ctx.now - WINDOW), ctx.now][-MOST_MATCHES - 1 :]
        ctx.session.remember(RATE, key, met, ctx.now)
        return len(met) > MOST_MATCHES
