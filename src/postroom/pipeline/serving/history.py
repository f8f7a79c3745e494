"""Searching everything that was ever said: what has ended from the lake, what lives from the hot store."""

from datetime import UTC, date, datetime, time
from typing import Any

import msgspec

from postroom.clock import SECOND
from postroom.pipeline.serving.engine import QueryEngine
from postroom.pipeline.serving.insights import plain
from postroom.pipeline.serving.traces import moment
from postroom.pipeline.sources.sqlite import SqliteSource

SNIPPET = 160


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """All words must occur, in any order; the rest narrows."""

    words: tuple[str, ...]
    agent: str | None = None
    channel: str | None = None
    sender: str | None = None
    since: date | None = None
    limit: int = 50


def search(engine: QueryEngine | None, source: SqliteSource | None, wanted: Search) -> list[dict[str, Any]]:
    """Newest first; a message that is in both places is found once, as the hot store has it."""
    found: dict[str, dict[str, Any]] = {}
    if engine is not None and engine.has("messages"):
        for row in engine.rows(*_lake_query(wanted)):
            found[row["id"]] = {**plain(row), "from": "lake"}
    if source is not None:
        since = None
        if wanted.since is not None:
            since = round(datetime.combine(wanted.since, time(), UTC).timestamp()) * SECOND
        rows = source.search(
            wanted.words,
            wanted.limit,
            agent=wanted.agent,
            channel=wanted.channel,
            sender=wanted.sender,
            since=since,
        )
        found |= {row["id"]: {**row, "from": "store"} for row in rows}
    newest = sorted(found.values(), key=lambda row: (row["created_at"], row["seq"]), reverse=True)
    for row in newest:
        del row["seq"]
        row["created_at"] = moment(row["created_at"])
        row["finished_at"] = moment(row.get("finished_at"))
        row["text"] = snippet(row.pop("body") or "", wanted.words)
    return newest[: wanted.limit]


def _lake_query(wanted: Search) -> tuple[str, list[Any]]:
    clauses, values = ["body IS NOT NULL"], []
    for word in wanted.words:
        clauses.append("contains(lower(body), lower(?))")
        values.append(_as_in_json(word))
    for column, value in (("channel", wanted.channel), ("agent", wanted.agent)):
        if value:
            clauses.append(f"({column} = ?{' OR from_agent = ?' if column == 'agent' else ''})")
            values += [value, value] if column == "agent" else [value]
    if wanted.sender:
        clauses.append("(sender = ? OR sender_id = ?)")
        values += [wanted.sender, wanted.sender]
    if wanted.since:
        clauses.append("created_at >= epoch_us(?::TIMESTAMP)")
        values.append(wanted.since)
    sql = f"""SELECT seq, id, scope, queue, state, message_type, channel, sender, agent, from_agent, correlation_id,
                     created_at, finished_at, body
              FROM messages WHERE {" AND ".join(clauses)}
              QUALIFY row_number() OVER (PARTITION BY id ORDER BY ended_seq DESC) = 1
              ORDER BY created_at DESC, seq DESC LIMIT ?"""  # noqa: S608 - only our own clauses
    return sql, [*values, wanted.limit]


def _as_in_json(word: str) -> str:
    return msgspec.json.encode(word).decode()[1:-1]


def snippet(body: str, words: tuple[str, ...]) -> str:
    """The text around the first word that was found."""
    text = body
    try:
        document = msgspec.json.decode(body)
        text = str(document.get("text", body)) if isinstance(document, dict) else str(document)
    except msgspec.DecodeError:
        pass  # a text that is no JSON, or of which a secret was taken out
    text = " ".join(text.split())
    place = min((at for at in (text.lower().find(word.lower()) for word in words) if at >= 0), default=0)
    start = max(0, place - SNIPPET // 3)
    cut = text[start : start + SNIPPET]
    return f"{'…' if start else ''}{cut}{'…' if start + SNIPPET < len(text) else ''}"


def life(engine: QueryEngine, message_id: str) -> dict[str, Any] | None:
    """A message that the hot store no longer has: its row, its life, and what happened to it."""
    if not engine.has("message_life"):
        return None
    lives = engine.rows("SELECT * FROM message_life WHERE message_id = ?", [message_id])
    if not lives:
        return None
    first, last = lives[0]["first_seq"], lives[0]["last_seq"]
    events = engine.rows(
        "SELECT seq, time, type, actor, data FROM ledger WHERE seq BETWEEN ? AND ? AND message_id = ? ORDER BY seq",
        [first, last, message_id],
    )
    rows = engine.rows("SELECT * FROM messages WHERE id = ? ORDER BY ended_seq DESC LIMIT 1", [message_id])
    return {
        "life": plain(lives[0]),
        "message": plain(rows[0]) if rows else None,
        "events": [{**event, "time": moment(event["time"])} for event in events],
    }
