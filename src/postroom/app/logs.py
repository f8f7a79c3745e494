"""The log: one JSON object a line, in files replaced in time, without secrets or control sequences."""

import contextlib
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from postroom.app.redaction import Redactor
from postroom.services.log_lines import FILE, plain

FILE_BYTES = 10 * 1024 * 1024
FILES = 5
LINE_CHARS = 16_000
DAY_S = 24 * 3600
_LEVELS = {"WARNING": "WARN", "CRITICAL": "ERROR"}


def _moment(seconds: float) -> str:
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


class JsonLines(logging.Formatter):
    """ASCII only, so that no terminal finds anything in it to obey."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _moment(record.created),
            "level": _LEVELS.get(record.levelname, record.levelname),
            "from": record.name.removeprefix("postroom."),
            "text": self._redact(record.getMessage())[:LINE_CHARS],
        }
        if record.exc_info:
            trace = "".join(traceback.format_exception(*record.exc_info))
            line["trace"] = self._redact(trace)[:LINE_CHARS]
        return json.dumps(line, ensure_ascii=True)


class PlainLines(logging.Formatter):
    """For people in front of a terminal."""

    def __init__(self, redact: Redactor) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": _moment(record.created), "level": record.levelname, "text": record.getMessage()}
        return self._redact(plain(line))


def tidy(folder: Path, days: float | None, now: float) -> int:
    """Remove logs into which nothing was written for so many days, also the one that was written last."""
    if days is None:
        return 0
    removed = 0
    for file in folder.glob(f"{FILE}*"):
        with contextlib.suppress(OSError):
            if file.stat().st_mtime < now - days * DAY_S:
                file.unlink()
                removed += 1
    return removed


def _first_moment(file: Path) -> float | None:
    """When the first line of a log was written."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError), file.open(encoding="ascii") as lines:
        return datetime.fromisoformat(json.loads(lines.readline())["time"]).timestamp()
    return None


class OwnersFile(RotatingFileHandler):
    """Replaced when it is full or began too long ago; old ones are removed then, and once a day."""

    def __init__(self, path: Path, *, days: float | None, **options: Any) -> None:
        self._days = days
        self._began = _first_moment(path) or time.time()
        self._look_at = time.time() + DAY_S
        super().__init__(path, **options)

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - the library's name
        if self._days is not None and record.created >= self._look_at:
            self._look_at = record.created + DAY_S
            tidy(Path(self.baseFilename).parent, self._days, record.created)
        if self._days and record.created - self._began > self._days * DAY_S:
            return True
        return bool(super().shouldRollover(record))

    def doRollover(self) -> None:  # noqa: N802 - the library's name
        super().doRollover()
        self._began = time.time()

    def _open(self) -> Any:
        handle = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return os.fdopen(handle, "a", encoding="ascii", errors="backslashreplace")


@contextlib.contextmanager
def logging_to(
    folder: Path, level: str, redact: Redactor, *, terminal: bool, days: float | None = None
) -> Iterator[None]:
    """Everything below `postroom` and the server goes to the log while this lasts; old files go first."""
    tidy(folder, days, time.time())
    file = OwnersFile(folder / FILE, maxBytes=FILE_BYTES, backupCount=FILES, days=days)
    file.setFormatter(JsonLines(redact))
    handlers: list[logging.Handler] = [file]
    if terminal:
        shown = logging.StreamHandler(sys.stderr)
        shown.setFormatter(PlainLines(redact))
        handlers.append(shown)
    before: list[tuple[logging.Logger, list[logging.Handler], int, bool]] = []
    for name in ("postroom", "uvicorn"):
        logger = logging.getLogger(name)
        before.append((logger, logger.handlers, logger.level, logger.propagate))
        logger.handlers = handlers
        logger.setLevel(level.upper() if name == "postroom" else logging.WARNING)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, old, old_level, propagates in before:
            logger.handlers, logger.propagate = old, propagates
            logger.setLevel(old_level)
        for handler in handlers:
            handler.close()
