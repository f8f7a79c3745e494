"""What is set aside before a turn, and what it counts for afterwards."""

from decimal import Decimal
from typing import Any

import pytest

from postroom.office.guards.prices import Spent, cost, estimate
from postroom.office.guards.rules import GuardRules, Terms
from postroom.office.turns.turn import TurnResult
from postroom.providers.protocol import Cause, ErrorKind, Failed, Finished, Usage

RULES = GuardRules(reserve=500_000, unpriced_per_mtok=5)
WORKED = {"sessions": {"paid": "s"}}


def turn(verdict: Finished | Failed | None = None, **fields: Any) -> TurnResult:
    verdict = verdict or Finished(text="ok")
    return TurnResult(turn_id="t", verdict=verdict, started_at=0, ended_at=1, **fields)


def failed(kind: ErrorKind, cause: Cause = Cause.UNKNOWN) -> Failed:
    return Failed(kind=kind, message="no", cause=cause)


def test_nothing_is_known_so_the_settings_decide() -> None:
    assert estimate(Terms(), None, RULES, [None]) == 500_000


def test_the_dearest_turn_of_late_is_expected_again() -> None:
    assert estimate(Terms(), 30_000, RULES, [None]) == 30_000


def test_a_limit_of_the_turn_is_set_aside_whole_since_it_may_be_used_whole() -> None:
    assert estimate(Terms(turn=2_000_000), 30_000, RULES, [None]) == 2_000_000


def test_where_anything_may_be_spent_a_first_turn_is_let_in() -> None:
    assert estimate(Terms(), None, RULES, [None, 100_000, 400_000]) == 100_000


def test_where_nothing_may_be_spent_nothing_is_let_in_that_may_cost() -> None:
    assert estimate(Terms(), None, RULES, [0]) > 0
    assert estimate(Terms(turn=0), None, RULES, [0]) > 0


def test_what_is_free_needs_nothing() -> None:
    assert estimate(Terms(free=True, turn=5), 9, RULES, [None]) == 0


def test_a_known_price_is_the_price_and_never_rounded_down() -> None:
    assert cost(turn(cost_usd=Decimal("0.0000001")), 9, RULES) == Spent(amount=1)
    assert cost(turn(cost_usd=Decimal("1.25")), 9, RULES) == Spent(amount=1_250_000)
    assert cost(turn(cost_usd=Decimal(0)), 9, RULES) == Spent()


def test_unknown_prices_are_counted_in_tokens_at_the_price_that_stands_in() -> None:
    usage = Usage(
        provider="p", model="m", input_tokens=1, output_tokens=2, cache_read_tokens=4, cache_write_tokens=8
    )
    assert cost(turn(usages=(usage, usage)), 9, RULES) == Spent(
        amount=150, unpriced_tokens=30, unpriced_turns=1
    )


def test_an_answer_without_a_word_on_tokens_counts_as_it_was_estimated() -> None:
    assert cost(turn(), 9, RULES) == Spent(amount=9, unpriced_turns=1)


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_a_failure_counts_when_work_was_begun_and_cut_short(kind: ErrorKind) -> None:
    cut = kind in (ErrorKind.CRASHED, ErrorKind.TIMED_OUT)
    assert cost(turn(failed(kind), **WORKED), 9, RULES).amount == (9 if cut else 0)
    assert cost(turn(failed(kind)), 9, RULES) == Spent(), "nothing had begun"


@pytest.mark.parametrize("cause", [Cause.OUTPUT_LIMIT, Cause.TURN_LIMIT, Cause.BUDGET])
def test_what_a_limit_of_ours_stopped_counts(cause: Cause) -> None:
    assert cost(turn(failed(ErrorKind.INVALID, cause), **WORKED), 9, RULES).amount == 9


def test_a_failure_that_used_tokens_counts_them() -> None:
    usage = Usage(provider="p", model="m", output_tokens=100)
    assert cost(turn(failed(ErrorKind.REFUSED), usages=(usage,)), 9, RULES).amount == 500
