"""What a turn cost: as the provider reported it, else by the price list of the `genai-prices` package.

The list is part of the package and read offline, so a cost is stored with the version it was reckoned with.
A price that is not known is None, never 0.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec

from postroom.clock import SECOND
from postroom.providers.protocol import Usage

PACKAGE = "genai-prices"
REPORTED = "reported by the provider"


class Cost(msgspec.Struct, frozen=True):
    """US dollars, and the price list or source they come from."""

    usd: Decimal
    source: str


@cache
def price_version() -> str | None:
    """The price list in use, None if the package is not installed."""
    from importlib import metadata  # slow, and only who reckons needs it

    try:
        return f"{PACKAGE} {metadata.version(PACKAGE)}"
    except metadata.PackageNotFoundError:
        return None


def cost_of(usage: Usage, at: int) -> Cost | None:
    """The cost of one model's use at a moment (prices change with time), or None if it is not known."""
    if usage.cost_usd is not None:
        return Cost(Decimal(repr(usage.cost_usd)), REPORTED)
    source = price_version()
    if source is None or not usage.model or not usage.vendor:
        return None
    usd = _reckon(usage, datetime.fromtimestamp(at / SECOND, UTC))
    return None if usd is None else Cost(usd, source)


def turn_cost(usages: Iterable[Usage], at: int) -> Cost | None:
    """The sum over a turn; None if any part of it is not known, or if there is nothing to sum."""
    costs = [cost_of(usage, at) for usage in usages]
    known = [cost for cost in costs if cost is not None]
    if not known or len(known) < len(costs):
        return None
    sources = dict.fromkeys(cost.source for cost in known)
    return Cost(sum((cost.usd for cost in known), Decimal(0)), ", ".join(sources))


def _reckon(usage: Usage, at: datetime) -> Decimal | None:
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    cached = usage.cache_read_tokens + usage.cache_write_tokens
    tokens = Tokens(
        input_tokens=usage.input_tokens + cached,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    model, place = _place(usage)
    try:
        return calc_price(tokens, model, genai_request_timestamp=at, **place).total_price
    except LookupError:
        return None


def _place(usage: Usage) -> tuple[str, dict[str, Any]]:
    """Where to look the model up. A server of one's own is looked up by its address only: the same model name
    elsewhere has another price."""
    if "://" in usage.vendor:
        return usage.model, {"provider_api_url": usage.vendor}
    model = usage.model.removeprefix(f"{usage.vendor}/").removesuffix("[1m]")
    return model, {"provider_id": usage.vendor}
