"""What every table and every column of the lake means, in one place: for `pipeline describe` and the
reference."""

from postroom.pipeline.lake.tables import ALL, Table

TABLES: dict[str, str] = {
    "bronze/ledger": "an event, as written, with its hash",
    "bronze/messages": "a message that has ended, as it was",
    "bronze/records": "a record that the office keeps, as it was",
    "silver/message_life": "a message: its times, waits, work, attempts, outcome and last failure",
    "silver/turns_clean": "an agent's turn: outcome, model, tokens and money",
    "silver/spans": "a step of a conversation, under what caused it",
    "silver/traces": "a conversation: depth, fan-out, longest way and cost",
    "silver/handoffs": "a note from agent to agent, with its wait and outcome",
    "silver/quarantine": "a row that broke an expectation, and why",
    "gold/agent_day": "an agent's day",
    "gold/queue_hour": "a queue's hour",
    "gold/channel_day": "a channel's day: who wrote, and how soon they were answered",
    "gold/cost_day": "a day's tokens and money by agent, provider and model",
    "gold/failure_causes": "a kind of failure in a queue on a day, with an example",
    "gold/handoff_graph": "a day's hand-offs from one agent to another",
    "gold/sla": "how much of a queue's day was done within a minute, five, an hour",
    "memory/chunks": "a piece of what was said, with the message it comes from",
    "runs/steps": "a step of a run: rows in and out, seconds and positions",
    "runs/expectations": "how an expectation of a table stands since a run",
}

# Columns that mean the same wherever they are.
SHARED: dict[str, str] = {
    "tenant": "whose it is",
    "scope": "the scope of the queue",
    "queue": "the queue, by its name within the scope",
    "message_id": "the message",
    "correlation_id": "the conversation it belongs to",
    "causation_id": "the message that caused it",
    "parent_id": "the message it was made from",
    "agent": "the agent that it is for, or that worked",
    "channel": "the channel by which a person wrote",
    "day": "the day, in UTC",
    "month": "the month, like 2026-11: what files are cut by",
    "time": "when it happened, microseconds since 1970",
    "type": "what happened, like message.published",
    "actor": "who did it",
    "data": "the rest, as JSON",
    "seq": "its number in the ledger",
    "hash": "the hash that chains it to the event before",
    "state": "the state it is in, or ended in",
    "outcome": "how it ended; open while it has not",
    "error_class": "the kind of its last failure",
    "error_reason": "what was said of its last failure",
    "attempts": "how often it was tried",
    "claims": "how often it was claimed",
    "wait_us": "from publishing to the first claim, in microseconds",
    "work_us": "all claims together, each until it was settled, given back or lost, in microseconds",
    "total_us": "from publishing to the end, in microseconds",
    "turns": "turns of agents",
    "tokens": "tokens of all kinds",
    "cost_usd": "dollars; null where there is no price",
    "messages": "messages",
    "completed": "of them, completed",
    "dead": "of them, dead letters",
    "expired": "of them, expired",
    "cancelled": "of them, called off",
    "open": "of them, not ended yet",
    "failures": "failed attempts",
    "retried": "messages that were tried more than once",
    "wait_p50_us": "half of them waited at most so long",
    "wait_p95_us": "95 of 100 waited at most so long",
    "work_p50_us": "half of them were worked on for at most so long",
    "work_p95_us": "95 of 100 were worked on for at most so long",
    "total_p50_us": "half of them took at most so long in all",
    "total_p95_us": "95 of 100 took at most so long in all",
    "total_p99_us": "99 of 100 took at most so long in all",
    "latency_p50_us": "half of them were taken within so long",
    "latency_p95_us": "95 of 100 were taken within so long",
    "provider": "who runs the model",
    "model": "the model that worked last",
    "input_tokens": "tokens that were read anew",
    "cache_read_tokens": "tokens that were read from the provider's cache",
    "cache_write_tokens": "tokens that were put into the provider's cache",
    "output_tokens": "tokens that were written",
    "redacted": "whether something that looks like a secret was taken out",
    "started_at": "when it began",
    "ended_at": "when it ended",
    "last_seq": "the last event that it takes in",
    "trace_id": "the conversation",
    "run_id": "the run that wrote it",
    "created_at": "when it was made, microseconds since 1970",
    "from_agent": "the agent that wrote it",
    "sender": "the person who wrote, by name",
    "sender_id": "the person who wrote, by the id of their channel",
    "ended_seq": "the event that ended it",
    "priority_tier": "its tier of priority",
    "hop": "hand-offs before it in its conversation",
    "message_type": "its type",
}

