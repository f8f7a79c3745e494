"""`agent_day`: what each agent got done on a day, how long it took, and what it cost."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from postroom.pipeline.gold.measures import LENGTHS, count_where, ends, month, summed

KEY = ["day", "tenant", "agent"]


def agent_day(lives: DataFrame, turns: DataFrame) -> DataFrame:
    mail = lives.where(F.col("queue").startswith("inbox/") & F.col("agent").isNotNull())
    worked = summed(mail.groupBy(*KEY), ends(), LENGTHS)
    tokens = sum(
        (F.col(f"{name}_tokens") for name in ("cache_read", "cache_write", "output")), F.col("input_tokens")
    )
    counts = [
        F.count("*").alias("turns"),
        count_where(F.col("outcome") != "finished").alias("failed_turns"),
        F.sum(tokens).alias("tokens"),
        F.sum("cost_usd").cast("decimal(20,10)").alias("cost_usd"),
    ]
    took = summed(turns.groupBy(*KEY), counts, {"turn": "duration_us"})
    return worked.join(took, KEY, "full").withColumn("month", month())
