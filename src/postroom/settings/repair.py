"""Damaged JSON read with care: commas too many or missing, comments, and files that end early.

Whatever is only half there is left out, not guessed; anything stranger is refused.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any

import msgspec

MAX_DEPTH = 100
MAX_NOTES = 10

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_WORD = re.compile(r"[^\s,:\[\]{}\"'/#]+")
_BLANK = re.compile(r"\s++")
_CONTROL = re.compile(r"[\x00-\x1f]")
_COMMENT = re.compile(r"//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)


class Repaired(msgspec.Struct, frozen=True):
    document: dict[str, Any]
    notes: tuple[str, ...]


class BeyondRepair(Exception):
    """The text is damaged in a way that leaves open what was meant."""


class _EndsEarly(Exception):
    """The text ends within a value."""


def read(text: str) -> dict[str, Any]:
    """Sound JSON, or ValueError."""
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("it holds no object in {braces}")
    if too_deep(document):
        raise ValueError("it is nested too deeply")
    return document


def too_deep(value: Any) -> bool:
    """Whether walking through it could exhaust the stack. Found level by level, without the stack."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [below for part in level for below in _below(part)]
        if not level:
            return False
    return True


def _below(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def repair(text: str) -> Repaired:
    reader = _JsonReader(text)
    document = reader.whole()
    return Repaired(document, tuple(reader.notes))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


class _JsonReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.ended = False
        self.notes: list[str] = []

    def whole(self) -> dict[str, Any]:
        if self.next() != "{":
            raise BeyondRepair("it does not begin with {")
        document = self.object((), 0)
        if not self.ended and self.next():
            if not document:
                raise self.beyond("more follows where the settings should end")
            self.note("what follows the end of the settings was left out")
        return document

    def next(self) -> str:
        """The next character that counts; at the end, nothing."""
        while match := _BLANK.match(self.text, self.at) or _COMMENT.match(self.text, self.at):
            if not match[0].isspace():
                self.note("a comment was left out")
            self.at = match.end()
        if self.text.startswith("/*", self.at):
            self.at = len(self.text)
        return self.text[self.at : self.at + 1]

    def object(self, path: tuple[str, ...], depth: int) -> dict[str, Any]:
        self.at += 1
        result: dict[str, Any] = {}
        while self.more("}"):
            if self.next() != '"':
                raise self.beyond('a name in "quotes" should stand here')
            try:
                key = self.string()
                self.colon()
                result[key] = self.value((*path, key), depth)
            except _EndsEarly:
                self.left_out(path)
        return result

    def colon(self) -> None:
        sign = self.next()
        if not sign:
            raise _EndsEarly
        if sign != ":":
            raise self.beyond("a colon should stand here")
        self.at += 1

    def list(self, path: tuple[str, ...], depth: int) -> list[Any]:
        self.at += 1
        result: list[Any] = []
        while self.more("]"):
            try:
                result.append(self.value((*path, str(len(result))), depth))
            except _EndsEarly:
                self.left_out(path)
        return result

    def more(self, closing: str) -> bool:
        """Whether another entry follows; moves past commas and past the closing bracket."""
        first = self.text[self.at - 1] in "{["
        commas = 0
        if self.ended:
            return False
        while (sign := self.next()) == ",":
            commas += 1
            self.at += 1
        if not sign:
            self.ended = True
            self.note("the file ends early; what was open there was closed")
            return False
        if sign == closing:
            self.at += 1
            if commas:
                self.note("a comma too many was left out")
            return False
        if commas > 1 or (first and commas):
            self.note("a comma too many was left out")
        elif not first and not commas:
            self.note("a missing comma was added")
        return True

    def value(self, path: tuple[str, ...], depth: int) -> Any:
        if depth >= MAX_DEPTH:
            raise self.beyond("it is nested too deeply")
        sign = self.next()
        if sign == "{":
            return self.object(path, depth + 1)
        if sign == "[":
            return self.list(path, depth + 1)
        return self.string() if sign == '"' else self.word()

    def string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise _EndsEarly
        try:
            value = json.loads(match[0], strict=False)
        except ValueError:
            raise self.beyond("a text has a \\ that means nothing; write \\\\ for a backslash") from None
        if _CONTROL.search(match[0]):
            self.note("a line break or tab inside a text was written as JSON wants it")
        self.at = match.end()
        return value

    def word(self) -> Any:
        match = _WORD.match(self.text, self.at)
        if match is None:
            if self.at >= len(self.text):
                raise _EndsEarly
            raise self.beyond("a value should stand here")
        if match.end() == len(self.text) and match[0] not in ("true", "false", "null"):
            raise _EndsEarly
        try:
            value = json.loads(match[0])
        except ValueError:
            raise self.beyond("a text without quotes stands here") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise self.beyond("a number stands here that JSON does not have")
        self.at = match.end()
        return value

    def left_out(self, path: tuple[str, ...]) -> None:
        self.ended = True
        place = ".".join(path) or "the settings"
        self.note(f"the file ends early; the last entry of {place} was incomplete and left out")

    def note(self, what: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(f"line {self.line()}: {what}")

    def beyond(self, what: str) -> BeyondRepair:
        return BeyondRepair(f"line {self.line()}: {what}")

    def line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1
