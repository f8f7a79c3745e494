"""One row per turn of an agent, from the record the office keeps of it: outcome, tokens, money."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

_COUNTS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
_USAGE = StructType(
    [
        StructField("provider", StringType()),
        StructField("model", StringType()),
        *(StructField(name, LongType()) for name in _COUNTS),
    ]
)
_TURN = StructType(
    [
        StructField("agent", StringType()),
        StructField("outcome", StringType()),
        StructField("cause", StringType()),
        StructField("started_at", LongType()),
        StructField("ended_at", LongType()),
        StructField("usage", ArrayType(_USAGE)),
        StructField("cost_usd", StringType()),
        StructField("price_source", StringType()),
    ]
)
MONEY = "decimal(20,10)"


def turns(records: DataFrame) -> DataFrame:
    """Tokens of all models of a turn are added up; the turn is named after the last that worked on it."""
    found = records.where("kind = 'turn'").withColumn("turn", F.from_json("data", _TURN))
    turn, usage = F.col("turn"), F.coalesce(F.col("turn")["usage"], F.array().cast(ArrayType(_USAGE)))
    last = F.try_element_at(usage, F.lit(-1))
    ended = F.coalesce(turn["ended_at"], F.col("created_at"))
    length = ended - turn["started_at"]
    return found.select(
        F.col("id").alias("record_id"),
        F.col("key").alias("turn_id"),
        "tenant",
        F.coalesce(turn["agent"], F.lit("unknown")).alias("agent"),
        "message_id",
        "correlation_id",
        F.coalesce(turn["outcome"], F.lit("unknown")).alias("outcome"),
        turn["cause"].alias("cause"),
        F.coalesce(last["provider"], F.lit("unknown")).alias("provider"),
        F.coalesce(last["model"], F.lit("unknown")).alias("model"),
        F.timestamp_micros(turn["started_at"]).alias("started_at"),
        F.timestamp_micros(ended).alias("ended_at"),
        F.when(length >= 0, length).alias("duration_us"),
        *(_total(usage, name).alias(name) for name in _COUNTS),
        turn["cost_usd"].try_cast(MONEY).alias("cost_usd"),
        turn["price_source"].alias("price_source"),
        F.to_date(F.timestamp_micros(ended)).alias("day"),
    )


def _total(usage: Column, name: str) -> Column:
    return F.aggregate(
        usage, F.lit(0).cast("long"), lambda total, use: total + F.coalesce(use[name], F.lit(0))
    )
