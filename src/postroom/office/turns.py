"""One turn of an agent, from the provider's stream to what is to be remembered of it."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from decimal import Decimal
from typing import Any

import msgspec

from postroom.providers.costs import turn_cost
from postroom.providers.protocol import (
    Failed,
    Finished,
    SessionStarted,
    TurnEvent,
    TurnStream,
    Usage,
    Verdict,
)


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn came to."""

    turn_id: str
    verdict: Verdict
    sessions: dict[str, str]
    usages: tuple[Usage, ...]
    cost_usd: Decimal | None
    price_source: str | None
    started_at: int
    ended_at: int

    def record(self, agent: str) -> dict[str, Any]:
        """The turn as it is kept: no words of the conversation, which are in the messages."""
        failed = self.verdict if isinstance(self.verdict, Failed) else None
        return {
            "agent": agent,
            "outcome": failed.kind.value if failed else "finished",
            "cause": failed.cause.value if failed else "",
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "usage": [msgspec.to_builtins(usage) for usage in self.usages],
            "cost_usd": None if self.cost_usd is None else str(self.cost_usd),
            "price_source": self.price_source,
        }


async def take_turn(
    turn_id: str,
    stream: TurnStream,
    now: Callable[[], int],
    tell: Callable[[TurnEvent], Awaitable[None]],
) -> Turn:
    """Follow a stream to its end, telling of every event on the way."""
    started_at = now()
    sessions: dict[str, str] = {}
    usages: list[Usage] = []
    verdict: Verdict | None = None
    async with aclosing(stream) as events:
        async for event in events:
            if isinstance(event, SessionStarted):
                sessions[event.provider] = event.session_id
            elif isinstance(event, Usage):
                usages.append(event)
            elif isinstance(event, Finished | Failed):
                verdict = event
            await tell(event)
    assert verdict is not None, "a stream ends with a verdict"
    cost = turn_cost(usages, now())
    return Turn(
        turn_id=turn_id,
        verdict=verdict,
        sessions=sessions,
        usages=tuple(usages),
        cost_usd=cost.usd if cost else None,
        price_source=cost.source if cost else None,
        started_at=started_at,
        ended_at=now(),
    )
