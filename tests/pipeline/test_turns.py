"""A turn's tokens and money come out of its record, whatever is missing from that."""

import json
from decimal import Decimal
from typing import Any

from postroom.pipeline.lake.tables import RECORDS
from postroom.pipeline.silver.turns import turns
from tests.pipeline.tiny import columns


def record(number: int, kind: str = "turn", **data: Any) -> dict[str, Any]:
    return {
        "id": number, "tenant": "default", "kind": kind, "key": f"t{number}", "data": json.dumps(data),
        "message_id": f"m{number}", "created_at": 1_794_000_000_000_000,
    }  # fmt: skip


def test_tokens_of_all_models_are_added_up_and_the_last_names_the_turn() -> None:
    usage = [
        {"provider": "a", "model": "small", "input_tokens": 3, "output_tokens": 1},
        {"provider": "b", "model": "large", "input_tokens": 10, "cache_read_tokens": None},
    ]
    rows = [
        record(1, agent="coder", outcome="finished", started_at=5, ended_at=9, usage=usage, cost_usd="0.25"),
        record(2, kind="turn.started", agent="coder"),
        record(3, usage=[]),
        record(4, usage=[{"model": "m", "input_tokens": 2}], started_at=9, ended_at=5),
    ]
    one, three, four = turns(columns(RECORDS, rows)).to_pylist()
    assert (one["provider"], one["model"], one["duration_us"]) == ("b", "large", 4)
    assert (one["input_tokens"], one["output_tokens"], one["cache_read_tokens"]) == (13, 1, 0)
    assert (one["cost_usd"], one["turn_id"], one["message_id"]) == (Decimal("0.2500000000"), "t1", "m1")
    assert (three["agent"], three["outcome"], three["model"], three["input_tokens"]) == (
        "unknown", "unknown", "unknown", 0,
    )  # fmt: skip
    assert (three["started_at"], three["ended_at"].date()) == (None, three["day"])
    assert (four["duration_us"], four["input_tokens"], four["provider"]) == (None, 2, "unknown")


def test_times_that_no_calendar_has_are_none_and_the_turn_is_kept_under_the_day_of_its_record() -> None:
    rows = [record(1, started_at=2**62, ended_at=-(2**62)), record(2, started_at=0, ended_at=10)]
    one, two = turns(columns(RECORDS, rows)).to_pylist()
    assert (one["started_at"], one["duration_us"], one["day"]) == (None, None, one["ended_at"].date())
    assert one["ended_at"].year == 2026
    assert (two["duration_us"], two["day"].year) == (10, 1970)


def test_a_price_that_is_none_is_not_known_and_one_with_many_digits_is_rounded() -> None:
    given = ["0.1", "free", "", None, "1e-3", "0.00000000005", "99999999999999999999"]
    found = turns(columns(RECORDS, [record(n, cost_usd=each) for n, each in enumerate(given)]))
    assert found["cost_usd"].to_pylist() == [
        Decimal("0.1"), None, None, None, Decimal("0.001"), Decimal("0E-10"), None,
    ]  # fmt: skip
