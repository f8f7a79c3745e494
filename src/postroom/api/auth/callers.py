"""Who asks: the owner, a browser the owner logged in with, a program of this machine, or a key's holder."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any

import msgspec


class Kind(StrEnum):
    OWNER = "owner"
    BROWSER = "browser"
    LOCAL = "local"
    KEY = "key"
    AGENT = "agent"


class AuthenticatedCaller(msgspec.Struct, frozen=True):
    """`key` is what the key's own check gave, for the part of the API that knows its rights. `turn` is the
    message an agent works on."""

    kind: Kind
    name: str
    key: Any = None
    turn: str = ""

    @property
    def is_owner(self) -> bool:
        return self.kind not in (Kind.KEY, Kind.AGENT)


CheckKey = Callable[[str], Awaitable[AuthenticatedCaller | None]]
"""Given a bearer token that is not the owner's: whose key it is, if it is one and still valid."""


async def no_keys(token: str) -> AuthenticatedCaller | None:
    return None
