"""The message that everybody sends, about 200 bytes of JSON, and the room it goes through."""

from pathlib import Path
from typing import Any

import msgspec

ACTOR = "bench"
QUEUE = "jobs"
BODY = {
    "task": "summarise",
    "document": "reports/2026/quarter-3.txt",
    "language": "en",
    "words": 250,
    "reply_to": "desk-7",
    "note": "Keep the figures of the second table, leave the appendix out.",
    "tags": ["finance"],
}
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


def room_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'room.db'}"


def room_options(**more: Any) -> dict[str, Any]:
    """As users have it, housekeeping included; only the actor is named, so that no host name is stored."""
    return {"actor": ACTOR, **more}
