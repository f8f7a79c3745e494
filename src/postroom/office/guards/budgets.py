"""The accounts of the office, by name. Money is counted in micro-dollars.

`office` is in every reservation: frozen, it pauses all agents. A frozen conversation is paused or stopped.
"""

import hashlib
from enum import StrEnum

from postroom.kernel.model import Message

OFFICE = "office"
CONVERSATION = "conversation/"
MESSAGES = "messages/"
HOPS = "hops/"
UNPRICED_TOKENS = "unpriced/tokens/"
UNPRICED_TURNS = "unpriced/turns/"
# Names of accounts have a length, and conversations may be named by strangers.
LONGEST = 400
DOLLAR = 1_000_000


class BudgetGuard(StrEnum):
    """What stopped a conversation; the reason for which its account is frozen."""

    HOPS = "hops"
    MESSAGES = "messages"
    COST = "cost"
    CYCLE = "cycle"
    REPEATS = "repeats"
    BUDGET = "budget"


STOPPED = "stopped"
PAUSED = "paused"


def conversation_of(message: Message) -> str:
    return message.correlation_id or message.id


def _short(talk: str) -> str:
    if len(talk) <= LONGEST:
        return talk
    return f"{talk[:100]}…{hashlib.sha256(talk.encode()).hexdigest()}"


def conversation(talk: str) -> str:
    return CONVERSATION + _short(talk)


def messages(talk: str) -> str:
    return MESSAGES + _short(talk)


def hops(talk: str) -> str:
    return HOPS + _short(talk)


def agent(agent_id: str, day: str | None = None) -> str:
    """All that an agent ever cost, or that of one day."""
    return f"agent/{agent_id}" + (f"/{day}" if day else "")


def team(team_id: str, day: str) -> str:
    return f"team/{team_id}/{day}"


def whole_day(day: str) -> str:
    return f"day/{day}"


def day_of(account: str) -> str | None:
    """The day that a budget is for; None for an account that has no end."""
    match account.split("/"):
        case ["agent" | "team", _, day] | ["day", day]:
            return day
    return None


def dollars(micros: int) -> str:
    """Money as people write it; small sums keep what would otherwise be nothing."""
    digits = 2 if micros >= 10_000 or micros == 0 else 4
    return f"${micros / DOLLAR:,.{digits}f}"


def micros(usd: float | None) -> int | None:
    return None if usd is None else round(usd * DOLLAR)
