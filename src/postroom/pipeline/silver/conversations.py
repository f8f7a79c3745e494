"""Conversations as trees: each message a span under the one that caused it; traces and hand-offs follow.

All of a conversation's spans are gathered in one row, so the tree is walked inside that row, without joins.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

DEEPEST = 100
MONEY = "decimal(20,10)"
_NONE = ""


def conversations(lives: DataFrame, turns: DataFrame, began: DataFrame | None = None) -> DataFrame:
    """One row per conversation with its trace, its `spans` and its `handed` on notes.

    `lives` and `turns` are all of the conversations wanted. `began` has the day under which a conversation is
    kept already, so that it stays there.
    """
    spans = _with_turns(lives, turns)
    span = F.col("span")
    gathered = spans.groupBy("trace_id").agg(
        F.sort_array(F.collect_list("span")).alias("list"),
        # What needs no order is counted here, where Spark compiles it; functions over lists are slower.
        F.min_by("tenant", F.when(F.col("tenant").isNotNull(), span["first_seq"])).alias("tenant"),
        F.count("*").cast("int").alias("messages"),
        F.max(span["depth"]).alias("depth"),
        F.sort_array(F.collect_set(F.when(span["inbox"], span["agent"]))).alias("agents"),
        F.count(F.when(span["outcome"] == "open", 1)).cast("int").alias("open"),
        F.count(F.when(span["outcome"].isin("dead", "expired"), 1)).cast("int").alias("failed"),
        F.max(span["seen_at"]).alias("ended_at"),
        F.sum(span["turns"]).cast("int").alias("turns"),
        F.sum(span["tokens"]).alias("tokens"),
        F.coalesce(F.sum(span["cost_usd"]), F.lit(0)).cast(MONEY).alias("cost_usd"),
        F.max("last_seq").alias("last_seq"),
        F.min("day").alias("first_day"),
    )
    if began is not None:
        gathered = gathered.join(began.select("trace_id", F.col("day").alias("kept_day")), "trace_id", "left")
        gathered = gathered.withColumn("day", F.coalesce("kept_day", "first_day"))
    else:
        gathered = gathered.withColumn("day", F.col("first_day"))
    return _told(_walked(gathered))


def trace_id() -> Column:
    return F.coalesce(F.col("correlation_id"), F.col("message_id"))


def _with_turns(lives: DataFrame, turns: DataFrame) -> DataFrame:
    spent = (
        turns.where("message_id is not null")
        .groupBy("message_id")
        .agg(
            F.count("*").cast("int").alias("turns"),
            F.sum(
                F.col("input_tokens")
                + F.col("cache_read_tokens")
                + F.col("cache_write_tokens")
                + F.col("output_tokens")
            ).alias("tokens"),
            F.sum("cost_usd").cast(MONEY).alias("cost_usd"),
        )
    )
    span = F.struct(
        # First, so that spans sort by time, and those of one moment as the ledger has them.
        F.col("published_at").alias("started_at"),
        "first_seq",
        F.col("message_id").alias("span_id"),
        F.coalesce("parent_id", "causation_id").alias("parent_id"),
        F.concat_ws("/", "scope", "queue").alias("name"),
        F.col("queue").startswith("inbox/").alias("inbox"),
        "agent",
        "channel",
        F.coalesce(F.col("hop"), F.lit(0)).alias("depth"),
        "state",
        "outcome",
        "error_class",
        F.col("first_claimed_at").alias("claimed_at"),
        F.col("finished_at").alias("ended_at"),
        F.coalesce("finished_at", "updated_at").alias("seen_at"),
        "wait_us",
        "work_us",
        F.coalesce("turns", F.lit(0)).alias("turns"),
        F.coalesce("tokens", F.lit(0)).alias("tokens"),
        "cost_usd",
        "last_seq",
    )
    joined = lives.join(spent, "message_id", "left")
    return joined.select(trace_id().alias("trace_id"), span.alias("span"), "tenant", "last_seq", "day")


def _walked(gathered: DataFrame) -> DataFrame:
    """The way from the first message to the one that ended last."""
    spans = F.col("list")
    by_id = F.map_from_entries(
        F.transform(spans, lambda s: F.struct(s["span_id"], F.coalesce(s["parent_id"], F.lit(_NONE))))
    )
    ends = F.transform(spans, lambda s: F.struct(s["seen_at"], s["last_seq"], s["span_id"]))
    last = F.array_max(ends)["span_id"]
    steps = F.sequence(F.lit(1), F.least(F.size(spans), F.lit(DEEPEST)))

    def climb(path: Column, _: Column) -> Column:
        above = F.coalesce(F.col("parents")[path[0]], F.lit(_NONE))
        known = F.map_contains_key(F.col("parents"), above) & ~F.array_contains(path, above)
        return F.when(known, F.concat(F.array(above), path)).otherwise(path)

    return (
        gathered.withColumn("parents", by_id)
        .withColumn("critical_path", F.aggregate(steps, F.array(last), climb))
        .withColumn("child_of", F.transform(spans, lambda s: F.coalesce(s["parent_id"], F.lit(_NONE))))
    )


def _told(rows: DataFrame) -> DataFrame:
    gathered, path, child_of = F.col("list"), F.col("critical_path"), F.col("child_of")

    def span(s: Column) -> Column:
        children = F.size(F.filter(child_of, lambda parent: parent == s["span_id"]))
        names = (
            "span_id", "parent_id", "name", "agent", "depth", "state", "error_class", "started_at",
            "claimed_at", "ended_at", "wait_us", "work_us", "turns", "cost_usd", "last_seq",
        )  # fmt: skip
        return F.struct(
            *(s[name].alias(name) for name in names),
            children.alias("children"),
            F.array_contains(path, s["span_id"]).alias("critical"),
        )

    def hand_off(s: Column) -> Column:
        return F.struct(
            s["span_id"].alias("message_id"),
            s["parent_id"].alias("cause_id"),
            F.col("agents_by_id")[s["parent_id"]].alias("from_agent"),
            s["agent"].alias("to_agent"),
            s["started_at"].alias("handed_at"),
            s["claimed_at"].alias("taken_at"),
            s["wait_us"].alias("latency_us"),
            s["outcome"].alias("outcome"),
            s["error_class"].alias("error_class"),
        )

    named = F.filter(gathered, lambda s: s["agent"].isNotNull())
    by_id = F.map_from_entries(F.transform(named, lambda s: F.struct(s["span_id"], s["agent"])))
    rows = rows.withColumn("agents_by_id", by_id).withColumn("spans", F.transform(gathered, span))
    handed = F.filter(
        gathered,
        lambda s: s["inbox"] & F.map_contains_key("agents_by_id", F.coalesce(s["parent_id"], F.lit(_NONE))),
    )
    rows = rows.withColumn("handed", F.transform(handed, hand_off))
    root = gathered[0]
    return rows.select(
        "trace_id",
        "tenant",
        root["span_id"].alias("root_id"),
        root["channel"].alias("channel"),
        "agents",
        "messages",
        "depth",
        F.array_max(F.transform("spans", lambda s: s["children"])).alias("fan_out"),
        F.size("handed").alias("handoffs"),
        "open",
        "failed",
        root["started_at"].alias("started_at"),
        "ended_at",
        (F.unix_micros("ended_at") - F.unix_micros(root["started_at"])).alias("duration_us"),
        "critical_path",
        _on_path("wait_us").alias("critical_wait_us"),
        _on_path("work_us").alias("critical_work_us"),
        "turns",
        "tokens",
        "cost_usd",
        "last_seq",
        "spans",
        "handed",
        "day",
    )


def _on_path(name: str) -> Column:
    """How long the spans of the longest way took together."""
    return F.aggregate(
        "spans",
        F.lit(0).cast("long"),
        lambda total, s: total + F.when(s["critical"], F.coalesce(s[name], F.lit(0))).otherwise(0),
    )
