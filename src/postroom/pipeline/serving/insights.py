"""What gold says, as plain documents: for the API, the portal, the command line and the report alike.

`since` and `until` are days, both included. Money and times leave here as plain numbers.
"""

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from postroom.pipeline.lake.tables import MESSAGE_LIFE
from postroom.pipeline.serving.engine import QueryEngine


class Period(msgspec.Struct, frozen=True):
    since: date
    until: date

    @property
    def bounds(self) -> tuple[date, date]:
        return self.since, self.until


def period(
    engine: QueryEngine, since: date | None = None, until: date | None = None, days: int = 30
) -> Period:
    """What was asked for, else the last days there are."""
    newest = max((file.cut for file in engine.files(MESSAGE_LIFE) if file.cut), default=None)
    kept = date.fromisoformat(newest) if newest is not None else None
    end = until or kept or date.today()  # noqa: DTZ011 - only when there is nothing at all
    return Period(since or end - timedelta(days=days - 1), end)


def overview(engine: QueryEngine, at: Period) -> dict[str, Any]:
    """The numbers at the top of the page."""
    lives = engine.rows(
        """SELECT count(*) AS messages, count(DISTINCT correlation_id) AS conversations,
                  count(*) FILTER (outcome = 'completed') AS completed, count(*) FILTER (outcome = 'dead') AS dead,
                  count(*) FILTER (outcome = 'expired') AS expired, count(*) FILTER (outcome = 'open') AS open,
                  sum(failures)::BIGINT AS failures, quantile_cont(wait_us, 0.5) AS wait_p50_us,
                  quantile_cont(total_us, 0.5) AS total_p50_us, quantile_cont(total_us, 0.95) AS total_p95_us
           FROM message_life WHERE day BETWEEN ? AND ?""",
        at.bounds,
        at.bounds,
    )[0]
    spent = _rows(
        engine,
        "cost_day",
        """SELECT sum(cost_usd) AS cost_usd, sum(turns)::BIGINT AS turns,
                  sum(input_tokens + cache_read_tokens + cache_write_tokens + output_tokens)::BIGINT AS tokens
           FROM cost_day WHERE day BETWEEN ? AND ?""",
        at,
    )
    answers = _rows(
        engine,
        "channel_day",
        """SELECT sum(conversations)::BIGINT AS people_wrote, sum(answered)::BIGINT AS answered
           FROM channel_day WHERE day BETWEEN ? AND ?""",
        at,
    )
    return plain(
        {
            "since": at.since,
            "until": at.until,
            **lives,
            **(spent[0] if spent else {}),
            **(answers[0] if answers else {}),
        }
    )


def agents(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "agent_day",
        """SELECT tenant, agent, sum(messages)::BIGINT AS messages, sum(completed)::BIGINT AS completed,
                  sum(dead)::BIGINT AS dead, sum(failures)::BIGINT AS failures, sum(turns)::BIGINT AS turns,
                  sum(failed_turns)::BIGINT AS failed_turns, sum(tokens)::BIGINT AS tokens,
                  sum(cost_usd) AS cost_usd, max(total_p95_us) AS worst_p95_us,
                  sum(wait_p50_us * messages) / sum(messages) FILTER (wait_p50_us IS NOT NULL) AS wait_typical_us,
                  sum(turn_p50_us * turns) / sum(turns) FILTER (turn_p50_us IS NOT NULL) AS turn_typical_us
           FROM agent_day WHERE day BETWEEN ? AND ? GROUP BY ALL ORDER BY messages DESC NULLS LAST, agent, tenant""",
        at,
    )


def agent_days(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "agent_day",
        "SELECT * EXCLUDE (month) FROM agent_day WHERE day BETWEEN ? AND ? ORDER BY day, agent, tenant",
        at,
    )


def queues(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "queue_hour",
        """SELECT tenant, scope, queue, sum(messages)::BIGINT AS messages, sum(completed)::BIGINT AS completed,
                  sum(dead)::BIGINT AS dead, sum(expired)::BIGINT AS expired, sum(failures)::BIGINT AS failures,
                  max(messages) AS busiest_hour, max(wait_p95_us) AS worst_wait_p95_us,
                  sum(wait_p50_us * messages) / sum(messages) FILTER (wait_p50_us IS NOT NULL) AS wait_typical_us
           FROM queue_hour WHERE day BETWEEN ? AND ? GROUP BY ALL ORDER BY messages DESC, queue, scope, tenant""",
        at,
    )


