"""One turn of an agent, from the provider's stream to what is to be remembered of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from decimal import Decimal
from typing import Any

import msgspec

from postroom.kernel import commands as c
from postroom.office.texts import clean
from postroom.providers.costs import Cost, turn_cost
from postroom.providers.protocol import (
    ErrorKind,
    Failed,
    Finished,
    SessionStarted,
    SessionTotal,
    ToolDenied,
    TurnEvent,
    TurnStream,
    Usage,
    Verdict,
)

# So many steps of a turn are kept one by one, and so many tools that were denied.
USAGES_APART = 50
DENIALS_KEPT = 20


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn came to. `provider` is the one that had the last word, and `totals` are those of its
    sessions that count their tokens up. `untold` are its last words for whoever watches, to be committed with
    what follows from it."""

    turn_id: str
    verdict: Verdict
    sessions: dict[str, str] = {}
    totals: dict[str, SessionTotal] = {}
    provider: str = ""
    usages: tuple[Usage, ...] = ()
    denied: tuple[ToolDenied, ...] = ()
    cost_usd: Decimal | None = None
    price_source: str | None = None
    started_at: int
    ended_at: int
    untold: tuple[c.Command, ...] = ()

    def record(self, agent: str) -> dict[str, Any]:
        """The turn as it is kept: no words of the conversation, which are in the messages."""
        failed = self.verdict if isinstance(self.verdict, Failed) else None
        return {
            "agent": agent,
            "outcome": failed.kind.value if failed else "finished",
            "cause": failed.cause.value if failed else "",
            "cut": isinstance(self.verdict, Finished) and bool(self.verdict.stop_reason),
            "denied": sorted({tool.name for tool in self.denied}),
            "provider": self.provider,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "usage": [msgspec.to_builtins(usage) for usage in _together(self.usages)],
            "cost_usd": None if self.cost_usd is None else str(self.cost_usd),
            "price_source": self.price_source,
        }


def _together(usages: Sequence[Usage]) -> Sequence[Usage]:
    """Of very many, the sums for each model: those with a price, and those without. A record has a limit."""
    if len(usages) <= USAGES_APART:
        return usages
    sums: dict[tuple[str, str, str, bool], Usage] = {}
    for usage in usages:
        key = (usage.provider, usage.vendor, usage.model, usage.cost_usd is None)
        sums[key] = _sum(sums[key], usage) if key in sums else usage
    return list(sums.values())


def _sum(one: Usage, other: Usage) -> Usage:
    unknown = one.cost_usd is None or other.cost_usd is None
    return msgspec.structs.replace(
        other,
        input_tokens=one.input_tokens + other.input_tokens,
        cache_read_tokens=one.cache_read_tokens + other.cache_read_tokens,
        cache_write_tokens=one.cache_write_tokens + other.cache_write_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost_usd=None if unknown else (one.cost_usd or 0.0) + (other.cost_usd or 0.0),
        whole_session=one.whole_session or other.whole_session,
    )


async def take_turn(
    turn_id: str,
    stream: TurnStream,
    now: Callable[[], int],
    tell: Callable[[TurnEvent], Awaitable[None]],
) -> TurnResult:
    """Follow a stream to its end, telling of every event on the way."""
    started_at = now()
    sessions: dict[str, str] = {}
    totals: dict[str, SessionTotal] = {}
    usages: list[Usage] = []
    denied: dict[ToolDenied, None] = {}
    provider = ""
    verdict: Verdict | None = None
    async with aclosing(stream) as events:
        async for event in events:
            if isinstance(event, SessionStarted):
                provider = event.provider
                sessions[provider] = event.session_id
            elif isinstance(event, Usage):
                usages.append(event)
                if event.session_total is not None:
                    totals[event.provider] = event.session_total
            elif isinstance(event, ToolDenied) and len(denied) < DENIALS_KEPT:
                denied[event] = None
            elif isinstance(event, Finished | Failed):
                verdict = event
                if isinstance(event, Failed) and event.provider:
                    provider = event.provider  # it may have failed before any session began
            await tell(event)
    if verdict is None:
        verdict = Failed(kind=ErrorKind.CRASHED, message="The provider ended without a verdict.")
    cost = await cost_of_turn(usages, now())
    return TurnResult(
        turn_id=turn_id,
        verdict=_readable(verdict),
        sessions=sessions,
        totals=totals,
        provider=provider,
        usages=tuple(usages),
        denied=tuple(denied),
        cost_usd=cost.usd if cost else None,
        price_source=cost.source if cost else None,
        started_at=started_at,
        ended_at=now(),
    )


async def cost_of_turn(usages: list[Usage], at: int) -> Cost | None:
    """Beside the event loop: the price list takes a moment to load when it is first needed."""
    if all(usage.cost_usd is not None for usage in usages):
        return turn_cost(usages, at)
    return await asyncio.to_thread(turn_cost, usages, at)


def _readable(verdict: Verdict) -> Verdict:
    if isinstance(verdict, Finished):
        return msgspec.structs.replace(verdict, text=clean(verdict.text))
    return msgspec.structs.replace(verdict, message=clean(verdict.message), detail=clean(verdict.detail))
