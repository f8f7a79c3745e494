"""Back-tests: what a rule or a guard would have done to the past, judged by the code that judges today."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from postroom.kernel import jsontext
from postroom.kernel.rules.matching import considered
from postroom.kernel.rules.parsing import drafted
from postroom.kernel.rules.rule import Rule, Trigger
from postroom.pipeline.errors import QueueNotInLake
from postroom.pipeline.jobs.frames import table_frame
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import MESSAGE_LIFE, MESSAGES, TRACES, Table
from postroom.pipeline.serving.engine import QueryEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ENDED = {
    Trigger.COMPLETED: "completed",
    Trigger.DEAD_LETTERED: "dead",
    Trigger.EXPIRED: "expired",
}
KNOWN = 20
_QUEUES = "SELECT DISTINCT scope || '/' || queue AS name FROM message_life ORDER BY name"
_NEEDED = (
    "id", "scope", "queue", "origin_queue", "state", "message_type", "content_type", "priority_tier",
    "priority_score", "source_type", "source_id", "correlation_id", "attempts", "hop", "labels", "body",
    "result", "failure_reason", "failure_kind", "created_at", "finished_at",
)  # fmt: skip


class BacktestVerdict(msgspec.Struct, frozen=True):
    """How many messages were looked at, how many the rule would have taken, and what became of them."""

    looked_at: int
    matched: int
    by_queue: dict[str, int]
    by_outcome: dict[str, int]
    examples: list[str]


def read_rule(document: dict[str, Any]) -> Rule:
    """A rule as it is written down. Queues need not exist: nothing is moved."""
    names: dict[Any, int] = {}
    find: Callable[[Any, str], int] = lambda name, _: names.setdefault(name, len(names) + 1)  # noqa: E731
    return drafted(document, find, rule_id="backtest", now=0)


def check_source(engine: QueryEngine, document: dict[str, Any]) -> None:
    """Refuses a rule about a queue of which the lake knows nothing: "0 of 0" would tell nobody anything."""
    wanted = document.get("source_queue_id")
    if wanted is None:
        return
    names = [row["name"] for row in engine.rows(_QUEUES)] if engine.has("message_life") else []
    if str(wanted) not in names:
        known = ", ".join(names[:KNOWN]) + (" …" if len(names) > KNOWN else "")
        raise QueueNotInLake(queue=wanted, known=known or "none")


def backtest(spark: "SparkSession", lake: Lake, document: dict[str, Any]) -> BacktestVerdict:
    """A routing rule over every message that has ended; one that ended twice is judged as it was last."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    rule = read_rule(document)
    source = document.get("source_queue_id")
    messages = _frame(spark, lake, MESSAGES).select(*_NEEDED, "ended_seq")
    if rule.trigger in _ENDED:
        messages = messages.where(F.col("state") == _ENDED[rule.trigger])
    elif rule.trigger is Trigger.FAILED:
        messages = messages.where("failure_kind is not null")
    place = F.concat_ws("/", "scope", F.coalesce("origin_queue", "queue"))
    if source is not None:
        messages = messages.where(place == str(source))
    newest = F.row_number().over(Window.partitionBy("id").orderBy(F.desc("ended_seq")))
    messages = messages.withColumn("newest", newest).where("newest = 1").select(*_NEEDED)
    judged = messages.withColumn("place", place).mapInArrow(
        partial(_judge, rule), "id string, place string, state string, matched boolean"
    )
    counted = judged.groupBy("place", "state", "matched").agg(
        F.count("*").alias("n"), F.slice(F.array_sort(F.collect_set("id")), 1, 5).alias("ids")
    )
    return _verdict(counted.toArrow().to_pylist())


def _verdict(rows: list[dict[str, Any]]) -> BacktestVerdict:
    by_queue: dict[str, int] = {}
    by_outcome: dict[str, int] = {}
    examples: list[str] = []
    for row in (row for row in rows if row["matched"]):
        by_queue[row["place"]] = by_queue.get(row["place"], 0) + row["n"]
        by_outcome[row["state"]] = by_outcome.get(row["state"], 0) + row["n"]
        examples += row["ids"]
    return BacktestVerdict(
        sum(row["n"] for row in rows), sum(by_queue.values()), by_queue, by_outcome, sorted(examples)[:5]
    )


