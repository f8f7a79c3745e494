"""`cost_day`: tokens and money by agent and model. Turns without a price are counted, not taken as free."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from postroom.pipeline.gold.measures import count_where, month

_COUNTS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")


def cost_day(turns: DataFrame) -> DataFrame:
    return (
        turns.groupBy("day", "tenant", "agent", "provider", "model")
        .agg(
            F.count("*").alias("turns"),
            *(F.sum(name).alias(name) for name in _COUNTS),
            F.sum("cost_usd").cast("decimal(20,10)").alias("cost_usd"),
            count_where(F.col("cost_usd").isNull()).alias("unpriced"),
        )
        .withColumn("month", month())
    )
