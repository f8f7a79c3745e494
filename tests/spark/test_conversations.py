"""A conversation is a tree: its depth, its longest way, its hand-offs and its cost."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from postroom.pipeline.lake.tables import MESSAGE_LIFE, TURNS
from postroom.pipeline.silver.conversations import conversations
from tests.spark.lakes import frame

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


def turn(number: int, message: str, usd: str) -> dict[str, Any]:
    counts = dict.fromkeys(("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens"), 5)
    return {
        "record_id": number,
        "message_id": message,
        "correlation_id": "talk",
        "cost_usd": Decimal(usd),
        "day": DAY,
        **counts,
    }


def test_a_trace_knows_its_shape_its_longest_way_and_its_cost(spark: Any) -> None:
    turns = frame(spark, TURNS, [turn(1, "a", "0.10"), turn(2, "b", "0.20"), turn(3, "b", "0.05")])
    [row] = conversations(frame(spark, MESSAGE_LIFE, TALK), turns).toArrow().to_pylist()
    assert (row["root_id"], row["messages"], row["depth"], row["fan_out"]) == ("a", 4, 2, 2)
    assert row["critical_path"] == ["a", "b", "d"]
    assert (row["critical_wait_us"], row["critical_work_us"]) == (3_000_000, 39_000_000)
    assert (row["agents"], row["handoffs"]) == (["books", "coder", "front"], 2)
    assert (row["turns"], row["tokens"], row["cost_usd"]) == (3, 60, Decimal("0.3500000000"))
    assert (row["duration_us"], row["last_seq"]) == (42_000_000, 9)
    edges = {(each["from_agent"], each["to_agent"]) for each in row["handed"]}
    assert edges == {("front", "coder"), ("front", "books")}
    assert {each["span_id"] for each in row["spans"] if each["critical"]} == {"a", "b", "d"}


def test_causes_that_are_unknown_or_circular_do_not_hang(spark: Any) -> None:
    odd = [
        life("x", "inbox/front", 0, 5, "nobody"),
        life("y", "inbox/coder", 1, 9, "z"),
        life("z", "inbox/coder", 2, 8, "y"),
    ]
    [row] = conversations(frame(spark, MESSAGE_LIFE, odd), frame(spark, TURNS, [])).toArrow().to_pylist()
    assert row["messages"] == 3
    assert row["critical_path"] == ["z", "y"]


def test_a_conversation_stays_under_the_day_it_is_kept(spark: Any) -> None:
    import pyarrow as pa

    earlier = date(2026, 10, 30)
    began = spark.createDataFrame(pa.table({"trace_id": ["talk"], "day": pa.array([earlier], pa.date32())}))
    rows = conversations(frame(spark, MESSAGE_LIFE, TALK), frame(spark, TURNS, []), began)
    assert rows.toArrow()["day"].to_pylist() == [earlier]


def test_of_messages_of_one_microsecond_the_first_of_the_ledger_is_the_root_and_the_last_ends_it(
    spark: Any,
) -> None:
    """A rule sends a copy on in the same transaction; its id is chance, its place in the ledger is not."""
    copied = [
        life("b", "inbox/front", 0, 5, first_seq=1, last_seq=8, channel="web"),
        life("a", "inbox/coder", 0, 5, "b", first_seq=2, last_seq=9, channel=None),
    ]
    [row] = conversations(frame(spark, MESSAGE_LIFE, copied), frame(spark, TURNS, [])).toArrow().to_pylist()
    assert (row["root_id"], row["channel"]) == ("b", "web")
    other = [{**copied[0], "message_id": "a"}, {**copied[1], "message_id": "b", "causation_id": "a"}]
    [row] = conversations(frame(spark, MESSAGE_LIFE, other), frame(spark, TURNS, [])).toArrow().to_pylist()
    assert (row["root_id"], row["critical_path"]) == ("a", ["a", "b"])
    [row] = conversations(frame(spark, MESSAGE_LIFE, copied), frame(spark, TURNS, [])).toArrow().to_pylist()
    assert row["critical_path"] == ["b", "a"]


def test_a_conversation_is_of_the_tenant_in_which_it_began(spark: Any) -> None:
    mixed = [
        life(f"m{n}", "inbox/front", n, n + 1, tenant=f"tenant-{n}", first_seq=n) for n in (3, 1, 2, 0, 4)
    ]
    for order in (mixed, mixed[::-1]):
        frames = frame(spark, MESSAGE_LIFE, order).repartition(5, "message_id"), frame(spark, TURNS, [])
        [row] = conversations(*frames).toArrow().to_pylist()
        assert row["tenant"] == "tenant-0"
