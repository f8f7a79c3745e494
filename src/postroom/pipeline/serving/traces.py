"""A conversation as a tree of spans: from the lake, and what the lake does not have yet from the hot store."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

from postroom.ids import possible_conversations
from postroom.kernel.states import TERMINAL, State
from postroom.pipeline.errors import TraceNotFound
from postroom.pipeline.serving.engine import QueryEngine
from postroom.pipeline.serving.insights import Period, plain
from postroom.pipeline.serving.live_traces import CENTS, EPOCH, Life, LiveConversation, LiveTurn, talk
from postroom.pipeline.sources.sqlite import SqliteSource

DEEPEST = 100
DEFAULT = "default"
_SPANS = """SELECT * EXCLUDE (day) FROM spans WHERE trace_id = ? AND coalesce(tenant, ?) = ?
            ORDER BY started_at, span_id"""
_TRACE = "SELECT * FROM traces WHERE trace_id = ? AND coalesce(tenant, ?) = ?"
_FIND = """SELECT DISTINCT coalesce(tenant, ?) AS owner, trace_id FROM spans
           WHERE span_id = ? OR trace_id IN (SELECT unnest(?))"""


def traces(engine: QueryEngine, at: Period, limit: int = 50) -> list[dict[str, Any]]:
    """The newest conversations."""
    if not engine.has("traces"):
        return []
    sql = "SELECT * FROM traces WHERE day BETWEEN ? AND ? ORDER BY started_at DESC LIMIT ?"
    return [plain(row) for row in engine.rows(sql, [*at.bounds, limit])]


def slowest(engine: QueryEngine, at: Period, limit: int = 10) -> list[dict[str, Any]]:
    if not engine.has("traces"):
        return []
    sql = "SELECT * FROM traces WHERE day BETWEEN ? AND ? ORDER BY duration_us DESC LIMIT ?"
    return [plain(row) for row in engine.rows(sql, [*at.bounds, limit])]


def trace(
    engine: QueryEngine | None, source: SqliteSource | None, wanted: str, tenant: str | None = None
) -> dict[str, Any]:
    """By a conversation's id, that of any of its messages, or the one `send` printed. Of several tenants the default one comes first.

    What the lake does not know yet is marked `fresh`; the answer is the one the lake gives after its next run.
    """
    owner, name = _conversation(engine, source, wanted, tenant)
    found = talk(engine, source, name, owner)
    kept = _kept(engine, name, owner)
    told = {"trace_id": name, "tenant": owner}
    if found.fresh or (found.lives and kept is None):
        return told | _told(found, name, kept["summary"] if kept else {})
    if kept is None:
        raise TraceNotFound(trace=wanted)
    return told | kept


def _kept(engine: QueryEngine | None, name: str, tenant: str) -> dict[str, Any] | None:
    if engine is None or not engine.has("spans"):
        return None
    asked = [name, DEFAULT, tenant]
    spans = [plain(row) for row in engine.rows(_SPANS, asked)]
    found = engine.rows(_TRACE, asked) if engine.has("traces") else []
    return {"summary": plain(found[0]) if found else {}, "spans": spans} if spans else None


def _conversation(
    engine: QueryEngine | None, source: SqliteSource | None, wanted: str, tenant: str | None
) -> tuple[str, str]:
    """Whose conversation is meant, and which."""
    found: list[tuple[str, str]] = []
    if source is not None and (message := source.conversation_of(wanted)) is not None:
        found.append(message)
    if engine is not None and engine.has("spans"):
        asked = [DEFAULT, wanted, list(possible_conversations(wanted))]
        rows = [(row["owner"], row["trace_id"]) for row in engine.rows(_FIND, asked)]
        found += sorted(rows, key=_default_first)
    if source is not None:
        for talk_id in possible_conversations(wanted):
            found += sorted(((each, talk_id) for each in source.tenants_of(talk_id)), key=_default_first)
    fitting = [each for each in found if tenant in (None, each[0])]
    return fitting[0] if fitting else (tenant or DEFAULT, wanted)


def _default_first(conversation: tuple[str, str]) -> tuple[bool, tuple[str, str]]:
    return conversation[0] != DEFAULT, conversation


def _told(found: LiveConversation, name: str, before: dict[str, Any]) -> dict[str, Any]:
    lives = found.lives
    turns: dict[str, list[LiveTurn]] = {}
    for turn in found.turns:
        turns.setdefault(turn.message_id, []).append(turn)
    children = Counter(_parent(life) for life in lives)
    path = _longest(lives)
    spans = []
    for life in lives:
        taken = turns.get(life.message_id, [])
        costs = [turn.cost_usd for turn in taken if turn.cost_usd is not None]
        span = {
            "tenant": life.tenant,
            "trace_id": name,
            "span_id": life.message_id,
            "parent_id": _parent(life),
            "name": f"{life.scope}/{life.queue}",
            "agent": life.agent,
            "depth": life.hop,
            "children": children[life.message_id],
            "state": life.state,
            "error_class": life.error_class,
            "started_at": moment(life.published),
            "claimed_at": moment(life.first_claimed),
            "ended_at": moment(life.finished),
            "wait_us": life.wait_us,
            "work_us": life.work_us,
            "turns": len(taken),
            "tokens": sum(turn.tokens for turn in taken),
            "cost_usd": sum(costs, Decimal(0)) if costs else None,
            "critical": life.message_id in path,
            "last_seq": life.last_seq,
        }
        if life.fresh or any(turn.fresh for turn in taken):
            span["fresh"] = True
        spans.append(plain(span))
    fan_out = max(children[life.message_id] for life in lives)
    return {"summary": _summary(found, name, path, fan_out, before), "spans": spans}


def _summary(
    found: LiveConversation, name: str, path: list[str], fan_out: int, before: dict[str, Any]
) -> dict[str, Any]:
    lives = found.lives
    root = min(lives, key=lambda life: (life.published or 0, life.first_seq, life.message_id))
    by_id = {life.message_id: life for life in lives}
    read = [life for life in lives if life.queue.startswith("inbox/")]
    handed = [life for life in read if (above := by_id.get(_parent(life) or "")) and above.agent]
    ended = max(map(_seen, lives))
    costs = [turn.cost_usd for turn in found.turns if turn.cost_usd is not None]
    return plain(
        {
            "trace_id": name,
            "tenant": next((life.tenant for life in lives if life.tenant), None),
            "root_id": root.message_id,
            "channel": root.channel,
            "agents": sorted({life.agent for life in read if life.agent}),
            "messages": len(lives),
            "depth": max(life.hop for life in lives),
            "fan_out": fan_out,
            "handoffs": len(handed),
            "open": sum(life.state not in TERMINAL for life in lives),
            "failed": sum(life.state in (State.DEAD, State.EXPIRED) for life in lives),
            "started_at": moment(root.published),
            "ended_at": moment(ended),
            "duration_us": ended - (root.published or 0),
            "critical_path": path,
            "critical_wait_us": sum(by_id[each].wait_us or 0 for each in path),
            "critical_work_us": sum(by_id[each].work_us or 0 for each in path),
            "turns": len(found.turns),
            "tokens": sum(turn.tokens for turn in found.turns),
            "cost_usd": sum(costs, Decimal(0)).quantize(CENTS),
            "last_seq": max(life.last_seq for life in lives),
            "day": before.get("day") or (moment(root.published) or "")[:10],
        }
    )


def _longest(lives: list[Life]) -> list[str]:
    """The way from the first message to the one that ended last."""
    parents = {life.message_id: _parent(life) for life in lives}
    path = [max(lives, key=lambda life: (_seen(life), life.last_seq, life.message_id)).message_id]
    for _ in range(min(len(lives), DEEPEST)):
        above = parents[path[0]]
        if above is None or above not in parents or above in path:
            break
        path.insert(0, above)
    return path


def _parent(life: Life) -> str | None:
    return life.parent_id or life.causation_id


def _seen(life: Life) -> int:
    return life.finished or life.updated or 0


def moment(micros: int | None) -> str | None:
    if micros is None:
        return None
    text = (EPOCH + timedelta(microseconds=micros)).isoformat(timespec="milliseconds")
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
