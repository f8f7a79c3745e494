"""One row per message: when it came, waited, was worked on and ended, and what went wrong on the way.

A life is a sum of contributions: each event adds to counts and sums or moves an earliest or latest moment,
and so does the life known so far. Sums do not care for order or grouping, so late events come out right.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from postroom.pipeline.silver.events import STATES, day_of, message_events, opened
from postroom.pipeline.silver.events import problem as problem_of_event

_TERMINAL = ("completed", "dead", "expired", "cancelled")
_NOT_OF_A_CLAIM = ("guard", "overflow")
_COUNTED = {
    "claims": ("message.claimed",),
    "releases": ("message.released",),
    "snoozes": ("message.snoozed",),
    "lease_expiries": ("message.lease_expired",),
    "dead_letters": ("message.dead_lettered",),
    "replays": ("message.replayed",),
}
_FAILING = ("message.failed", "message.lease_expired", "message.dead_lettered")
_GIVING_UP = ("message.failed", "message.released", "message.snoozed", "message.lease_expired")
_SUMS = (*_COUNTED, "failures", "given_up", "settled_us")
_FIRST = ("published_us", "first_claimed_us", "first_seq")
_LAST = ("last_claimed_us", "updated_us", "ended_us", "last_seq", "latest")
_TOLD_AT_BIRTH = ("type", "tier", "bytes", "hop", "parent", "agent", "channel", "subscription", "from")
_BORN = (
    "tenant", "scope", "queue", "agent", "channel", "message_type", "tier", "hop", "parent_id", "delivery",
    "correlation_id", "causation_id", "published_by", "bytes",
)  # fmt: skip


def lives(
    ledger: DataFrame, known: DataFrame | None = None, watch: Callable[[DataFrame], DataFrame] = lambda f: f
) -> DataFrame:
    """The whole life of every message that the events are about; `known` are earlier lives of them.

    `watch` sees all events about messages, opened, before those that make no sense are left out.
    """
    parts = _contributions(watch(opened(message_events(ledger), "state", "attempts", "kind")))
    published = opened(message_events(ledger, "message.published"), *_TOLD_AT_BIRTH)
    failing = opened(message_events(ledger, *_FAILING), "state", "kind", "reason")
    born, errors = _births(published), _errors(failing.where(problem_of_event().isNull()))
    if known is not None:
        parts = parts.unionByName(_known_parts(known))
        born = born.unionByName(known.where("published_at is not null").select("message_id", *_BORN))
        errors = errors.unionByName(
            known.where("error_seq is not null").select(
                "message_id", "error_seq", "error_class", "error_reason"
            )
        )
    sums = parts.groupBy("message_id").agg(
        *(F.sum(name).alias(name) for name in _SUMS),
        *(F.min(name).alias(name) for name in _FIRST),
        *(F.max(name).alias(name) for name in _LAST),
    )
    last = errors.groupBy("message_id").agg(
        F.max(F.struct("error_seq", "error_class", "error_reason")).alias("error")
    )
    # A message of whose events none makes sense has no life.
    whole = sums.where("last_seq is not null")
    joined = whole.join(born.hint("shuffle_hash"), "message_id", "left")
    joined = joined.join(last.hint("shuffle_hash"), "message_id", "left")
    return _derived(joined.select("*", "error.*").drop("error"))


def _when(types: tuple[str, ...]) -> Column:
    return F.col("type").isin(*types)


def _count(condition: Column) -> Column:
    return condition.cast("int")


def _contributions(events: DataFrame) -> DataFrame:
    """What each event adds to its message's life: nothing, when it makes no sense.

    Such events are emptied, not left out: a filter would be moved before the opening of their data, and would
    open it once for each time it asks.
    """
    fine = problem_of_event().isNull()
    events = events.select(
        "message_id", "data", *(F.when(fine, F.col(name)).alias(name) for name in ("type", "time", "seq"))
    )
    data, time, seq = F.col("data"), F.col("time"), F.col("seq")
    kind, attempts = F.coalesce(data["kind"], F.lit("")), F.coalesce(data["attempts"], F.lit(0))
    gives_up = (
        _when(_GIVING_UP)
        | (_when(("message.completed",)) & (attempts > 0))
        | (_when(("message.dead_lettered",)) & ~kind.isin(*_NOT_OF_A_CLAIM) & (attempts > 0))
    )
    claims = _when(("message.claimed",))
    code = F.array_position(F.lit(list(STATES)), data["state"])
    # The last event decides state and attempts: packed into one number, it is found by a plain maximum.
    latest = F.shiftleft(seq, 20) + F.least(attempts, F.lit(65_535)) * 16 + code
    none = F.lit(None).cast("long")
    return events.select(
        "message_id",
        *(_count(_when(types)).alias(name) for name, types in _COUNTED.items()),
        _count(_when(_FAILING)).alias("failures"),
        _count(gives_up).alias("given_up"),
        # Ends less beginnings: a sum of times alone would grow with every claim until no number can hold it.
        F.when(claims, -time).when(gives_up, time).otherwise(0).alias("settled_us"),
        F.when(_when(("message.published",)), time).otherwise(none).alias("published_us"),
        F.when(claims, time).otherwise(none).alias("first_claimed_us"),
        seq.alias("first_seq"),
        F.when(claims, time).otherwise(none).alias("last_claimed_us"),
        time.alias("updated_us"),
        F.when(data["state"].isin(*_TERMINAL), time).otherwise(none).alias("ended_us"),
        seq.alias("last_seq"),
        latest.alias("latest"),
    )


def _births(events: DataFrame) -> DataFrame:
    data, queue = F.col("data"), F.coalesce(F.col("data")["from"], F.col("queue"))
    agent = F.when(queue.startswith("inbox/"), F.substring_index(queue, "/", -1)).otherwise(data["agent"])
    return events.select(
        "message_id",
        "tenant",
        "scope",
        queue.alias("queue"),
        agent.alias("agent"),
        data["channel"].alias("channel"),
        data["type"].alias("message_type"),
        data["tier"].alias("tier"),
        F.coalesce(data["hop"], F.lit(0)).alias("hop"),
        data["parent"].alias("parent_id"),
        data["subscription"].isNotNull().alias("delivery"),
        "correlation_id",
        "causation_id",
        F.col("actor").alias("published_by"),
        data["bytes"].alias("bytes"),
    )


def _errors(events: DataFrame) -> DataFrame:
    data = F.col("data")
    lost = F.when(_when(("message.lease_expired",)), F.lit("lease_expired"))
    return events.select(
        "message_id",
        F.col("seq").alias("error_seq"),
        F.coalesce(data["kind"], lost, F.lit("unknown")).alias("error_class"),
        data["reason"].alias("error_reason"),
    )


def _known_parts(known: DataFrame) -> DataFrame:
    code = F.array_position(F.lit(list(STATES)), F.col("state"))
    return known.select(
        "message_id",
        *_COUNTED,
        "failures",
        F.col("given_up"),
        (F.col("given_up_sum") - F.col("claimed_sum")).alias("settled_us"),
        F.unix_micros("published_at").alias("published_us"),
        F.unix_micros("first_claimed_at").alias("first_claimed_us"),
        "first_seq",
        F.unix_micros("last_claimed_at").alias("last_claimed_us"),
        F.unix_micros("updated_at").alias("updated_us"),
        F.unix_micros("ended_at").alias("ended_us"),
        "last_seq",
        (F.shiftleft("last_seq", 20) + F.col("attempts") * 16 + code).alias("latest"),
    )


def _derived(joined: DataFrame) -> DataFrame:
    code = F.pmod("latest", F.lit(16)).cast("int")
    state = F.element_at(F.lit(list(STATES)), code)
    attempts = F.pmod(F.shiftright("latest", 4), F.lit(65_536)).cast("int")
    rows = joined.withColumns({"state": state, "attempts": attempts})
    ended = F.col("state").isin(*_TERMINAL)
    finished = F.when(ended, F.col("ended_us"))
    # Of the last claim only the beginning is known while it lasts, or when it was ended from outside.
    open_claim = F.col("claims") - F.col("given_up") == 1
    worked = (
        F.when(F.col("claims") == 0, F.lit(None))
        .when(F.col("claims") == F.col("given_up"), F.col("settled_us"))
        .when(open_claim & ended, F.col("settled_us") + F.col("ended_us"))
        .when(open_claim, F.col("settled_us") + F.col("last_claimed_us"))
    )
    return rows.select(
        "message_id",
        *_BORN,
        "state",
        F.when(ended, F.col("state")).otherwise("open").alias("outcome"),
        F.timestamp_micros("published_us").alias("published_at"),
        F.timestamp_micros("first_claimed_us").alias("first_claimed_at"),
        F.timestamp_micros("last_claimed_us").alias("last_claimed_at"),
        F.timestamp_micros("ended_us").alias("ended_at"),
        F.timestamp_micros(finished).alias("finished_at"),
        F.timestamp_micros("updated_us").alias("updated_at"),
        "attempts",
        *(F.col(name).cast("int").alias(name) for name in (*_COUNTED, "failures", "given_up")),
        _not_negative(F.col("first_claimed_us") - F.col("published_us")).alias("wait_us"),
        _not_negative(worked).alias("work_us"),
        _not_negative(finished - F.col("published_us")).alias("total_us"),
        "error_class",
        "error_reason",
        "error_seq",
        "first_seq",
        "last_seq",
        # Lakes have both; only their difference is ever asked for.
        F.lit(0).cast("long").alias("claimed_sum"),
        F.col("settled_us").alias("given_up_sum"),
        day_of(F.col("message_id")).alias("day"),
    )


def _not_negative(length: Column) -> Column:
    """A length of time that came out negative says that clocks were wrong, and is not known."""
    return F.when(length >= 0, length)


def problem() -> Column:
    """What is odd about a life; null when nothing is."""
    return (
        F.when(F.col("published_at").isNull(), F.lit("its publishing is not in the ledger"))
        .when(
            (F.col("first_claimed_at") < F.col("published_at"))
            | (F.col("finished_at") < F.col("published_at")),
            F.lit("its times are out of order"),
        )
        .when(F.col("claims") - F.col("given_up") > 1, F.lit("claims without an end"))
    )
