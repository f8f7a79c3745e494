"""Gold worked out once more by DuckDB, from bronze alone; it shares nothing with the code that made it."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import GOLD, Table
from postroom.pipeline.serving.engine import QueryEngine, engine
from tests.spark.lakes import rows

REFERENCE = """
CREATE TEMP TABLE ev AS
SELECT *, data->>'$.state' AS state, (data->>'$.attempts')::INT AS attempts, data->>'$.kind' AS kind
FROM ledger WHERE type LIKE 'message.%';
CREATE TEMP TABLE steps_ AS
SELECT *, lead(time) OVER (PARTITION BY message_id ORDER BY seq) AS next_time
FROM ev WHERE type NOT IN ('message.extended', 'message.reordered');
CREATE TEMP TABLE ref AS
SELECT message_id, arg_max(state, seq) AS state,
    min(time) FILTER (type = 'message.published') AS published,
    min(time) FILTER (type = 'message.claimed') AS claimed,
    max(time) FILTER (state IN ('completed', 'dead', 'expired', 'cancelled')) AS ended,
    count(*) FILTER (type = 'message.claimed') AS claims,
    count(*) FILTER (type IN ('message.failed', 'message.lease_expired', 'message.dead_lettered')) AS failures,
    arg_max(coalesce(kind, CASE type WHEN 'message.lease_expired' THEN 'lease_expired' ELSE 'unknown' END), seq)
        FILTER (type IN ('message.failed', 'message.lease_expired', 'message.dead_lettered')) AS error_class,
    min(seq) AS first_seq, max(seq) AS last_seq
FROM ev GROUP BY message_id;
CREATE TEMP TABLE life AS
SELECT r.*, p.tenant, p.scope, coalesce(p.data->>'$.from', p.queue) AS queue, p.correlation_id, p.causation_id,
    CASE WHEN p.queue LIKE 'inbox/%' THEN p.queue[7:] ELSE p.data->>'$.agent' END AS agent,
    p.data->>'$.channel' AS channel, make_timestamp(p.time)::DATE AS day, make_timestamp(p.time) AS entered,
    CASE WHEN r.state IN ('completed', 'dead', 'expired', 'cancelled') THEN r.state ELSE 'open' END AS outcome,
    claimed - published AS wait_us, w.work_us,
    CASE WHEN r.state IN ('completed', 'dead', 'expired', 'cancelled') THEN ended - published END AS total_us
FROM ref r JOIN ev p ON p.message_id = r.message_id AND p.type = 'message.published'
LEFT JOIN (SELECT message_id, sum(coalesce(next_time, time) - time)::BIGINT AS work_us FROM steps_
           WHERE type = 'message.claimed' GROUP BY message_id) w ON w.message_id = r.message_id;
CREATE TEMP TABLE turn AS
SELECT *, (data->>'$.ended_at')::BIGINT AS ended, data->>'$.agent' AS agent,
    make_timestamp((data->>'$.ended_at')::BIGINT)::DATE AS day, (data->>'$.cost_usd')::DECIMAL(20, 10) AS usd,
    (data->>'$.usage[0].input_tokens')::BIGINT AS tin, (data->>'$.usage[0].cache_read_tokens')::BIGINT AS tcache,
    (data->>'$.usage[0].output_tokens')::BIGINT AS tout, data->>'$.outcome' AS outcome,
    (data->>'$.ended_at')::BIGINT - (data->>'$.started_at')::BIGINT AS took,
    data->>'$.usage[0].provider' AS provider, data->>'$.usage[0].model' AS model