def _judge(rule: Rule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    at_start = rule.trigger is Trigger.PUBLISHED
    for batch in batches:
        rows = batch.to_pylist()
        matched = [considered(rule, facts(row, at_start=at_start)).matched for row in rows]
        yield pa.RecordBatch.from_pydict(
            {
                "id": batch.column("id"),
                "place": batch.column("place"),
                "state": batch.column("state"),
                "matched": pa.array(matched, pa.bool_()),
            }
        )


def facts(row: dict[str, Any], *, at_start: bool) -> dict[str, Any]:
    """What a rule would have seen: at the start nothing of how it ended is known."""
    body = None
    if row["content_type"] == "application/json" and row["body"] is not None:
        body = _decoded(row["body"])
    return {
        "id": row["id"],
        "scope": row["scope"],
        "queue": row["origin_queue"] or row["queue"],
        "state": "pending" if at_start else row["state"],
        "message_type": row["message_type"],
        "content_type": row["content_type"],
        "priority_tier": row["priority_tier"],
        "priority_score": row["priority_score"],
        "source_type": row["source_type"],
        "source_id": row["source_id"],
        "correlation_id": row["correlation_id"],
        "attempts": 0 if at_start else row["attempts"],
        "hops": row["hop"],
        "labels": _decoded(row["labels"]) or {},
        "body": body,
        "result": None if at_start else _decoded(row["result"]),
        "failure_reason": None if at_start else row["failure_reason"],
        "failure_kind": None if at_start else row["failure_kind"],
        "age_s": 0.0 if at_start else ((row["finished_at"] or row["created_at"]) - row["created_at"]) / 1e6,
    }


def _decoded(text: str | None) -> Any:
    try:
        return None if text is None else jsontext.decode(text)
    except msgspec.DecodeError:
        return None  # a secret was cut out of it


class Guarded(msgspec.Struct, frozen=True):
    """What limits on conversations would have stopped, and what that would have saved."""

    conversations: int
    stopped: int
    messages_not_sent: int
    saved_usd: float
    completed_anyway: int
    examples: list[str]


def guard(
    spark: "SparkSession", lake: Lake, *, hops: int | None, messages: int | None, usd: float | None
) -> Guarded:
    """Conversations that would have met a limit on hops, messages or money."""
    from pyspark.sql import functions as F
    from pyspark.sql.window import Window

    traces = _frame(spark, lake, TRACES)
    lives = _frame(spark, lake, MESSAGE_LIFE)
    talk = F.coalesce("correlation_id", "message_id")
    order = lives.select(talk.alias("trace_id"), "hop", "first_seq", "message_id")
    numbered = order.withColumn(
        "number", F.row_number().over(Window.partitionBy("trace_id").orderBy("first_seq", "message_id"))
    )
    over = F.lit(False)
    if hops is not None:
        over = over | (F.col("hop") > hops)
    if messages is not None:
        over = over | (F.col("number") > messages)
    cut = numbered.where(over).groupBy("trace_id").agg(F.count("*").alias("not_sent"))
    joined = traces.join(cut, "trace_id", "left")
    stopped = F.coalesce(F.col("not_sent"), F.lit(0)) > 0
    if usd is not None:
        stopped = stopped | (F.col("cost_usd") > usd)
    share = F.coalesce(F.col("not_sent"), F.lit(0)) / F.col("messages")
    beyond = F.greatest(F.col("cost_usd") - F.lit(usd), F.lit(0)) if usd is not None else F.lit(0)
    saved = F.greatest(F.col("cost_usd") * share, beyond)
    summed = joined.agg(
        F.count("*").alias("conversations"),
        F.count(F.when(stopped, 1)).alias("stopped"),
        F.coalesce(F.sum("not_sent"), F.lit(0)).alias("not_sent"),
        F.coalesce(F.sum(F.when(stopped, saved)), F.lit(0)).cast("double").alias("saved"),
        F.count(F.when(stopped & (F.col("open") == 0) & (F.col("failed") == 0), 1)).alias("fine"),
        F.slice(F.array_sort(F.collect_set(F.when(stopped, F.col("trace_id")))), 1, 5).alias("examples"),
    )
    row = summed.toArrow().to_pylist()[0]
    return Guarded(
        row["conversations"],
        row["stopped"],
        row["not_sent"],
        round(row["saved"], 6),
        row["fine"],
        row["examples"],
    )


def _frame(spark: "SparkSession", lake: Lake, table: Table) -> "DataFrame":
    lake.must_open(table)
    return table_frame(spark, lake, table, lake.files(table))
