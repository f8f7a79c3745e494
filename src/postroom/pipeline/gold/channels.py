"""`channel_day`: how many people wrote on each channel, and how soon they had an answer."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from postroom.pipeline.gold.measures import count_where, month, summed


def channel_day(traces: DataFrame, spans: DataFrame) -> DataFrame:
    """Conversations by the day they began. Answered is when the first reply was ready to be delivered."""
    reply = F.col("name").contains("/outbox/")
    key = ["tenant", "trace_id"]
    seen = spans.groupBy(*key).agg(
        count_where(F.col("name").contains("/inbox/") & F.col("parent_id").isNull()).alias("mails"),
        count_where(reply).alias("replies"),
        F.min(F.when(reply, F.col("started_at"))).alias("answered_at"),
    )
    people = traces.where("channel is not null").join(seen, key)
    took = F.unix_micros("answered_at") - F.unix_micros("started_at")
    counts = [
        F.count("*").alias("conversations"),
        F.sum("mails").alias("mails"),
        F.sum("replies").alias("replies"),
        F.count("answered_at").alias("answered"),
    ]
    groups = people.withColumn("answer_us", took).groupBy("day", "tenant", "channel")
    return summed(groups, counts, {"answer": "answer_us"}).withColumn("month", month())
