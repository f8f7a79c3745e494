"""A conversation is a tree: its depth, its longest way, its hand-offs and its cost."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from postroom.pipeline.jobs.conversation_tasks import MOVED, spans_by_day
from postroom.pipeline.lake.tables import MESSAGE_LIFE, SPANS, TURNS
from postroom.pipeline.silver.conversations import conversation_keys, in_order, spent_on_messages
from postroom.pipeline.silver.trees import build_trees
from tests.pipeline.tiny import columns

T0 = datetime(2026, 11, 1, 12, tzinfo=UTC)
DAY = date(2026, 11, 1)


def life(
    name: str, queue: str, start: float, end: float | None, cause: str | None = None, **more: Any
) -> dict[str, Any]:
    agent = queue.partition("/")[2] if queue.startswith("inbox/") else None
    ended = T0 + timedelta(seconds=end) if end is not None else None
    return {
        "message_id": name,
        "tenant": "default",
        "scope": "office",
        "queue": queue,
        "agent": agent,
        "channel": "web",
        "hop": 0,
        "correlation_id": "talk",
        "causation_id": cause,
        "state": "completed" if end is not None else "claimed",
        "outcome": "completed" if end is not None else "open",
        "published_at": T0 + timedelta(seconds=start),
        "updated_at": ended or T0 + timedelta(seconds=start),
        "finished_at": ended,
        "wait_us": 1_000_000,
        "work_us": round(((end or start + 1) - start - 1) * 1e6),
        "first_seq": 1,
        "last_seq": 1,
        "day": DAY,
        **more,
    }


TALK = [
    life("a", "inbox/front", 0, 10),
    life("b", "inbox/coder", 10, 40, "a", hop=1, last_seq=9),
    life("c", "inbox/books", 10, 20, "a", hop=1),
    life("d", "outbox/web", 40, 42, "b", hop=2),
]


def turn(number: int, message: str, usd: str | None) -> dict[str, Any]:
    counts = dict.fromkeys(("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"), 5)
    return {
        "record_id": number,
        "message_id": message,
        "correlation_id": "talk",
        "cost_usd": None if usd is None else Decimal(usd),
        "day": DAY,
        **counts,
    }


Rows = list[dict[str, Any]]


def talked(
    lives: Rows, turns: Sequence[dict[str, Any]] = (), moved: Any = None, known: Any = None
) -> tuple[Rows, Rows, Rows]:
    """Traces, spans and hand-offs of these messages."""
    spent, rows = spent_on_messages(columns(TURNS, turns), known), columns(MESSAGE_LIFE, lives)
    days = spans_by_day(rows, conversation_keys(rows), moved or MOVED.empty_table(), spent)
    built = list(build_trees(iter([in_order(pa.concat_tables([spans for _, spans in days]))])))
    traces, parts, handed = (pa.concat_tables(each).to_pylist() for each in zip(*built, strict=True))
    return traces, parts, handed


def test_a_trace_knows_its_shape_its_longest_way_and_its_cost() -> None:
    turns = [turn(1, "a", "0.10"), turn(2, "b", "0.20"), turn(3, "b", "0.05"), turn(4, "c", None)]
    [row], spans, handed = talked(TALK, turns)
    assert (row["root_id"], row["messages"], row["depth"], row["fan_out"]) == ("a", 4, 2, 2)
    assert row["critical_path"] == ["a", "b", "d"]
    assert (row["critical_wait_us"], row["critical_work_us"]) == (3_000_000, 39_000_000)
    assert (row["agents"], row["handoffs"]) == (["books", "coder", "front"], 2)
    assert (row["turns"], row["tokens"], row["cost_usd"]) == (4, 80, Decimal("0.3500000000"))
    assert (row["duration_us"], row["last_seq"]) == (42_000_000, 9)
    assert {(each["from_agent"], each["to_agent"]) for each in handed} == {
        ("front", "coder"),
        ("front", "books"),
    }
    assert {each["tenant"] for each in (*spans, *handed)} == {"default"}
    assert {each["span_id"] for each in spans if each["critical"]} == {"a", "b", "d"}
    cost = {each["span_id"]: (each["turns"], each["tokens"], each["cost_usd"]) for each in spans}
    assert cost["b"] == (2, 40, Decimal("0.2500000000"))
    assert cost["c"] == (1, 20, None)
    assert cost["d"] == (0, 0, None)


def test_turns_that_spans_have_counted_are_added_to_and_not_read_again() -> None:
    before = [turn(1, "a", "0.10"), turn(2, "b", None)]
    _, spans, _ = talked(TALK, before)
    known = columns(SPANS, spans)
    after = [turn(3, "b", "0.05"), turn(4, "b", "0.01"), turn(5, "d", "0.02")]
    assert talked(TALK, after, known=known) == talked(TALK, [*before, *after])


def test_causes_that_are_unknown_or_circular_do_not_hang() -> None:
    odd = [
        life("x", "inbox/front", 0, 5, "nobody"),
        life("y", "inbox/coder", 1, 9, "z"),
        life("z", "inbox/coder", 2, 8, "y"),
    ]
    [row], _, _ = talked(odd)
    assert row["messages"] == 3
    assert row["critical_path"] == ["z", "y"]


def test_a_conversation_stays_under_the_day_it_is_kept() -> None:
    [key] = {each.as_py() for each in conversation_keys(columns(MESSAGE_LIFE, TALK))}
    kept = pa.table({"key": [key], "day": [date(2026, 10, 30)]}, MOVED)
    tables = talked(TALK, moved=kept)
    assert {row["day"] for rows in tables for row in rows} == {date(2026, 10, 30)}


def test_of_messages_of_one_microsecond_the_first_of_the_ledger_is_the_root_and_the_last_ends_it() -> None:
    """A rule sends a copy on in the same transaction; its id is chance, its place in the ledger is not."""
    copied = [
        life("b", "inbox/front", 0, 5, first_seq=1, last_seq=8, channel="web"),
        life("a", "inbox/coder", 0, 5, "b", first_seq=2, last_seq=9, channel=None),
    ]
    [row], _, _ = talked(copied)
    assert (row["root_id"], row["channel"], row["critical_path"]) == ("b", "web", ["b", "a"])
    other = [{**copied[0], "message_id": "a"}, {**copied[1], "message_id": "b", "causation_id": "a"}]
    [row], _, _ = talked(other)
    assert (row["root_id"], row["critical_path"]) == ("a", ["a", "b"])


def test_one_id_in_two_tenants_is_two_conversations() -> None:
    """Who chooses ids of conversations does not know what others choose. Causes do not cross tenants."""
    other = [{**each, "tenant": "acme", "message_id": f"{each['message_id']}2"} for each in TALK]
    other[1]["causation_id"] = "a"
    traces, spans, handed = talked([*TALK, *other], [turn(1, "a", "0.10")])
    found = {row["tenant"]: row for row in traces}
    assert set(found) == {"acme", "default"}
    assert (found["default"]["messages"], found["default"]["handoffs"]) == (4, 2)
    assert (found["acme"]["messages"], found["acme"]["handoffs"]) == (4, 0)
    assert (found["default"]["turns"], found["acme"]["turns"]) == (1, 0)
    assert {each["tenant"] for each in handed} == {"default"}
    assert sum(each["tenant"] == "acme" for each in spans) == 4


def test_a_message_of_which_only_late_events_are_known_is_a_conversation_of_its_own() -> None:
    """Its beginning was let go: neither tenant nor conversation nor time is known."""
    unknown = dict.fromkeys(("tenant", "correlation_id", "published_at", "queue", "scope"))
    late = life("q", "", 0, 5) | unknown
    traces, spans, _ = talked([*TALK, late])
    [row] = [row for row in traces if row["trace_id"] == "q"]
    assert (row["tenant"], row["messages"], row["started_at"], row["duration_us"]) == (None, 1, None, None)
    assert len(spans) == 5
