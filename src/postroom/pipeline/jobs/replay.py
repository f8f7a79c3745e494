"""Sending a past conversation again: to the same agent or another, marked as a replay, within a budget."""

from typing import Any

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.pipeline.errors import NothingToReplay, TraceNotFound
from postroom.pipeline.serving.engine import QueryEngine

MARK = "replay_of"


class ReplayReport(msgspec.Struct, frozen=True, kw_only=True):
    """`agent` and `model` None: as it was. `usd` is the most that the conversation may cost now."""

    trace: str
    agent: str | None = None
    model: str | None = None
    usd: float | None = None
    number: str = "1"


def replayed(engine: QueryEngine, wanted: ReplayReport, actor: str) -> list[c.Command]:
    """Commands that publish what people wrote in that conversation once more, as a new conversation.

    Only what came from people is sent: what agents said to each other will be said anew. The same replay with
    the same number is published once, however often it is asked for.
    """
    if wanted.usd is not None and wanted.usd <= 0:
        raise InvalidField("usd", "must be more than 0")
    known = engine.rows(
        """SELECT coalesce(correlation_id, id) AS trace FROM messages
           WHERE coalesce(correlation_id, id) = ? OR id = ? LIMIT 1""",
        [wanted.trace, wanted.trace],
    )
    if not known:
        raise TraceNotFound(trace=wanted.trace)
    wanted = msgspec.structs.replace(wanted, trace=known[0]["trace"])
    rows = engine.rows(
        """SELECT * FROM messages WHERE coalesce(correlation_id, id) = ? AND from_agent IS NULL AND hop = 0
           AND subscription IS NULL QUALIFY row_number() OVER (PARTITION BY id ORDER BY ended_seq DESC) = 1
           ORDER BY created_at, seq""",
        [wanted.trace],
    )
    if not rows:
        raise NothingToReplay(trace=wanted.trace)
    return [_publish(row, wanted, actor) for row in rows]


def _publish(row: dict[str, Any], wanted: ReplayReport, actor: str) -> c.Command:
    queue = row["origin_queue"] or row["queue"]
    agent = row["agent"]
    if wanted.agent is not None:
        if not queue.startswith("inbox/"):
            raise InvalidField("agent", f"cannot be chosen: the message went to {queue}, not to an agent")
        queue, agent = f"inbox/{wanted.agent}", wanted.agent
    metadata = msgspec.json.decode(row["metadata"]) if row["metadata"] else {}
    metadata |= {MARK: wanted.trace}
    if wanted.model is not None:
        metadata["model"] = wanted.model
    if wanted.usd is not None:
        metadata["budget_usd"] = wanted.usd
    labels = msgspec.json.decode(row["labels"]) if row["labels"] else {}
    body = (
        msgspec.json.decode(row["body"])
        if row["content_type"] == "application/json" and row["body"]
        else row["body"]
    )
    message = NewMessage(
        body=body,
        message_type=row["message_type"],
        content_type=row["content_type"],
        labels={**labels, MARK: wanted.trace},
        correlation_id=f"replay:{wanted.number}:{wanted.trace}",
        idempotency_key=f"replay:{wanted.number}:{row['id']}",
        source_type="replay",
        source_id=actor,
        # Nobody outside is to get the answer: it stays in the outbox of a channel that delivers nowhere.
        channel="replay",
        sender=row["sender"],
        sender_id=row["sender_id"],
        agent=agent,
        metadata=metadata,
    )
    return c.Publish(queue=f"{row['scope']}/{queue}", messages=[message], actor=actor, tenant=row["tenant"])
