"""`failure_causes`: what went wrong where, how often it was got over, and an example to look at."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from postroom.pipeline.gold.measures import count_where, month


def failure_causes(lives: DataFrame) -> DataFrame:
    last = F.max(F.struct("last_seq", "message_id", "error_reason"))
    return (
        lives.where("error_class is not null")
        .groupBy("day", "tenant", "scope", "queue", "agent", "error_class")
        .agg(
            F.count("*").alias("messages"),
            F.sum("failures").alias("failures"),
            count_where(F.col("outcome") == "dead").alias("dead"),
            count_where(F.col("outcome") == "completed").alias("recovered"),
            last.alias("last"),
        )
        .withColumns(
            {
                "example_id": F.col("last")["message_id"],
                "example_reason": F.col("last")["error_reason"],
                "month": month(),
            }
        )
        .drop("last")
    )
