"""What a chat has chosen: what happens while its agent is busy, and how much it hears of the work."""

from enum import StrEnum

import msgspec

from postroom.kernel import commands as c
from postroom.office.ports import RoomPort

KIND = "chat.preferences"


class BusyMode(StrEnum):
    """What becomes of a message while the agent works for the same person: a turn of its own after that, a
    place in the next one, the same turn anew with both, or the turn that goes on."""

    QUEUE = "queue"
    COLLECT = "collect"
    INTERRUPT = "interrupt"
    STEER = "steer"


class NoiseLevel(StrEnum):
    """What a person hears besides the answer."""

    FINAL = "final"
    PROGRESS = "progress"
    STEPS = "steps"


class ChatPreferences(msgspec.Struct, frozen=True, kw_only=True):
    """None: as the channel does it."""

    busy: BusyMode | None = None
    noise: NoiseLevel | None = None


async def read_preferences(room: RoomPort, channel: str, chat: str) -> ChatPreferences:
    document = await room.document(KIND, _key(channel, chat))
    return ChatPreferences() if document is None else msgspec.convert(document.data, ChatPreferences)


def put_preferences(channel: str, chat: str, wanted: ChatPreferences, actor: str) -> c.Command:
    data = msgspec.to_builtins(wanted)
    return c.PutDocument(kind=KIND, key=_key(channel, chat), data=data, history=False, actor=actor)


def _key(channel: str, chat: str) -> str:
    return f"{channel}/{chat}"[:400]
