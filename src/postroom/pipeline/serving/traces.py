"""A conversation as a tree of spans: from the lake, and what the lake does not have yet from the hot store."""

from datetime import UTC, datetime
from typing import Any

from postroom.clock import SECOND
from postroom.pipeline.failures import TraceNotFound
from postroom.pipeline.serving.engine import Engine
from postroom.pipeline.serving.insights import Period, plain
from postroom.pipeline.sources.sqlite import SqliteSource

_SPANS = "SELECT * EXCLUDE (day) FROM spans WHERE trace_id = ? ORDER BY started_at, span_id"
_TRACE = "SELECT * FROM traces WHERE trace_id = ?"


def traces(engine: Engine, at: Period, limit: int = 50) -> list[dict[str, Any]]:
    """The newest conversations."""
    if not engine.has("traces"):
        return []
    sql = "SELECT * FROM traces WHERE day BETWEEN ? AND ? ORDER BY started_at DESC LIMIT ?"
    return [plain(row) for row in engine.rows(sql, [*at.bounds, limit])]


def slowest(engine: Engine, at: Period, limit: int = 10) -> list[dict[str, Any]]:
    if not engine.has("traces"):
        return []
    sql = "SELECT * FROM traces WHERE day BETWEEN ? AND ? ORDER BY duration_us DESC LIMIT ?"
    return [plain(row) for row in engine.rows(sql, [*at.bounds, limit])]


def trace(engine: Engine | None, source: SqliteSource | None, wanted: str) -> dict[str, Any]:
    """By a conversation's id or that of any of its messages."""
    talk = _conversation(engine, source, wanted)
    spans: dict[str, dict[str, Any]] = {}
    summary: dict[str, Any] = {}
    if engine is not None and engine.has("spans"):
        spans = {row["span_id"]: plain(row) for row in engine.rows(_SPANS, [talk])}
        found = engine.rows(_TRACE, [talk])
        summary = plain(found[0]) if found else {}
    fresh = [_span(row) for row in source.conversation(talk)] if source is not None else []
    for span in fresh:
        known = spans.get(span["span_id"])
        if known is None or known["state"] != span["state"]:
            spans[span["span_id"]] = {**(known or {}), **span, "fresh": True}
    if not spans:
        raise TraceNotFound(trace=wanted)
    ordered = sorted(spans.values(), key=lambda span: (span["started_at"], span["span_id"]))
    return {"trace_id": talk, "summary": summary, "spans": ordered}


def _conversation(engine: Engine | None, source: SqliteSource | None, wanted: str) -> str:
    if source is not None:
        talk = source.conversation_of(wanted)
        if talk is not None:
            return talk
    if engine is not None and engine.has("spans"):
        found = engine.rows(
            "SELECT trace_id FROM spans WHERE span_id = ? OR trace_id = ? LIMIT 1", [wanted, wanted]
        )
        if found:
            return found[0]["trace_id"]
    return wanted


def _span(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "span_id": row["id"],
        "parent_id": row["parent_id"] or row["causation_id"],
        "name": f"{row['scope']}/{row['queue']}",
        "agent": row["agent"],
        "depth": row["hop"],
        "state": row["state"],
        "error_class": row["failure_kind"],
        "started_at": moment(row["created_at"]),
        "ended_at": moment(row["finished_at"]),
    }


def moment(micros: int | None) -> str | None:
    if micros is None:
        return None
    text = datetime.fromtimestamp(micros / SECOND, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def tree(spans: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """Spans under what caused them, each with its depth in the tree; whatever has no known cause is a root."""
    ids = {span["span_id"] for span in spans}
    below: dict[str | None, list[dict[str, Any]]] = {}
    for span in spans:
        parent = span.get("parent_id")
        below.setdefault(parent if parent in ids and parent != span["span_id"] else None, []).append(span)
    ordered: list[tuple[int, dict[str, Any]]] = []
    waiting = [(0, span) for span in reversed(below.get(None, []))]
    seen: set[str] = set()
    while waiting:
        depth, span = waiting.pop()
        if span["span_id"] in seen:
            continue
        seen.add(span["span_id"])
        ordered.append((depth, span))
        waiting += [(depth + 1, child) for child in reversed(below.get(span["span_id"], []))]
    return ordered + [(0, span) for span in spans if span["span_id"] not in seen]
