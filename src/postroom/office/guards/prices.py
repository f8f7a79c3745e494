"""What is set aside for a turn before it begins, and what it has cost when it is over."""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal

import msgspec

from postroom.office.guards.rules import GuardRules, Terms
from postroom.office.turns.turn import TurnResult
from postroom.providers.protocol import Cause, ErrorKind, Failed, Finished, Usage

# Ended in the middle of the work, which the provider may have counted and we have not.
CUT_SHORT = frozenset({ErrorKind.CRASHED, ErrorKind.TIMED_OUT})
STOPPED_BY_US = frozenset({Cause.OUTPUT_LIMIT, Cause.TURN_LIMIT, Cause.BUDGET})


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """Micro-dollars; and the tokens of what nobody knows the price of."""

    amount: int = 0
    unpriced_tokens: int = 0
    unpriced_turns: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            amount=self.amount + other.amount,
            unpriced_tokens=self.unpriced_tokens + other.unpriced_tokens,
            unpriced_turns=self.unpriced_turns + other.unpriced_turns,
        )


def estimate(terms: Terms, peak: int | None, rules: GuardRules, limits: Iterable[int | None]) -> int:
    """The most a turn may cost, if that is set; else what the agent's dearest turn of late has cost.

    Never more than the smallest limit there is: a first turn is always let in where anything may be spent.
    Never nothing, unless it is free: a limit of zero lets nothing in that may cost something.
    """
    if terms.free:
        return 0
    wanted = terms.turn if terms.turn is not None else rules.reserve if peak is None else peak
    return max(min([wanted, *(limit for limit in limits if limit)]), 1)


def cost(turn: TurnResult, reserved: int, rules: GuardRules) -> Spent:
    """The price, if it is known; else tokens at the price standing in; else, if it worked, the estimate."""
    if turn.cost_usd is not None:
        return Spent(amount=of_usages(turn.cost_usd, turn.usages, rules))
    if turn.usages:
        tokens = sum(map(_tokens, turn.usages))
        amount = of_usages(None, turn.usages, rules)
        return Spent(amount=amount, unpriced_tokens=tokens, unpriced_turns=1)
    if isinstance(turn.verdict, Finished) or _was_cut_short(turn):
        return Spent(amount=reserved, unpriced_turns=1)
    return Spent()


def of_usages(cost_usd: Decimal | None, usages: Sequence[Usage], rules: GuardRules) -> int:
    """The price, or where nobody knows one, the tokens at the price standing in."""
    if cost_usd is not None:
        return max(0, math.ceil(cost_usd * 1_000_000))
    return math.ceil(sum(map(_tokens, usages)) * rules.unpriced_per_mtok)


def _was_cut_short(turn: TurnResult) -> bool:
    verdict = turn.verdict
    if not isinstance(verdict, Failed) or not turn.sessions:
        return False
    return verdict.kind in CUT_SHORT or verdict.cause in STOPPED_BY_US


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
