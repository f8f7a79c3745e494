"""Ledger events with their data opened, as the other transforms need them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from postroom.kernel.states import Change, State

STATES = tuple(state.value for state in State)
CHANGES = tuple(change.value for change in Change)

_FIELDS = {
    "state": StringType(),
    "attempts": IntegerType(),
    "type": StringType(),
    "tier": StringType(),
    "bytes": LongType(),
    "hop": IntegerType(),
    "parent": StringType(),
    "agent": StringType(),
    "channel": StringType(),
    "subscription": LongType(),
    "reason": StringType(),
    "kind": StringType(),
    "from": StringType(),
}


def message_events(ledger: DataFrame, *types: str) -> DataFrame:
    """Events about messages, of these types or of all."""
    wanted = F.col("type").isin(*types) if types else F.col("type").startswith("message.")
    return ledger.where(F.col("message_id").isNotNull() & wanted)


def opened(events: DataFrame, *fields: str) -> DataFrame:
    """With `data` as a struct of these fields; whatever else it holds is passed over."""
    schema = StructType([StructField(name, _FIELDS[name]) for name in fields])
    return events.withColumn("data", F.from_json("data", schema))


def problem() -> Column:
    """Why an opened event about a message cannot be used; null when it can."""
    data = F.col("data")
    return (
        F.when(~F.col("type").isin(*CHANGES), F.concat(F.lit("unknown event type "), F.col("type")))
        .when(data.isNull() | data["state"].isNull(), F.lit("its data cannot be read"))
        .when(~data["state"].isin(*STATES), F.concat(F.lit("unknown state "), data["state"]))
    )


def day_of(message_id: Column) -> Column:
    """A message's day, from its id, which begins with the time of publishing. Foreign ids get day zero."""
    stamp = F.conv(F.concat(F.substring(message_id, 1, 8), F.substring(message_id, 10, 4)), 16, 10)
    known = message_id.rlike("^[0-9a-f]{8}-[0-9a-f]{4}-7")
    return F.when(known, F.to_date(F.timestamp_millis(stamp.cast("long")))).otherwise(
        F.to_date(F.lit("1970-01-01"))
    )
