"""What the API stands on, handed in by whoever puts the process together."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from postroom.api.auth.callers import CheckKey, no_keys
from postroom.api.stream.tail import Translate, nothing
from postroom.clock import Clock
from postroom.runtime import Room
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeControl
from postroom.services.server import ServerServices


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    room: Room
    services: ServerServices
    control: OfficeControl
    clock: Clock
    token: str
    started_at: int = 0
    """When the server started, in microseconds."""
    check_key: CheckKey = no_keys
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server begins to stop: then nobody waits any more."""
    redact: Callable[[str], str] = str
    """Takes secrets out of what is kept of a refused request."""
    home: Path | None = None
    """Where the token lies, as the login page tells."""
    sessions_file: Path | None = None
    """Where it is kept which browsers are logged in."""
    translate: Translate = nothing
    """What listeners are told of a ledger event."""


def caller_of(request: Request) -> Caller:
    return request.state.caller


Asked = Annotated[Caller, Depends(caller_of)]
"""Who asks, as the authentication has found out."""
