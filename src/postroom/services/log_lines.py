"""Reading the log: its lines are JSON objects, and clients know them as `[time] [LEVEL] text`."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

FILE = "postroom.log"
TAIL_BYTES = 1024 * 1024


def plain(line: dict[str, Any]) -> str:
    """`[time] [LEVEL] text`, which is what clients of the API and people read."""
    text = f"[{line.get('time', '')}] [{line.get('level', '')}] {line.get('text', '')}"
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(sign: str) -> str:
    """What a terminal would obey is written out."""
    return sign if sign.isprintable() else f"\\u{ord(sign):04x}"


def last_lines(folder: Path, count: int) -> list[dict[str, Any]]:
    """The newest lines, oldest first; lines that are no JSON are told as they are."""
    try:
        with (folder / FILE).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    whole = lines if size <= TAIL_BYTES else lines[1:]
    return [parsed(line) for line in whole[-count:]]


def parsed(line: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {"time": "", "level": "INFO", "text": line.rstrip("\n")}
