"""One visit of a page: who asks, what for, and the services that answer. Pages know nothing else."""

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import msgspec
from htpy import Node
from starlette.requests import Request

from postroom.api.auth.logins import Logins
from postroom.clock import Clock
from postroom.services.callers import Caller
from postroom.services.server import ServerServices
from postroom.settings.model import Settings


@dataclass(frozen=True, kw_only=True)
class PortalVisit:
    request: Request
    services: ServerServices
    clock: Clock
    settings: Settings
    logins: Logins

    @property
    def role(self) -> str:
        """As the page knows them: owner, member or viewer."""
        if self.caller.is_owner:
            return "owner"
        return "member" if self.caller.takes_part else "viewer"

    @property
    def caller(self) -> Caller:
        """For what is only looked at: the audit is for acts, and pages look again with every change."""
        return self.request.state.caller

    @property
    def acting(self) -> Caller:
        """For what changes something."""
        return self.caller.with_request(str(uuid.uuid4()))

    @property
    def now(self) -> int:
        return self.clock.now()

    def query(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default).strip()[:500]

    def number(self, name: str, default: int = 0) -> int:
        text = self.query(name)
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else default

    def path(self, name: str) -> str:
        return self.request.path_params[name]


class SentForm:
    """The fields of a form as a browser sends it."""

    def __init__(self, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        self._fields = parse_qs(text, keep_blank_values=True, max_num_fields=5000)

    def text(self, name: str, default: str = "") -> str:
        return self._fields.get(name, [default])[0].replace("\r\n", "\n")

    def word(self, name: str, default: str = "") -> str:
        return self.text(name, default).strip()

    def every(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def items(self) -> dict[str, str]:
        return {name: self.text(name) for name in self._fields}


@dataclass(frozen=True, kw_only=True)
class PageView:
    """What a page shows. `way` is the entry of the menu it belongs to; `crumb` leads up."""

    title: str
    way: str
    body: Node
    lead: Node = None
    actions: Node = None
    side: Node = None
    crumb: tuple[str, str] | None = None
    bare: bool = False
    """It lays out the whole space itself."""
    wide: bool = False
    status: int = 200
    file: bytes | None = None
    """Instead of a page: a JSON document to keep."""


class ActResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an act went: `said` to the person, and where `to` go next. A `secret` is shown this once, with a
    `picture` of it (SVG) for a phone."""

    said: str = ""
    to: str = ""
    secret: str = ""
    picture: str = ""


ShowPage = Callable[[PortalVisit], Awaitable[PageView]]
CarryOut = Callable[[PortalVisit, SentForm], Awaitable[ActResult]]


@dataclass(frozen=True)
class PortalPart:
    """Pages that belong together, by path, and what can be done on them."""

    pages: Mapping[str, ShowPage]
    acts: Mapping[str, CarryOut] = field(default_factory=dict)
