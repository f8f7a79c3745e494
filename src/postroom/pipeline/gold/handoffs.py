"""`handoff_graph`: who hands work to whom, how long it lay there, and how it ended."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from postroom.pipeline.gold.measures import count_where, month, summed


def handoff_graph(handoffs: DataFrame) -> DataFrame:
    counts = [
        F.count("*").alias("handoffs"),
        count_where(F.col("outcome") == "completed").alias("completed"),
        count_where(F.col("outcome").isin("dead", "expired")).alias("failed"),
    ]
    groups = handoffs.groupBy("day", "tenant", "from_agent", "to_agent")
    return summed(groups, counts, {"latency": "latency_us"}).withColumn("month", month())
