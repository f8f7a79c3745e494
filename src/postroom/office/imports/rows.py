"""What is looked for in the tables and files of the other program, whatever its age; a row that is not usable
is left out and counted, and never stops the others."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from postroom.office.texts import clean, fitted

Row = dict[str, Any]
T = TypeVar("T")

NAME_CHARS = 200
ID_CHARS = 300
MOST_FILES = 20


class Unusable(Exception):
    """Something without which a row means nothing is missing."""


class ImportedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to an agent, waiting (`pending`, `queued`, `processing`), `dead` or `completed`."""

    message_id: str
    channel: str
    sender: str
    text: str
    status: str = "pending"
    sender_id: str | None = None
    agent: str | None = None
    from_agent: str | None = None
    files: tuple[str, ...] = ()
    error: str | None = None
    at: int = 0
    number: int | None = None
    """Of its row there."""
    attempts: int = 0


class ImportedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent said to a person, delivered (`acked`) or not."""

    message_id: str
    channel: str
    sender: str
    text: str
    original: str = ""
    status: str = "pending"
    sender_id: str | None = None
    agent: str | None = None
    files: tuple[str, ...] = ()
    at: int = 0
    number: int | None = None


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A line of an agent's history."""

    agent: str
    role: str
    channel: str
    sender: str
    message_id: str | None
    text: str
    at: int = 0


class ImportedPost(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a team's room."""

    team: str
    from_agent: str
    text: str
    at: int = 0


def mail(row: Row) -> ImportedMessage:
    files = _files(row.get("files"))
    return ImportedMessage(
        message_id=_word(row, "message_id", "messageId", chars=ID_CHARS),
        channel=_word(row, "channel").lower(),
        sender=_said(row, "sender") or "unknown",
        text=_text(row, "message", may_be_empty=bool(files)),
        status=_said(row, "status") or "pending",
        sender_id=_said(row, "sender_id", "senderId"),
        agent=_said(row, "agent"),
        from_agent=_said(row, "from_agent", "fromAgent"),
        files=files,
        error=_said(row, "last_error", chars=2000),
        at=moment(row.get("created_at") or row.get("timestamp")),
        number=_count(row.get("id")),
        attempts=_count(row.get("retry_count")) or 0,
    )


def answer(row: Row) -> ImportedAnswer:
    return ImportedAnswer(
        message_id=_word(row, "message_id", "messageId", chars=ID_CHARS),
        channel=_word(row, "channel").lower(),
        sender=_said(row, "sender") or "unknown",
        text=_text(row, "message"),
        original=fitted(_any(row, "original_message", "originalMessage") or "", 32 * 1024),
        status=_said(row, "status") or "pending",
        sender_id=_said(row, "sender_id", "senderId"),
        agent=_said(row, "agent"),
        files=_files(row.get("files")),
        at=moment(row.get("created_at") or row.get("timestamp")),
        number=_count(row.get("id")),
    )


def said(row: Row) -> Said:
    role = _word(row, "role")
    if role not in ("user", "assistant"):
        raise Unusable(f"the role {role}")
    return Said(
        agent=_word(row, "agent_id"),
        role=role,
        channel=_word(row, "channel").lower(),
        sender=_said(row, "sender") or "unknown",
        message_id=_said(row, "message_id", chars=ID_CHARS),
        text=_text(row, "content"),
        at=moment(row.get("created_at")),
    )


def post(row: Row) -> ImportedPost:
    return ImportedPost(
        team=_word(row, "team_id"),
        from_agent=_said(row, "from_agent") or "user",
        text=_text(row, "message"),
        at=moment(row.get("created_at")),
    )


def usable(rows: Iterable[Row], read: Callable[[Row], T], what: str, notes: list[str]) -> Iterator[T]:
    """Those that can be read; of the others a person is told how many there were, and what is wrong with the
    first."""
    lost, first = 0, ""
    for row in rows:
        try:
            found = read(row)
        except Unusable as problem:
            lost, first = lost + 1, first or str(problem)
            continue
        yield found
    if lost:
        notes.append(f"{lost} of {what} cannot be used and are left out; the first lacks {first}")


def moment(value: object) -> int:
    """Milliseconds since 1970; 0 where nobody knows."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**46:
        return 0
    return int(value)


def _count(value: object) -> int | None:
    """A number of a row or of attempts; None where there is none that makes sense."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def plain(value: object) -> str | None:
    """A text as the store takes it, or None where there is none."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return clean(value).replace("\0", "") if isinstance(value, str) else None


def fingerprint(*parts: object) -> str:
    """Stands for a row by what it says, so that it is known again wherever its installation is moved."""
    told = json.dumps(parts, default=str, ensure_ascii=True)
    return hashlib.sha256(told.encode()).hexdigest()[:40]


def _any(row: Row, *names: str) -> str | None:
    return next((found for name in names if (found := plain(row.get(name))) is not None), None)


def _said(row: Row, *names: str, chars: int = NAME_CHARS) -> str | None:
    return (_any(row, *names) or "").strip()[:chars] or None


def _word(row: Row, *names: str, chars: int = NAME_CHARS) -> str:
    found = _said(row, *names, chars=chars)
    if found is None:
        raise Unusable(f"its {names[0]}")
    return found


def _text(row: Row, name: str, *, may_be_empty: bool = False) -> str:
    found = _any(row, name) or ""
    if not found.strip() and not may_be_empty:
        raise Unusable(f"its {name}")
    return fitted(found)


def _files(value: object) -> tuple[str, ...]:
    text = plain(value)
    if text is not None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return ()
    if not isinstance(value, list):
        return ()
    return tuple(found for each in value[:MOST_FILES] if isinstance(each, str) and (found := plain(each)))
