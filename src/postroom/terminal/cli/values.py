"""How words of a command line become values: durations, moments, labels and JSON."""

import re
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import typer

from postroom.clock import from_datetime, micros
from postroom.kernel import jsontext
from postroom.terminal.cli.errors import Unclear

_UNITS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)", re.ASCII)


class Clear:
    """The word `none`: a setting is to be taken away."""


CLEAR = Clear()


def read_text(what: str, otherwise: str) -> str:
    """All of stdin, which must be text; nothing of it is changed to make it so."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise Unclear(f"{what} is not UTF-8 text (at byte {error.start}); {otherwise}") from None


def duration(text: str) -> float:
    match = _DURATION.fullmatch(str(text).strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration; write seconds (30, 0.5) or 500ms, 5m, 2h, 7d.")
    return round(float(match[1]) * _UNITS[match[2]], 6)


def duration_or_none(text: str) -> float | Clear:
    return CLEAR if text == "none" else duration(text)


def whole_or_none(text: str) -> int | Clear:
    if text == "none":
        return CLEAR
    if not re.fullmatch(r"-?\d{1,18}", str(text), re.ASCII):
        raise typer.BadParameter(f"{text!r} is neither a whole number nor the word none.")
    return int(text)


def text_or_none(text: str) -> str | Clear:
    return CLEAR if text == "none" else text


@dataclass(frozen=True)
class When:
    """A moment as it was written: fixed, or so many seconds away from now."""

    moment: int | None = None
    seconds: float = 0.0

    def ahead_of(self, now: int) -> int:
        return now + micros(self.seconds) if self.moment is None else self.moment

    def before(self, now: int) -> int:
        return now - micros(self.seconds) if self.moment is None else self.moment


def when(text: str) -> When:
    if _DURATION.fullmatch(str(text).strip()):
        return When(seconds=duration(text))
    try:
        moment = datetime.fromisoformat(text)
        # A time without an offset is the user's own.
        return When(moment=from_datetime(moment if moment.tzinfo else moment.astimezone()))
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is not a time; write 2027-01-31T12:00, 2027-01-31T12:00Z, or a duration like 2h."
        ) from None


def label(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    typed = name.endswith(":")
    name = name.removesuffix(":")
    if not equals or not name:
        raise typer.BadParameter(f"{text!r} is not a label; write name=text, or name:=5 for a JSON value.")
    return name, json_value(value) if typed else value


def json_value(text: str) -> Any:
    try:
        return jsontext.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise typer.BadParameter(f"is not valid JSON ({_lower(error)}).") from None


def json_object(text: str) -> dict[str, Any]:
    value = json_value(text)
    if not isinstance(value, dict):
        raise typer.BadParameter('must be a JSON object, like {"name": "value"}.')
    return value


def json_or_text(text: str) -> tuple[Any, str | None]:
    """What it says as JSON; else the text itself, with what was wrong when it looks as if JSON was meant."""
    try:
        return jsontext.decode(text), None
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        meant = text.lstrip().startswith(("{", "["))
        return text, _lower(error) if meant else None


def _lower(error: Exception) -> str:
    text = str(error)
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
