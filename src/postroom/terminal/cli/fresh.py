"""What the lake does not know yet of a conversation, from the ledger: waiting, work, turns and their cost."""

from datetime import datetime
from typing import Any

from postroom.clock import SECOND
from postroom.kernel.ledger import Event
from postroom.kernel.states import State
from postroom.room import SyncRoom
from postroom.terminal.cli.history import last_before

TURN = "turn"


def fill(room: SyncRoom, found: dict[str, Any]) -> None:
    """Adds `wait_us` and `work_us` to the spans that came from the hot store, and a summary where none is."""
    new = {span["span_id"]: span for span in found["spans"] if span.get("fresh")}
    if not new:
        return
    began = min(_micros(span["started_at"]) for span in new.values())
    still = any(span["ended_at"] is None for span in new.values())
    ended = None if still else max(_micros(span["ended_at"]) for span in new.values())
    events: dict[str, list[Event]] = {}
    cost = 0.0
    for event in room.events(last_before(room, began)):
        # Times of spans are whole milliseconds.
        if ended is not None and event.time > ended + SECOND // 1000:
            break
        if event.correlation_id != found["trace_id"]:
            continue
        if event.type == f"record.{TURN}":
            cost += _cost(room, event)
        elif event.message_id is not None and event.message_id in new:
            events.setdefault(event.message_id, []).append(event)
    for span_id, lived in events.items():
        new[span_id]["wait_us"], new[span_id]["work_us"] = _times(lived)
    if not found["summary"]:
        last = max(each.time for lived in events.values() for each in lived) if events else began
        agents = dict.fromkeys(span["agent"] for span in found["spans"] if span["agent"])
        found["summary"] = {"duration_us": last - began, "agents": list(agents), "cost_usd": cost}


def _times(events: list[Event]) -> tuple[int | None, int | None]:
    """As the lake counts them: until it was first claimed, and all the time it was; None if it never was."""
    waited = worked = claimed = None
    for event in events:
        state = event.details.get("state")
        if claimed is None and state == State.CLAIMED:
            claimed = event.time
            if waited is None:
                waited, worked = claimed - events[0].time, 0
        elif claimed is not None and state is not None and state != State.CLAIMED:
            worked = (worked or 0) + event.time - claimed
            claimed = None
    return waited, worked


def _cost(room: SyncRoom, event: Event) -> float:
    record = room.latest_record(TURN, event.details["key"])
    return float(record.data.get("cost_usd") or 0) if record is not None else 0.0


def _micros(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * SECOND)
