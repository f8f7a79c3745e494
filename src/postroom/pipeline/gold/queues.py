"""`queue_hour`: what went through each queue in an hour; `sla`: how much of it was done in time."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from postroom.pipeline.gold.measures import LENGTHS, count_where, ends, month, summed

MINUTE_US = 60_000_000


def queue_hour(lives: DataFrame) -> DataFrame:
    known = lives.where("published_at is not null")
    hours = known.withColumn("hour", F.date_trunc("hour", "published_at"))
    groups = hours.groupBy("day", "hour", "tenant", "scope", "queue")
    return summed(groups, ends(), LENGTHS).withColumn("month", month())


def sla(lives: DataFrame) -> DataFrame:
    total, done = F.col("total_us"), F.col("outcome") == "completed"
    counts = [
        F.count("*").alias("ended"),
        *(
            count_where(done & (total <= minutes * MINUTE_US)).alias(f"within_{name}")
            for name, minutes in (("1m", 1), ("5m", 5), ("1h", 60))
        ),
        count_where(F.col("outcome").isin("dead", "expired")).alias("failed"),
    ]
    groups = lives.where("outcome <> 'open'").groupBy("day", "tenant", "scope", "queue")
    return summed(groups, counts, {"total": "total_us"}, (50, 99)).withColumn("month", month())
