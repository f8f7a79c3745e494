"""An event as it goes over the wire, and which events a listener wants."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from fastapi.sse import format_sse_event

from postroom.errors import InvalidField

_encode = msgspec.json.Encoder().encode


LAST_PART = 1_000_000


class StreamPosition(msgspec.Struct, frozen=True, order=True, gc=False):
    """A place in the stream: the number of a ledger event, and which of the events made from it."""

    seq: int
    part: int = 0

    def __str__(self) -> str:
        return str(self.seq) if self.part == LAST_PART else f"{self.seq}.{self.part}"


def place(text: str, field: str) -> StreamPosition:
    """`123` is after all that event 123 led to, `123.1` after its second part."""
    seq, dot, part = text.strip().partition(".")
    if not (_is_number(seq) and (not dot or _is_number(part))):
        raise InvalidField(field, "is no id of an event of this stream")
    return StreamPosition(int(seq), int(part) if dot else LAST_PART)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 15


class Frame(msgspec.Struct, frozen=True, gc=False):
    at: StreamPosition
    name: str
    agents: frozenset[str]
    team: str | None
    wire: bytes


_AGENT_FIELDS = ("agent", "agentId", "fromAgent", "toAgent")


def frame(at: StreamPosition, name: str, data: Mapping[str, Any]) -> Frame:
    agents = frozenset(value for field in _AGENT_FIELDS if isinstance(value := data.get(field), str))
    wire = format_sse_event(event=name, data_str=_encode(data).decode(), id=str(at))
    return Frame(at, name, agents, data.get("teamId"), wire)


class EventFilter(msgspec.Struct, frozen=True):
    """Everything, unless something is named; then all that is named must fit."""

    types: frozenset[str] = frozenset()
    agents: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()

    def __call__(self, frame: Frame) -> bool:
        if self.types and frame.name not in self.types:
            return False
        if self.agents and not self.agents & frame.agents:
            return False
        return not self.teams or frame.team in self.teams

    @property
    def everything(self) -> bool:
        return not (self.types or self.agents or self.teams)


def words(given: Sequence[str] | None) -> frozenset[str]:
    """`?type=a,b&type=c`."""
    return frozenset(word.strip() for text in given or () for word in text.split(",") if word.strip())
