"""Trees of conversations are walked in whole columns; a plain walk, message by message, finds the same."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.pipeline.silver import trees
from postroom.pipeline.silver.trees import DEEPEST, build_trees

T0 = datetime(2026, 11, 1, tzinfo=UTC)
_TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("tenant", pa.string()), ("trace_id", pa.string()), ("started_at", _TIME), ("first_seq", pa.int64()),
        ("span_id", pa.string()), ("parent_id", pa.string()), ("name", pa.string()), ("inbox", pa.bool_()),
        ("agent", pa.string()), ("channel", pa.string()), ("depth", pa.int32()), ("state", pa.string()),
        ("outcome", pa.string()), ("error_class", pa.string()), ("claimed_at", _TIME), ("ended_at", _TIME),
        ("seen_at", _TIME), ("wait_us", pa.int64()), ("work_us", pa.int64()), ("turns", pa.int32()),
        ("tokens", pa.int64()), ("cost_usd", pa.decimal128(20, 10)), ("last_seq", pa.int64()),
        ("day", pa.date32()),
    ]
)  # fmt: skip


def span(number: int, trace: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "tenant": "default",
        "trace_id": trace,
        "started_at": T0 + timedelta(seconds=number),
        "first_seq": number,
        "span_id": f"{number:07}",
        "parent_id": parent,
        "name": "office/inbox/a",
        "inbox": True,
        "agent": "a",
        "depth": 0,
        "state": "completed",
        "outcome": "completed",
        "seen_at": T0 + timedelta(seconds=number + 1),
        "wait_us": 1,
        "work_us": 2,
        "turns": 1,
        "tokens": 3,
        "cost_usd": Decimal("0.01"),
        "last_seq": number,
        "day": date(2026, 11, 1),
        **more,
    }


def order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["tenant"] or "", row["trace_id"], row["started_at"], row["first_seq"], row["span_id"]


def built(rows: list[dict[str, Any]], size: int) -> tuple[list[dict[str, Any]], ...]:
    whole = pa.Table.from_pylist(sorted(rows, key=order), SCHEMA)
    portions = (whole.slice(place, size) for place in range(0, len(rows), size))
    return tuple(pa.concat_tables(each).to_pylist() for each in zip(*build_trees(portions), strict=True))


def walked(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What is told of each conversation, found the slow way."""
    found = {}
    for name in {row["trace_id"] for row in rows}:
        mine = {row["span_id"]: row for row in sorted(rows, key=order) if row["trace_id"] == name}
        last = max(mine.values(), key=lambda row: (row["seen_at"], row["last_seq"], row["span_id"]))
        path = [last["span_id"]]
        while len(path) <= DEEPEST and (above := mine[path[0]]["parent_id"]) in mine and above not in path:
            path.insert(0, above)
        below = [row["parent_id"] for row in mine.values()]
        handed = [
            row for row in mine.values()
            if row["inbox"] and row["parent_id"] in mine and mine[row["parent_id"]]["agent"]
        ]  # fmt: skip
        found[name] = {
            "root_id": next(iter(mine)),
            "messages": len(mine),
            "fan_out": max(below.count(key) for key in mine),
            "handoffs": len(handed),
            "agents": sorted({row["agent"] for row in mine.values() if row["inbox"] and row["agent"]}),
            "critical_path": path,
            "critical_work_us": sum(mine[key]["work_us"] or 0 for key in path),
            "cost_usd": sum((row["cost_usd"] or 0 for row in mine.values()), Decimal(0)),
            "ended_at": last["seen_at"],
        }
    return found


@st.composite
def forests(draw: st.DrawFn) -> list[dict[str, Any]]:
    count = draw(st.integers(1, 30))
    rows = []
    for number in range(count):
        cause = draw(st.one_of(st.none(), st.integers(0, count)))
        rows.append(
            span(
                number,
                draw(st.sampled_from(["one", "two", "three"])),
                None if cause is None else f"{cause:07}",
                agent=draw(st.sampled_from(["a", "b", None])),
                inbox=draw(st.booleans()),
                seen_at=T0 + timedelta(seconds=draw(st.integers(0, 9))),
                work_us=draw(st.sampled_from([None, 5, 7])),
                cost_usd=draw(st.sampled_from([None, Decimal("0.1"), Decimal("0.02")])),
            )
        )
    return rows


@given(forests(), st.integers(1, 40), st.integers(1, 12))
@settings(max_examples=150, deadline=None)
def test_whole_columns_find_what_a_plain_walk_finds(
    rows: list[dict[str, Any]], size: int, portion: int
) -> None:
    """In whatever portions the rows come, and however large a portion is before it is worked on."""
    with pytest.MonkeyPatch.context() as small:
        small.setattr(trees, "PORTION", portion)
        traces, spans, handed = built(rows, size)
    expected = walked(rows)
    assert {row["trace_id"]: {name: row[name] for name in expected[row["trace_id"]]} for row in traces} == (
        expected
    )
    assert len(traces) == len(expected)
    assert sorted(each["span_id"] for each in spans) == sorted(each["span_id"] for each in rows)
    assert len(handed) == sum(each["handoffs"] for each in expected.values())
    critical = {key for each in expected.values() for key in each["critical_path"]}
    assert {each["span_id"] for each in spans if each["critical"]} == critical


@pytest.mark.timeout(60)
def test_a_conversation_of_a_hundred_thousand_messages_costs_what_its_messages_do() -> None:
    """Half of them in one line of causes, half caused by the first; with a look at all others for each of
    them it would take hours. The longest way is followed for a hundred steps."""
    half = 50_000
    line = [span(n, "long", f"{n - 1:07}" if n else None) for n in range(half)]
    star = [span(half + n, "long", "0000000", outcome="open") for n in range(half)]
    line[-1]["seen_at"] = T0 + timedelta(days=9)
    [trace], spans, handed = built([*line, *star], 65_536)
    assert (trace["messages"], trace["open"], trace["fan_out"]) == (2 * half, half, half + 1)
    assert (trace["handoffs"], len(handed), len(spans)) == (2 * half - 1, 2 * half - 1, 2 * half)
    assert trace["critical_path"] == [f"{n:07}" for n in range(half - DEEPEST - 1, half)]
    assert trace["cost_usd"] == Decimal("1000.0000000000")
