"""Anybody's Spark job reads the ledger without gaps or repeats, and publishes once for each key."""

from pathlib import Path
from typing import Any

import apsw
import pytest
from anyio.from_thread import start_blocking_portal
from pyspark.sql.datasource import EqualTo, In

from postroom.pipeline.errors import LedgerGap
from postroom.pipeline.sources.spark import LedgerStream, RangeReader, register
from postroom.pipeline.sources.sqlite import SqliteSource
from postroom.runtime import open_sync
from tests.api.house import TOKEN, opened
from tests.spark.lakes import copy_of


@pytest.fixture(scope="module", autouse=True)
def known(spark: Any) -> None:
    register(spark)


def read(spark: Any, source: SqliteSource, **options: Any) -> Any:
    return spark.read.format("postroom").options(**options).load(source.path)


def test_the_ledger_comes_whole_and_in_order_from_many_tasks(spark: Any, month: SqliteSource) -> None:
    ledger = read(spark, month, rowsPerTask=400)
    found = ledger.select("seq", "hash").toArrow()
    head = month.snapshot()
    assert found["seq"].to_pylist() == list(range(1, head.head + 1))
    assert found["hash"][-1].as_py() == head.head_hash
    assert ledger.rdd.getNumPartitions() == -(-head.head // 400)


def test_comparisons_of_the_number_narrow_what_is_read(spark: Any, month: SqliteSource) -> None:
    some = read(spark, month, rowsPerTask=10).where("seq > 20 AND seq <= 40 AND type LIKE 'message.%'")
    assert some.rdd.getNumPartitions() == 2
    numbers = some.select("seq").toArrow()["seq"].to_pylist()
    assert numbers
    assert all(20 < seq <= 40 for seq in numbers)


def test_values_that_a_column_must_have_are_asked_of_the_store(month: SqliteSource) -> None:
    """Not only left to Spark: nothing else leaves the store."""

    def taken(table: str, *filters: Any) -> list[dict[str, Any]]:
        reader = RangeReader(month, table, 2, [])
        assert list(reader.pushFilters(list(filters))) == list(filters), "Spark looks at the answer too"
        return [
            row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()
        ]

    last = month.snapshot().head
    numbers = In(("seq",), (3, 7, 8, last, last + 100))
    assert [row["seq"] for row in taken("ledger", numbers)] == [3, 7, 8, last]
    assert [row["seq"] for row in taken("ledger", numbers, In(("seq",), (7, last)))] == [7, last]
    dead = taken("messages", EqualTo(("state",), "dead"))
    assert dead
    assert {row["state"] for row in dead} == {"dead"}
    some = [row["id"] for row in dead[:2]]
    kinds = EqualTo(("type",), "message.published")
    assert [row["message_id"] for row in taken("ledger", kinds, In(("message_id",), tuple(some)))] == some
    assert taken("messages", EqualTo(("state",), "dead"), EqualTo(("state",), "completed")) == []


def test_the_same_rows_come_whether_spark_or_the_store_looks_for_them(
    spark: Any, month: SqliteSource
) -> None:
    ledger, messages = read(spark, month), read(spark, month, table="messages")
    assert ledger.where("seq IN (5, 2, 40)").select("seq").toArrow()["seq"].to_pylist() == [2, 5, 40]
    states = messages.select("state").toArrow()["state"].to_pylist()
    assert messages.where("state = 'completed'").count() == states.count("completed") > 0


def test_messages_and_records_have_their_declared_columns(spark: Any, month: SqliteSource) -> None:
    snapshot = month.snapshot()
    assert read(spark, month, table="messages").count() == snapshot.messages
    turns = read(spark, month, table="records").where("kind = 'turn'").limit(1).toArrow().to_pylist()
    assert turns[0]["redacted"] is False
    with pytest.raises(Exception, match="must be one of ledger"):
        read(spark, month, table="nonsense").count()


def test_a_stream_takes_what_is_there_and_goes_on_where_it_ended(
    spark: Any, month: SqliteSource, tmp_path: Path
) -> None:
    def follow(most: int) -> list[int]:
        stream = spark.readStream.format("postroom").option("maxRows", most).load(month.path)
        query = (
            stream.select("seq")
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination(120)
        return sorted(spark.read.parquet(str(tmp_path / "out")).toArrow()["seq"].to_pylist())

    head = month.snapshot().head
    assert follow(head // 2) == list(range(1, head + 1))
    assert follow(head) == list(range(1, head + 1)), "a second query with the same place adds nothing"


def test_a_frame_is_published_once_for_each_key(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    with open_sync(f"sqlite:///{path}", housekeeping=False) as room:
        room.create_scope("shop")
        room.create_queue("shop/orders")
    orders = spark.createDataFrame(
        [(n, f"item {n}", "high") for n in range(50)], "order int, item string, priority_tier string"
    )
    for _ in range(2):
        orders.repartition(3).write.format("postroom").options(queue="shop/orders", key="order").mode(
            "append"
        ).save(str(path))
    with open_sync(f"sqlite:///{path}", housekeeping=False) as room:
        assert room.counts("shop/orders").pending == 50
        [message] = room.claim("shop/orders")
        assert set(message.body) == {"item"}
        assert message.priority_tier == "high"


def test_every_task_publishes_through_the_running_office_and_once_for_each_key(
    spark: Any, tmp_path: Path
) -> None:
    """The office has its store open all the while; the second write is what a repeated task would do."""
    orders = spark.createDataFrame(
        [(n, f"item {n}", "high", 3600.0) for n in range(2500)],
        "order int, item string, priority_tier string, ttl_s double",
    )

    def save(frame: Any, **options: str) -> None:
        frame.write.format("postroom").options(**options).mode("append").save()

    with (
        start_blocking_portal() as loop,
        loop.wrap_async_context_manager(opened(tmp_path, works=False)) as house,
    ):
        loop.call(house.room.create_scope, "shop")
        loop.call(house.room.create_queue, "shop/orders")
        given = {"url": house.url, "token": TOKEN, "queue": "shop/orders", "key": "order"}
        for _ in range(2):
            save(orders.repartition(3), **given)
        assert loop.call(house.room.counts, "shop/orders").pending == 2500
        [message] = loop.call(house.room.claim, "shop/orders")
        assert set(message.body) == {"item"}
        assert (message.priority_tier, message.expires_at is None) == ("high", False)
        with pytest.raises(Exception, match="401"):
            save(orders, **{**given, "token": "somebody-elses-token-0123"})
        named = orders.withColumnRenamed("item", "sender")
        with pytest.raises(Exception, match="whoever publishes"):
            save(named, **given)
        with pytest.raises(Exception, match="is needed"):
            save(orders, url=house.url, token=TOKEN)


def test_a_store_that_is_open_elsewhere_is_not_written(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "room.db"
    with open_sync(f"sqlite:///{path}", housekeeping=False) as room:
        room.create_queue("jobs")
        frame = spark.createDataFrame([(1,)], "n int")
        with pytest.raises(Exception, match="owned by another process"):
            frame.write.format("postroom").option("queue", "jobs").mode("append").save(str(path))
        assert room.counts("jobs").pending == 0


def test_a_stream_that_is_behind_what_was_pruned_says_so_and_a_new_one_begins_after_it(
    month: SqliteSource, tmp_path: Path
) -> None:
    store = copy_of(month, tmp_path)
    db = apsw.Connection(store.path)
    db.execute(
        "UPDATE figures SET n = 50, hash = (SELECT hash FROM ledger WHERE seq = 50) WHERE name = 'anchor'"
    )
    db.execute("DELETE FROM ledger WHERE seq <= 50")
    db.close()
    head = store.snapshot().head
    stream = LedgerStream(store, 1000, 0, None)
    assert stream.initialOffset() == {"seq": 50}
    seqs = [
        seq
        for part in stream.partitions({"seq": 50}, {"seq": head})
        for batch in stream.read(part)
        for seq in batch.column("seq").to_pylist()
    ]
    assert seqs == list(range(51, head + 1))
    with pytest.raises(LedgerGap, match="Events 31 to 50"):
        stream.partitions({"seq": 30}, {"seq": head})
