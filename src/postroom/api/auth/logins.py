"""Logging in with a browser: a link that works once, and the cookie it is exchanged for.

The cookie is signed with a key made from the owner's token, so it outlives a restart and ends with the token.
"""

import hashlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

import msgspec

from postroom.api.auth.owner_token import OwnerToken
from postroom.clock import SECOND, Clock
from postroom.errors import NotFound
from postroom.services import callers
from postroom.services.callers import Caller, CallerKind, PersonRole
from postroom.settings import durable

COOKIE = "postroom_session"
SESSION_S = 7 * 24 * 3600
LINK_S = 15 * 60
MOST_LINKS = 100
PERSON_NAME = r"\w[\w .-]{0,39}"


class LoginSession(msgspec.Struct, frozen=True):
    """`role` and `person` of somebody whom the owner let in; neither of the owner."""

    name: str
    ends_at: int
    csrf: str
    role: PersonRole | None = None
    person: str = ""

    @property
    def caller(self) -> Caller:
        if self.role is None:
            return callers.owner(kind=CallerKind.BROWSER)
        return callers.person(self.person, self.role)


class KnownSession(msgspec.Struct):
    """Times are seconds. One that was seen but not begun here is known from then on."""

    began_at: int
    ends_at: int
    is_ended: bool = False
    role: str = "owner"
    person: str = ""


class Invitation(msgspec.Struct, frozen=True):
    """Whom a link logs in: the owner, or a person with a role."""

    ends_at: int
    role: PersonRole | None = None
    person: str = ""


class SessionNotFound(NotFound):
    """There is no login {name}. See GET /api/sessions."""

    code = "SESSION_NOT_FOUND"


class Logins:
    def __init__(self, owner: OwnerToken, clock: Clock, file: Path | None = None) -> None:
        """`file`: where it is kept which sessions there are and which were ended."""
        self._key = owner.signing_key
        self._clock = clock
        self._links: dict[bytes, Invitation] = {}
        self._file = file
        self._sessions = _read(file)

    def new_link(self, role: PersonRole | None = None, person: str = "") -> str:
        """A code that logs in once, within a quarter of an hour: the owner, or a person with a role."""
        now = self._clock.now()
        self._links = {code: link for code, link in self._links.items() if link.ends_at > now}
        while len(self._links) >= MOST_LINKS:
            del self._links[next(iter(self._links))]
        code = secrets.token_urlsafe(32)
        self._links[_digest(code)] = Invitation(now + LINK_S * SECOND, role, person)
        return code

    def redeem(self, code: str) -> "Invitation | None":
        """Once; None for a code that was used before, or is too old."""
        link = self._links.pop(_digest(code), None)
        return link if link is not None and link.ends_at > self._clock.now() else None

    def begin(self, role: PersonRole | None = None, person: str = "") -> str:
        """The value of a new session's cookie. Who it is stands in what is signed."""
        ends_at = self._clock.now() // SECOND + SESSION_S
        name = secrets.token_urlsafe(18)
        self._learn(name, ends_at, role, person)
        body = f"{name}.{ends_at}"
        if role is not None:
            body += f".{role}.{person.encode().hex()}"
        return f"{body}.{self._sign('session', body)}"

    def list_sessions(self) -> dict[str, KnownSession]:
        now = self._clock.now() // SECOND
        return {
            name: each for name, each in self._sessions.items() if not each.is_ended and each.ends_at > now
        }

    def end(self, name: str) -> None:
        """Its cookie is worth nothing from now on, wherever it is."""
        if name not in self.list_sessions():
            raise SessionNotFound(name=name)
        self._sessions[name].is_ended = True
        self._save()

    def end_others(self, name: str) -> int:
        """All but this one; how many there were."""
        others = [each for each in self.list_sessions() if each != name]
        for each in others:
            self._sessions[each].is_ended = True
        self._save()
        return len(others)

    def _learn(self, name: str, ends_at: int, role: PersonRole | None, person: str) -> None:
        now = self._clock.now() // SECOND
        self._sessions = {known: each for known, each in self._sessions.items() if each.ends_at > now}
        self._sessions[name] = KnownSession(now, ends_at, role=role or "owner", person=person)
        self._save()

    def _save(self) -> None:
        if self._file is not None:
            durable.replace(self._file, msgspec.json.encode(self._sessions))

    def session(self, cookie_header: str) -> LoginSession | None:
        value = _cookie(cookie_header)
        body, dot, signature = value.rpartition(".")
        if not dot or not hmac.compare_digest(signature.encode(), self._sign("session", body).encode()):
            return None
        name, end, *who = body.split(".")
        if int(end) <= self._clock.now() // SECOND:
            return None
        role, person = (PersonRole(who[0]), bytes.fromhex(who[1]).decode()) if who else (None, "")
        known = self._sessions.get(name)
        if known is None:
            self._learn(name, int(end), role, person)
        elif known.is_ended:
            return None
        return LoginSession(name, int(end), self._sign("csrf", body), role, person)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()


def _read(file: Path | None) -> dict[str, KnownSession]:
    """A file that cannot be read ends nothing: what was signed still holds."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, KnownSession]) if file else {}
    except (OSError, msgspec.DecodeError):
        return {}


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).digest()


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
