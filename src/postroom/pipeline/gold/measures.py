"""What is counted of messages everywhere in gold: how they ended, and how long they took."""

from pyspark.sql import Column, DataFrame, GroupedData
from pyspark.sql import functions as F


def count_where(condition: Column) -> Column:
    return F.count(F.when(condition, F.lit(1)))


def ends() -> list[Column]:
    outcome = F.col("outcome")
    return [
        F.count("*").alias("messages"),
        *(
            count_where(outcome == name).alias(name)
            for name in ("completed", "dead", "expired", "cancelled", "open")
        ),
        F.sum("failures").alias("failures"),
        count_where(F.col("claims") > 1).alias("retried"),
    ]


LENGTHS = {"wait": "wait_us", "work": "work_us", "total": "total_us"}


def summed(
    groups: GroupedData, counts: list[Column], lengths: dict[str, str], shares: tuple[int, ...] = (50, 95)
) -> DataFrame:
    """Counts, and exact percentiles of some columns, between the two nearest when no value is at the place.

    All percentiles of a column are found in one go: each way through its values costs as much as the first.
    """
    wanted = F.array(*(F.lit(share / 100) for share in shares))
    spreads = [F.percentile(column, wanted).alias(f"{name}_spread") for name, column in lengths.items()]
    told = {
        f"{name}_p{share}_us": F.col(f"{name}_spread")[place]
        for name in lengths
        for place, share in enumerate(shares)
    }
    return groups.agg(*counts, *spreads).withColumns(told).drop(*(f"{name}_spread" for name in lengths))


def month() -> Column:
    return F.date_format("day", "yyyy-MM").alias("month")