def hours(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    """Messages by weekday (1 is Monday) and hour."""
    return _rows(
        engine,
        "queue_hour",
        """SELECT isodow(hour) AS weekday, hour(hour) AS hour, sum(messages)::BIGINT AS messages
           FROM queue_hour WHERE day BETWEEN ? AND ? GROUP BY ALL ORDER BY ALL""",
        at,
    )


_DAYS = """
WITH lives AS (
    SELECT day, count(*) AS messages, count(*) FILTER (outcome = 'completed') AS completed,
           count(*) FILTER (outcome IN ('dead', 'expired')) AS failed,
           count(*) FILTER (outcome = 'open') AS open, sum(failures)::BIGINT AS failures
    FROM message_life WHERE day BETWEEN $1 AND $2 GROUP BY day
), kept AS (
    SELECT day, sum(messages)::BIGINT AS messages, sum(completed)::BIGINT AS completed,
           sum(dead + expired)::BIGINT AS failed, 0 AS open, sum(failures)::BIGINT AS failures
    FROM queue_hour WHERE day BETWEEN $1 AND $2 AND day NOT IN (SELECT day FROM lives) GROUP BY day
)
SELECT * FROM lives UNION ALL BY NAME SELECT * FROM kept ORDER BY day
"""


def days(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    """Message by message, as the overview counts them; of days whose messages left the lake, what is kept of
    them. What has not ended is `open`."""
    return _rows(engine, "queue_hour", _DAYS, at)


def latency(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    """How long messages of each day waited, and how long they took from first to last."""
    return _rows(
        engine,
        "message_life",
        """SELECT day, count(*) AS messages,
                  quantile_cont(wait_us, 0.5) AS wait_p50_us, quantile_cont(wait_us, 0.95) AS wait_p95_us,
                  quantile_cont(wait_us, 0.99) AS wait_p99_us, quantile_cont(total_us, 0.5) AS total_p50_us,
                  quantile_cont(total_us, 0.95) AS total_p95_us, quantile_cont(total_us, 0.99) AS total_p99_us
           FROM message_life WHERE day BETWEEN ? AND ? GROUP BY day ORDER BY day""",
        at,
    )


def channels(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "channel_day",
        """SELECT tenant, channel, sum(conversations)::BIGINT AS conversations, sum(mails)::BIGINT AS mails,
                  sum(replies)::BIGINT AS replies, sum(answered)::BIGINT AS answered,
                  sum(answer_p50_us * conversations)
                      / sum(conversations) FILTER (answer_p50_us IS NOT NULL) AS answer_typical_us,
                  max(answer_p95_us) AS worst_answer_p95_us
           FROM channel_day WHERE day BETWEEN ? AND ? GROUP BY ALL ORDER BY conversations DESC, channel, tenant""",
        at,
    )


def channel_days(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "channel_day",
        "SELECT * EXCLUDE (month) FROM channel_day WHERE day BETWEEN ? AND ? ORDER BY day, channel, tenant",
        at,
    )


def costs(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "cost_day",
        """SELECT day, agent, provider, model, turns, input_tokens, cache_read_tokens, cache_write_tokens,
                  output_tokens, cost_usd, unpriced
           FROM cost_day WHERE day BETWEEN ? AND ? ORDER BY day, agent, model, provider, tenant""",
        at,
    )


def failures(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "failure_causes",
        """SELECT error_class, scope, queue, agent, sum(messages)::BIGINT AS messages,
                  sum(failures)::BIGINT AS failures, sum(dead)::BIGINT AS dead,
                  sum(recovered)::BIGINT AS recovered, max_by(example, (day, example.id)).id AS example_id,
                  max_by(example, (day, example.id)).reason AS example_reason
           FROM (SELECT *, {'id': example_id, 'reason': example_reason} AS example FROM failure_causes)
           WHERE day BETWEEN ? AND ? GROUP BY ALL
           ORDER BY failures DESC, error_class, queue, scope, agent""",
        at,
    )


def handoffs(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "handoff_graph",
        """SELECT from_agent, to_agent, sum(handoffs)::BIGINT AS handoffs, sum(completed)::BIGINT AS completed,
                  sum(failed)::BIGINT AS failed,
                  sum(latency_p50_us * handoffs)
                      / sum(handoffs) FILTER (latency_p50_us IS NOT NULL) AS latency_typical_us
           FROM handoff_graph WHERE day BETWEEN ? AND ? GROUP BY ALL ORDER BY handoffs DESC, from_agent, to_agent""",
        at,
    )


def sla(engine: QueryEngine, at: Period) -> list[dict[str, Any]]:
    return _rows(
        engine,
        "sla",
        """SELECT scope, queue, sum(ended)::BIGINT AS ended, sum(within_1m)::BIGINT AS within_1m,
                  sum(within_5m)::BIGINT AS within_5m, sum(within_1h)::BIGINT AS within_1h,
                  sum(failed)::BIGINT AS failed, max(total_p99_us) AS worst_p99_us
           FROM sla WHERE day BETWEEN ? AND ? GROUP BY ALL ORDER BY ended DESC, queue, scope""",
        at,
    )


def first_day(engine: QueryEngine) -> date | None:
    """Since when the lake has anything."""
    if not engine.has("queue_hour"):
        return None
    [found] = engine.rows("SELECT min(day) AS day FROM queue_hour")
    return found["day"]


def runs(engine: QueryEngine, limit: int = 50) -> list[dict[str, Any]]:
    return [
        plain(row)
        for row in engine.rows("SELECT * FROM steps ORDER BY started_at DESC, step LIMIT ?", [limit])
    ]


def quarantine(engine: QueryEngine, limit: int = 100) -> list[dict[str, Any]]:
    if not engine.has("quarantine"):
        return []
    return [
        plain(row)
        for row in engine.rows("SELECT * FROM quarantine ORDER BY found_at DESC, seq, key LIMIT ?", [limit])
    ]


_STANDING = """
SELECT "table", expectation, broken, example, since FROM expectations
QUALIFY row_number() OVER (PARTITION BY "table", expectation ORDER BY since DESC) = 1
ORDER BY broken = 0, "table", expectation
"""


def expectations(engine: QueryEngine) -> list[dict[str, Any]]:
    """How each stands, broken ones first, and since when."""
    return [plain(row) for row in engine.rows(_STANDING)] if engine.has("expectations") else []


def _rows(engine: QueryEngine, table: str, sql: str, at: Period) -> list[dict[str, Any]]:
    return [plain(row) for row in engine.rows(sql, at.bounds, at.bounds)] if engine.has(table) else []


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """As JSON can hold it."""
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return (
            int(value)
            if value == value.to_integral_value() and value.as_tuple().exponent == 0
            else float(value)
        )
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return value