OWN: dict[str, dict[str, str]] = {
    "bronze/messages": {
        "seq": "its number in the store",
        "id": "the message",
        "origin_queue": "the queue in which it died",
        "subscription": "the subscription it was delivered to",
        "content_type": "what its body is",
        "body": "its body, when it is text or JSON",
        "body_bytes": "its body, when it is neither",
        "labels": "its labels, as JSON",
        "metadata": "what its author added, as JSON",
        "files": "files that came with it, as JSON",
        "priority_score": "its place within the tier",
        "updated_at": "when it last changed, microseconds since 1970",
        "finished_at": "when it ended, microseconds since 1970",
        "expires_at": "when it would have expired, microseconds since 1970",
        "idempotency_key": "the key by which it was published once",
        "failure_reason": "what was said of its last failure",
        "failure_kind": "the kind of its last failure",
        "result": "what it was completed with",
        "source_type": "what kind of caller published it",
        "source_id": "which caller published it",
    },
    "bronze/records": {
        "id": "its number in the store",
        "kind": "what it is, like turn",
        "key": "its name among those of its kind",
    },
    "silver/message_life": {
        "tier": "its tier of priority",
        "delivery": "whether it is a copy for one subscriber",
        "published_by": "who published it",
        "bytes": "the size of its body",
        "published_at": "when it was published",
        "first_claimed_at": "when it was first claimed",
        "last_claimed_at": "when it was last claimed",
        "ended_at": "when it last ended, also if it came to life again",
        "finished_at": "when it ended, unless it came to life again",
        "updated_at": "when anything last happened to it",
        "releases": "how often it was given back",
        "snoozes": "how often it was put off",
        "lease_expiries": "how often whoever had it did not come back in time",
        "dead_letters": "how often it became a dead letter",
        "replays": "how often it was brought back to life",
        "given_up": "claims that have ended",
        "error_seq": "the event of its last failure",
        "first_seq": "its first event",
        "claimed_sum": "for sums that go on: times of claims",
        "given_up_sum": "for sums that go on: times of ends less times of claims",
    },
    "silver/turns_clean": {
        "record_id": "the record it comes from",
        "turn_id": "the turn",
        "cause": "why it failed",
        "duration_us": "how long it took, in microseconds",
        "price_source": "where the price comes from",
        "agent": "the agent that worked",
    },
    "silver/spans": {
        "span_id": "the message that this step is",
        "parent_id": "the step that caused it",
        "name": "scope and queue",
        "depth": "hand-offs before it",
        "children": "steps that it caused",
        "claimed_at": "when somebody first took it",
        "critical": "whether it is on the longest way",
    },
    "silver/traces": {
        "root_id": "its first message",
        "agents": "agents whose inboxes it went through",
        "depth": "the most hand-offs in a row",
        "fan_out": "the most messages caused by one",
        "handoffs": "notes from agent to agent",
        "failed": "messages that died or expired",
        "duration_us": "from its first message to its last end, in microseconds",
        "critical_path": "messages on the way to what ended last",
        "critical_wait_us": "waiting on that way, in microseconds",
        "critical_work_us": "work on that way, in microseconds",
        "open": "messages that have not ended",
    },
    "silver/handoffs": {
        "cause_id": "the message in answer to which it was written",
        "to_agent": "the agent that it is for",
        "handed_at": "when it was written",
        "taken_at": "when it was first claimed",
        "latency_us": "between the two, in microseconds",
    },
    "silver/quarantine": {
        "table": "the table",
        "key": "the row, or the file",
        "reason": "what is wrong",
        "row": "the row, as JSON",
        "found_at": "when it was found",
    },
    "gold/agent_day": {
        "failed_turns": "turns that did not end well",
        "turn_p50_us": "half of the turns took at most so long",
        "turn_p95_us": "95 of 100 turns took at most so long",
    },
    "gold/queue_hour": {"hour": "the hour in which they were published"},
    "gold/channel_day": {
        "conversations": "conversations that began",
        "mails": "messages that people wrote",
        "replies": "answers that went out",
        "answered": "conversations that were answered",
        "answer_p50_us": "half of the first answers came within so long",
        "answer_p95_us": "95 of 100 first answers came within so long",
    },
    "gold/cost_day": {"unpriced": "turns without a price, which are not in the sum"},
    "gold/failure_causes": {
        "recovered": "messages that were completed in the end",
        "example_id": "one of them",
        "example_reason": "what was said of it",
        "dead": "messages that were given up",
        "messages": "messages that failed so",
    },
    "gold/handoff_graph": {
        "to_agent": "the agent that it is for",
        "handoffs": "notes",
        "failed": "notes that died or expired",
    },
    "gold/sla": {
        "ended": "messages that have ended",
        "within_1m": "of them, within a minute",
        "within_5m": "of them, within five minutes",
        "within_1h": "of them, within an hour",
        "failed": "of them, dead or expired",
    },
    "memory/chunks": {
        "part": "its place in the message",
        "said_at": "when it was said",
        "text": "what was said",
        "trusted": "whether it comes from inside",
        "valid": "whether it still holds",
    },
    "runs/steps": {
        "step": "the step",
        "seconds": "how long it took",
        "rows_in": "rows it looked at",
        "rows_out": "rows it wrote",
        "from_position": "the last event before it",
        "to_position": "the last event it took in",
        "quarantined": "rows it set aside",
        "status": "ok, failed, repaired or broken",
        "problem": "what was wrong",
    },
    "runs/expectations": {
        "table": "the table",
        "expectation": "what is expected",
        "broken": "rows that do not keep it",
        "example": "the key of one of them",
        "since": "when it was first found so",
    },
}


def describe_column(table: Table, name: str) -> str:
    own = OWN.get(table.name, {})
    return own[name] if name in own else SHARED[name]


def render_reference() -> str:
    """All tables and columns as Markdown, as the reference has them."""
    lines = [
        "# Tables and columns of the lake",
        "",
        "Made by `postroom pipeline describe --markdown`. About the lake as a whole: [the lake](lake.md).",
    ]
    for table in ALL:
        key = ", ".join(f"`{name}`" for name in table.key)
        lines += ["", f"## {table.name}", "", f"One row is {TABLES[table.name]}. Key: {key}."]
        lines += ["", "| column | type | meaning |", "| --- | --- | --- |"]
        lines += [
            f"| `{field.name}` | {kind_of(field.type)} | {describe_column(table, field.name)} |"
            for field in table.schema
        ]
    return "\n".join(lines) + "\n"


_KINDS = {
    "string": "text", "int64": "bigint", "int32": "integer", "double": "double", "bool": "boolean",
    "binary": "bytes", "date32[day]": "date", "timestamp[us, tz=UTC]": "timestamp",
    "list<item: string>": "list of texts",
}  # fmt: skip


def kind_of(kind: object) -> str:
    text = str(kind)
    return text.replace("decimal128", "decimal") if text.startswith("decimal") else _KINDS[text]
