"""The messages of conversations as spans: each with its cause, its cost, and the day its conversation is kept
under.

A conversation is known by its tenant and its id. What needs its tree is worked out in `trees`.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

MONEY = "decimal(20,10)"
KEY = ("tenant", "trace_id")
ORDER = ("day", *KEY, "started_at", "first_seq", "span_id")
"""How spans come to `trees`: all of a conversation together, by time, and those of one moment as in the
ledger."""


def conversation_spans(lives: DataFrame, spent: DataFrame, began: DataFrame | None = None) -> DataFrame:
    """`lives` are all messages of the conversations wanted, `spent` is what their turns cost.

    `began` has the day under which a conversation is kept already, so that it stays there.
    """
    spans = lives.join(spent, "message_id", "left").select(
        "tenant",
        trace_id().alias("trace_id"),
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
        "day",
    )
    first = F.min("day").over(Window.partitionBy(*KEY))
    if began is None:
        return spans.withColumn("day", first)
    kept = began.select(*KEY, F.col("day").alias("kept_day"))
    same = [F.col(f"spans.{name}").eqNullSafe(F.col(f"kept.{name}")) for name in KEY]
    joined = spans.withColumn("day", first).alias("spans").join(F.broadcast(kept.alias("kept")), same, "left")
    return joined.withColumn("day", F.coalesce("kept_day", "day")).select(
        *(f"spans.{name}" for name in spans.columns if name != "day"), "day"
    )


def trace_id() -> Column:
    return F.coalesce(F.col("correlation_id"), F.col("message_id"))


def key() -> Column:
    """One text for each conversation, as `keys_of` makes it of rows in Arrow."""
    return F.concat_ws("\x1f", F.coalesce("tenant", F.lit("")), trace_id())


def spent_on_messages(turns: DataFrame, known: DataFrame | None = None) -> DataFrame:
    """Turns, tokens and money by message. `known` are spans that have counted earlier turns already."""
    tokens = sum(
        (F.col(f"{name}_tokens") for name in ("cache_read", "cache_write", "output")), F.col("input_tokens")
    )
    taken = turns.where("message_id is not null").select(
        "message_id", F.lit(1).alias("turns"), tokens.alias("tokens"), "cost_usd"
    )
    if known is not None:
        taken = taken.unionByName(
            known.where("turns > 0").select(
                F.col("span_id").alias("message_id"), "turns", "tokens", "cost_usd"
            )
        )
    return taken.groupBy("message_id").agg(
        F.sum("turns").cast("int").alias("turns"),
        F.sum("tokens").alias("tokens"),
        F.sum("cost_usd").cast(MONEY).alias("cost_usd"),
    )
