"""Every table of the lake, declared: its columns, its key, and how its files are cut."""

import msgspec
import pyarrow as pa

_S, _L, _I, _B = pa.string(), pa.int64(), pa.int32(), pa.binary()
_T, _D, _F, _YES = pa.timestamp("us", "UTC"), pa.date32(), pa.float64(), pa.bool_()
MONEY = pa.decimal128(20, 10)


# Columns whose values hardly repeat: a dictionary of them would only cost time. Hashes cannot be compressed.
UNIQUE = frozenset(
    {
        "seq",
        "time",
        "hash",
        "id",
        "message_id",
        "correlation_id",
        "causation_id",
        "span_id",
        "trace_id",
        "body",
        "data",
    }
)
RISING = frozenset({"seq", "time"})
"""Numbers that differ little from one row to the next: only the differences are written."""
INCOMPRESSIBLE = frozenset({"hash", *RISING})
RANGELESS = frozenset({"hash", "body", "data", "correlation_id", "causation_id"})
"""Nobody looks for what lies between two of their values, so the least and the greatest are not noted."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """`cut` is the partition column of its files; `tracked` columns get their range noted per file; `order`
    is how rows lie in files that were put together: what is looked for together lies together. `shape` rises
    when rows of before can no longer be read as those of today: then the next run makes the table anew."""

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    cut: str | None = None
    tracked: tuple[str, ...] = ()
    sorted_by: tuple[str, ...] = ()
    shape: int = 1

    @property
    def order(self) -> tuple[str, ...]:
        return self.sorted_by or self.key

    @property
    def layer(self) -> str:
        return self.name.partition("/")[0]

    @property
    def short(self) -> str:
        return self.name.partition("/")[2]


def _schema(*fields: tuple[str, pa.DataType]) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in fields])


LEDGER = Table(
    name="bronze/ledger",
    key=("seq",),
    tracked=("seq", "time"),
    schema=_schema(
        ("seq", _L), ("time", _L), ("type", _S), ("tenant", _S), ("scope", _S), ("queue", _S),
        ("message_id", _S), ("correlation_id", _S), ("causation_id", _S), ("actor", _S), ("data", _S),
        ("hash", _B),
    ),
)  # fmt: skip

MESSAGES = Table(
    name="bronze/messages",
    key=("id", "ended_seq"),
    sorted_by=("correlation_id", "seq", "ended_seq"),
    tracked=("seq", "ended_seq", "created_at"),
    schema=_schema(
        ("seq", _L), ("id", _S), ("tenant", _S), ("scope", _S), ("queue", _S), ("origin_queue", _S),
        ("subscription", _S), ("state", _S), ("message_type", _S), ("content_type", _S), ("body", _S),
        ("body_bytes", _B), ("labels", _S), ("metadata", _S), ("files", _S), ("priority_tier", _S),
        ("priority_score", _L), ("created_at", _L), ("updated_at", _L), ("finished_at", _L),
        ("expires_at", _L), ("correlation_id", _S), ("causation_id", _S), ("parent_id", _S), ("hop", _L),
        ("idempotency_key", _S), ("attempts", _L), ("claims", _L), ("failure_reason", _S),
        ("failure_kind", _S), ("result", _S), ("source_type", _S), ("source_id", _S), ("channel", _S),
        ("sender", _S), ("sender_id", _S), ("agent", _S), ("from_agent", _S), ("ended_seq", _L),
        ("redacted", _YES),
    ),
)  # fmt: skip

RECORDS = Table(
    name="bronze/records",
    key=("id",),
    tracked=("id", "created_at"),
    schema=_schema(
        ("id", _L), ("tenant", _S), ("kind", _S), ("key", _S), ("data", _S), ("correlation_id", _S),
        ("message_id", _S), ("created_at", _L), ("redacted", _YES),
    ),
)  # fmt: skip

MESSAGE_LIFE = Table(
    name="silver/message_life",
    key=("message_id",),
    cut="day",
    tracked=("last_seq", "message_id"),
    schema=_schema(
        ("message_id", _S), ("tenant", _S), ("scope", _S), ("queue", _S), ("agent", _S), ("channel", _S),
        ("message_type", _S), ("tier", _S), ("hop", _I), ("parent_id", _S), ("delivery", _YES),
        ("correlation_id", _S), ("causation_id", _S), ("published_by", _S), ("bytes", _L), ("state", _S),
        ("outcome", _S), ("published_at", _T), ("first_claimed_at", _T), ("last_claimed_at", _T),
        ("ended_at", _T), ("finished_at", _T), ("updated_at", _T), ("attempts", _I), ("claims", _I),
        ("releases", _I), ("snoozes", _I), ("lease_expiries", _I), ("dead_letters", _I), ("replays", _I),
        ("failures", _I), ("given_up", _I), ("wait_us", _L), ("work_us", _L), ("total_us", _L),
        ("error_class", _S), ("error_reason", _S), ("error_seq", _L), ("first_seq", _L), ("last_seq", _L),
        ("claimed_sum", _L), ("given_up_sum", _L), ("day", _D),
    ),
)  # fmt: skip

TURNS = Table(
    name="silver/turns_clean",
    key=("record_id",),
    cut="day",
    tracked=("record_id",),
    schema=_schema(
        ("record_id", _L), ("turn_id", _S), ("tenant", _S), ("agent", _S), ("message_id", _S),
        ("correlation_id", _S), ("outcome", _S), ("cause", _S), ("provider", _S), ("model", _S),
        ("started_at", _T), ("ended_at", _T), ("duration_us", _L), ("input_tokens", _L),
        ("cache_read_tokens", _L), ("cache_write_tokens", _L), ("output_tokens", _L), ("cost_usd", MONEY),
        ("price_source", _S), ("day", _D),
    ),
)  # fmt: skip

SPANS = Table(
    name="silver/spans",
    key=("tenant", "trace_id", "span_id"),
    cut="day",
    tracked=("last_seq",),
    shape=2,
    schema=_schema(
        ("tenant", _S), ("trace_id", _S), ("span_id", _S), ("parent_id", _S), ("name", _S), ("agent", _S),
        ("depth", _I), ("children", _I), ("state", _S), ("error_class", _S), ("started_at", _T),
        ("claimed_at", _T), ("ended_at", _T), ("wait_us", _L), ("work_us", _L), ("turns", _I),
        ("tokens", _L), ("cost_usd", MONEY), ("critical", _YES), ("last_seq", _L), ("day", _D),
    ),
)  # fmt: skip

TRACES = Table(
    name="silver/traces",
    key=("tenant", "trace_id"),
    cut="day",
    tracked=("last_seq",),
    shape=2,
    schema=_schema(
        ("trace_id", _S), ("tenant", _S), ("root_id", _S), ("channel", _S), ("agents", pa.list_(_S)),
        ("messages", _I), ("depth", _I), ("fan_out", _I), ("handoffs", _I), ("open", _I), ("failed", _I),
        ("started_at", _T), ("ended_at", _T), ("duration_us", _L), ("critical_path", pa.list_(_S)),
        ("critical_wait_us", _L), ("critical_work_us", _L), ("turns", _I), ("tokens", _L),
        ("cost_usd", MONEY), ("last_seq", _L), ("day", _D),
    ),
)  # fmt: skip

HANDOFFS = Table(
    name="silver/handoffs",
    key=("tenant", "trace_id", "message_id"),
    cut="day",
    shape=2,
    schema=_schema(
        ("tenant", _S), ("trace_id", _S), ("message_id", _S), ("cause_id", _S), ("from_agent", _S),
        ("to_agent", _S), ("handed_at", _T), ("taken_at", _T), ("latency_us", _L), ("outcome", _S),
        ("error_class", _S), ("day", _D),
    ),
)  # fmt: skip

QUARANTINE = Table(
    name="silver/quarantine",
    key=("table", "key", "reason"),
    schema=_schema(
        ("table", _S), ("key", _S), ("reason", _S), ("row", _S), ("seq", _L), ("found_at", _T), ("run_id", _S)
    ),
)

_SPREAD = (
    ("wait_p50_us", _F), ("wait_p95_us", _F), ("work_p50_us", _F), ("work_p95_us", _F),
    ("total_p50_us", _F), ("total_p95_us", _F),
)  # fmt: skip
_ENDS = (
    ("messages", _L), ("completed", _L), ("dead", _L), ("expired", _L), ("cancelled", _L), ("open", _L),
    ("failures", _L), ("retried", _L),
)  # fmt: skip


def _gold(short: str, key: tuple[str, ...], *fields: tuple[str, pa.DataType], shape: int = 1) -> Table:
    schema = _schema(*fields, ("month", _S))
    return Table(name=f"gold/{short}", key=key, cut="month", schema=schema, shape=shape)


AGENT_DAY = _gold(
    "agent_day", ("day", "tenant", "agent"),
    ("day", _D), ("tenant", _S), ("agent", _S), *_ENDS, *_SPREAD, ("turns", _L), ("failed_turns", _L),
    ("turn_p50_us", _F), ("turn_p95_us", _F), ("tokens", _L), ("cost_usd", MONEY),
)  # fmt: skip
QUEUE_HOUR = _gold(
    "queue_hour", ("hour", "tenant", "scope", "queue"),
    ("day", _D), ("hour", _T), ("tenant", _S), ("scope", _S), ("queue", _S), *_ENDS, *_SPREAD,
)  # fmt: skip
CHANNEL_DAY = _gold(
    "channel_day", ("day", "tenant", "channel"),
    ("day", _D), ("tenant", _S), ("channel", _S), ("conversations", _L), ("mails", _L), ("replies", _L),
    ("answered", _L), ("answer_p50_us", _F), ("answer_p95_us", _F),
    shape=3,
)  # fmt: skip
COST_DAY = _gold(
    "cost_day", ("day", "tenant", "agent", "provider", "model"),
    ("day", _D), ("tenant", _S), ("agent", _S), ("provider", _S), ("model", _S), ("turns", _L),
    ("input_tokens", _L), ("cache_read_tokens", _L), ("cache_write_tokens", _L), ("output_tokens", _L),
    ("cost_usd", MONEY), ("unpriced", _L),
)  # fmt: skip
FAILURE_CAUSES = _gold(
    "failure_causes", ("day", "tenant", "scope", "queue", "agent", "error_class"),
    ("day", _D), ("tenant", _S), ("scope", _S), ("queue", _S), ("agent", _S), ("error_class", _S),
    ("messages", _L), ("failures", _L), ("dead", _L), ("recovered", _L), ("example_id", _S),
    ("example_reason", _S),
)  # fmt: skip
HANDOFF_GRAPH = _gold(
    "handoff_graph", ("day", "tenant", "from_agent", "to_agent"),
    ("day", _D), ("tenant", _S), ("from_agent", _S), ("to_agent", _S), ("handoffs", _L), ("completed", _L),
    ("failed", _L), ("latency_p50_us", _F), ("latency_p95_us", _F),
    shape=2,
)  # fmt: skip
SLA = _gold(
    "sla", ("day", "tenant", "scope", "queue"),
    ("day", _D), ("tenant", _S), ("scope", _S), ("queue", _S), ("ended", _L), ("within_1m", _L),
    ("within_5m", _L), ("within_1h", _L), ("failed", _L), ("total_p50_us", _F), ("total_p99_us", _F),
)  # fmt: skip

CHUNKS = Table(
    name="memory/chunks",
    key=("message_id", "part"),
    sorted_by=("correlation_id", "message_id", "part"),
    tracked=("ended_seq",),
    schema=_schema(
        ("message_id", _S), ("part", _I), ("tenant", _S), ("correlation_id", _S), ("channel", _S),
        ("agent", _S), ("from_agent", _S), ("sender", _S), ("sender_id", _S), ("said_at", _T), ("text", _S),
        ("trusted", _YES), ("valid", _YES), ("ended_seq", _L),
    ),
)  # fmt: skip

RUNS = Table(
    name="runs/steps",
    key=("run_id", "step"),
    sorted_by=("started_at", "step"),
    tracked=("started_at",),
    schema=_schema(
        ("run_id", _S), ("step", _S), ("started_at", _T), ("seconds", _F), ("rows_in", _L), ("rows_out", _L),
        ("from_position", _L), ("to_position", _L), ("quarantined", _L), ("status", _S), ("problem", _S),
    ),
)  # fmt: skip

EXPECTATIONS = Table(
    name="runs/expectations",
    key=("table", "expectation", "since"),
    sorted_by=("since", "table", "expectation"),
    schema=_schema(
        ("table", _S), ("expectation", _S), ("broken", _L), ("example", _S), ("since", _T), ("run_id", _S)
    ),
)  # fmt: skip

BRONZE = (LEDGER, MESSAGES, RECORDS)
SILVER = (MESSAGE_LIFE, TURNS, SPANS, TRACES, HANDOFFS)
GOLD = (AGENT_DAY, QUEUE_HOUR, CHANNEL_DAY, COST_DAY, FAILURE_CAUSES, HANDOFF_GRAPH, SLA)
MEMORY = (CHUNKS,)
ALL = (*BRONZE, *SILVER, QUARANTINE, *GOLD, *MEMORY, RUNS, EXPECTATIONS)
BY_SHORT = {table.short: table for table in ALL}
BY_NAME = {table.name: table for table in ALL}
