"""`chunks`: what was said, in pieces short enough to be recalled, each with the message it comes from."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

LONGEST = 1200
OFFICE = ("office.mail", "office.note", "office.post", "office.reply")


def chunks(messages: DataFrame) -> DataFrame:
    """Pieces are cut between sentences where that is possible. Words of people are not trusted as facts."""
    erased = F.get_json_object("body", "$.erased").isNotNull()
    whole = F.when(~erased, F.get_json_object("body", "$"))
    text = F.coalesce(F.get_json_object("body", "$.text"), whole)
    said = messages.where(F.col("message_type").isin(*OFFICE) & (F.col("state") == "completed")).where(
        F.col("subscription").isNull()
    )
    said = said.withColumn("text", F.trim(text)).where("length(text) > 0")
    pieces = said.select("*", F.posexplode(_cut(F.col("text"))).alias("part", "piece"))
    return pieces.select(
        F.col("id").alias("message_id"),
        F.col("part").cast("int").alias("part"),
        "tenant",
        "correlation_id",
        "channel",
        "agent",
        "from_agent",
        "sender",
        "sender_id",
        F.timestamp_micros("created_at").alias("said_at"),
        F.trim("piece").alias("text"),
        F.col("from_agent").isNotNull().alias("trusted"),
        F.lit(True).alias("valid"),
        "ended_seq",
    )


def _cut(text: Column) -> Column:
    """Sentences put together while they fit. Most of what is said fits as it is, without a look at it."""
    sentences = F.regexp_extract_all(
        text, F.lit(rf"(?s)(.{{1,{LONGEST}}}?(?:[.!?]\s|\n\n|$)|.{{{LONGEST}}})")
    )

    def add(parts: Column, sentence: Column) -> Column:
        last = F.element_at(parts, -1)
        fits = F.length(last) + F.length(sentence) <= LONGEST
        joined = F.concat(F.slice(parts, 1, F.size(parts) - 1), F.array(F.concat(last, sentence)))
        return F.when(fits, joined).otherwise(F.concat(parts, F.array(sentence)))

    joined = F.aggregate(sentences, F.array(F.lit("")), add)
    said = F.filter(joined, lambda part: F.length(F.trim(part)) > 0)
    return F.when(F.length(text) <= LONGEST, F.array(text)).otherwise(said)