FROM records WHERE kind = 'turn'
"""
_ENDS = """count(*) AS messages, count(*) FILTER (outcome = 'completed') AS completed,
    count(*) FILTER (outcome = 'dead') AS dead, count(*) FILTER (outcome = 'expired') AS expired,
    count(*) FILTER (outcome = 'cancelled') AS cancelled, count(*) FILTER (outcome = 'open') AS open,
    sum(failures)::BIGINT AS failures, count(*) FILTER (claims > 1) AS retried"""
_TIMES = ", ".join(
    f"quantile_cont({name}_us, {share / 100}) AS {name}_p{share}_us"
    for name in ("wait", "work", "total")
    for share in (50, 95)
)
QUESTIONS = {
    "queue_hour": f"""SELECT day, date_trunc('hour', entered) AS hour, tenant, scope, queue, {_ENDS}, {_TIMES}
        FROM life GROUP BY ALL""",
    "agent_day": f"""SELECT * FROM (SELECT day, tenant, agent, {_ENDS}, {_TIMES} FROM life
            WHERE queue LIKE 'inbox/%' GROUP BY ALL)
        FULL JOIN (SELECT day, tenant, agent, count(*) AS turns, count(*) FILTER (outcome <> 'finished') AS failed_turns,
            quantile_cont(took, 0.5) AS turn_p50_us, quantile_cont(took, 0.95) AS turn_p95_us,
            sum(tin + tcache + tout)::BIGINT AS tokens, sum(usd) AS cost_usd FROM turn GROUP BY ALL)
        USING (day, tenant, agent)""",
    "sla": """SELECT day, tenant, scope, queue, count(*) AS ended,
            count(*) FILTER (outcome = 'completed' AND total_us <= 60e6) AS within_1m,
            count(*) FILTER (outcome = 'completed' AND total_us <= 300e6) AS within_5m,
            count(*) FILTER (outcome = 'completed' AND total_us <= 3600e6) AS within_1h,
            count(*) FILTER (outcome IN ('dead', 'expired')) AS failed,
            quantile_cont(total_us, 0.5) AS total_p50_us, quantile_cont(total_us, 0.99) AS total_p99_us
        FROM life WHERE outcome <> 'open' GROUP BY ALL""",
    "cost_day": """SELECT day, tenant, agent, provider, model, count(*) AS turns, sum(tin)::BIGINT AS input_tokens,
            sum(tcache)::BIGINT AS cache_read_tokens, sum(tout)::BIGINT AS output_tokens, sum(usd) AS cost_usd,
            count(*) FILTER (usd IS NULL) AS unpriced FROM turn GROUP BY ALL""",
    "failure_causes": """SELECT day, tenant, scope, queue, agent, error_class, count(*) AS messages,
            sum(failures)::BIGINT AS failures, count(*) FILTER (outcome = 'dead') AS dead,
            count(*) FILTER (outcome = 'completed') AS recovered, arg_max(message_id, last_seq) AS example_id
        FROM life WHERE error_class IS NOT NULL GROUP BY ALL""",
    "handoff_graph": """SELECT min(t.day) AS day, t.tenant, p.agent AS from_agent, c.agent AS to_agent, count(*) AS handoffs,
            count(*) FILTER (c.outcome = 'completed') AS completed,
            count(*) FILTER (c.outcome IN ('dead', 'expired')) AS failed,
            quantile_cont(c.wait_us, 0.5) AS latency_p50_us, quantile_cont(c.wait_us, 0.95) AS latency_p95_us
        FROM life c JOIN life p ON p.message_id = c.causation_id AND p.correlation_id = c.correlation_id
            AND p.tenant = c.tenant
        JOIN (SELECT tenant, correlation_id, min(day) AS day FROM life GROUP BY ALL) t
            ON t.correlation_id = c.correlation_id AND t.tenant = c.tenant
        WHERE c.queue LIKE 'inbox/%' AND p.agent IS NOT NULL GROUP BY t.day, t.tenant, p.agent, c.agent""",
    "channel_day": """SELECT day, tenant, channel, count(*) AS conversations, sum(mails)::BIGINT AS mails,
            sum(replies)::BIGINT AS replies, count(answered) AS answered,
            quantile_cont(answered - began, 0.5) AS answer_p50_us, quantile_cont(answered - began, 0.95) AS answer_p95_us
        FROM (SELECT coalesce(correlation_id, message_id) AS talk, min(day) AS day, tenant,
                arg_min(channel, first_seq) AS channel, min(published) AS began,
                count(*) FILTER (queue LIKE 'inbox/%' AND causation_id IS NULL) AS mails,
                count(*) FILTER (queue LIKE 'outbox/%') AS replies,
                min(published) FILTER (queue LIKE 'outbox/%') AS answered
            FROM life GROUP BY talk, tenant) WHERE channel IS NOT NULL GROUP BY ALL""",
}


def near(one: Any, other: Any) -> bool:
    if isinstance(one, float | Decimal) or isinstance(other, float | Decimal):
        return (one is None) == (other is None) and (one is None or abs(float(one) - float(other)) < 1e-3)
    if hasattr(one, "timestamp"):
        return str(one)[:19] == str(other)[:19]
    return str(one) == str(other)


@contextmanager
def judging(lake: Lake) -> Iterator[QueryEngine]:
    with engine(lake) as light:
        for name in ("ledger", "records"):
            light._mount(name)
        light._db.execute(REFERENCE)
        yield light


def judge_table(judge: QueryEngine, lake: Lake, table: Table) -> None:
    expected = judge.rows(QUESTIONS[table.short])

    def place(row: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name])[:19] for name in table.key)

    expected.sort(key=place)
    found = sorted(rows(lake, table), key=place)
    assert len(set(map(place, found))) == len(found), "its key names each row once"
    assert len(found) == len(expected) > 0
    for mine, theirs in zip(found, expected, strict=True):
        for name, value in theirs.items():
            assert near(mine[name], value), f"{name} of {place(mine)}: {mine[name]} is not {value}"


def judge_gold(lake: Lake) -> None:
    with judging(lake) as judge:
        for table in GOLD:
            judge_table(judge, lake, table)
