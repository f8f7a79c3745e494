"""A cost is known with its source, or it is not known."""

from decimal import Decimal
from importlib.metadata import version

import pytest

from postroom.clock import SECOND
from postroom.providers import Usage, cost_of, costs, price_version, turn_cost

NOW = 1_790_000_000 * SECOND


def usage(model: str = "claude-sonnet-4-6", vendor: str = "anthropic", cost: float | None = None) -> Usage:
    return Usage(
        provider="p",
        model=model,
        vendor=vendor,
        input_tokens=1000,
        cache_read_tokens=2000,
        output_tokens=100,
        cost_usd=cost,
    )


def test_what_the_provider_reports_counts() -> None:
    cost = cost_of(usage(cost=0.0182), NOW)
    assert cost is not None
    assert (cost.usd, cost.source) == (Decimal("0.0182"), "reported by the provider")


def test_a_known_model_is_reckoned_and_the_price_list_named() -> None:
    cost = cost_of(usage(), NOW)
    assert cost is not None
    assert cost.usd == Decimal("0.0051")  # 1000 at 3, 2000 cached at 0.3, 100 out at 15 dollars a million
    assert cost.source == f"genai-prices {version('genai-prices')}"


def test_the_large_context_mark_of_claude_code_is_not_part_of_the_model() -> None:
    assert cost_of(usage("claude-sonnet-4-6[1m]"), NOW) == cost_of(usage(), NOW)


@pytest.mark.parametrize(
    ("model", "vendor"),
    [
        ("no-such-model", "anthropic"),
        ("claude-sonnet-4-6", "no-such-vendor"),
        ("gpt-5", "http://127.0.0.1:11434/v1"),
        ("", "openai"),
        ("gpt-5", ""),
        ("opencode/free-model", "opencode"),
    ],
)
def test_an_unknown_price_is_none_and_not_zero(model: str, vendor: str) -> None:
    assert cost_of(usage(model, vendor), NOW) is None


def test_a_turn_with_an_unknown_part_has_no_known_cost() -> None:
    assert turn_cost([usage(cost=1.0), usage("no-such-model")], NOW) is None
    assert turn_cost([], NOW) is None


def test_a_turn_costs_the_sum_of_its_parts() -> None:
    cost = turn_cost([usage(cost=0.1), usage(cost=0.2), usage()], NOW)
    assert cost is not None
    assert cost.usd == Decimal("0.3051")
    assert cost.source == f"reported by the provider, {price_version()}"


def test_zero_reported_is_zero() -> None:
    cost = cost_of(usage(cost=0.0), NOW)
    assert cost is not None
    assert cost.usd == 0


def test_without_the_price_list_only_reported_costs_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "price_version", lambda: None)
    assert cost_of(usage(), NOW) is None
    assert cost_of(usage(cost=1.0), NOW) is not None
