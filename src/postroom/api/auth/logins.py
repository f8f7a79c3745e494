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
from postroom.api.auth.record_document import RecordDocument
from postroom.api.auth.record_file import RecordFile, Records
from postroom.clock import SECOND, Clock
from postroom.errors import NotFound
from postroom.runtime import Room
from postroom.services import callers
from postroom.services.callers import Caller, CallerKind, PersonRole

COOKIE = "postroom_session"
SESSION_S = 7 * 24 * 3600
LINK_S = 15 * 60
MOST_LINKS = 100
LINKS = "login_links"
SESSIONS = "login_sessions"
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
    def __init__(
        self, owner: OwnerToken, clock: Clock, links: Records[Invitation], sessions: Records[KnownSession]
    ) -> None:
        """`links` that log in, and `sessions` with those that were ended, as all API processes know them."""
        self._key = owner.signing_key
        self._clock = clock
        self._links = links
        self._sessions = sessions

    @classmethod
    def in_file(cls, owner: OwnerToken, clock: Clock, file: Path | None = None) -> "Logins":
        """Of a home, or without a file of this process alone; links are beside the sessions."""
        links = RecordFile(file and file.with_name(f"links-{file.name}"), Invitation)
        return cls(owner, clock, links, RecordFile(file, KnownSession))

    @classmethod
    def in_store(cls, owner: OwnerToken, clock: Clock, room: Room) -> "Logins":
        """Of all hosts of an office."""
        links = RecordDocument(room, LINKS, Invitation)
        return cls(owner, clock, links, RecordDocument(room, SESSIONS, KnownSession))

    async def new_link(self, role: PersonRole | None = None, person: str = "") -> str:
        """A code that logs in once, within a quarter of an hour: the owner, or a person with a role."""
        now = self._clock.now()
        code = secrets.token_urlsafe(32)

        def add(links: dict[str, Invitation]) -> None:
            for each in [digest for digest, link in links.items() if link.ends_at <= now]:
                del links[each]
            while len(links) >= MOST_LINKS:
                del links[next(iter(links))]
            links[_digest(code)] = Invitation(now + LINK_S * SECOND, role, person)

        await self._links.change(add)
        return code

    async def redeem(self, code: str) -> "Invitation | None":
        """Once; None for a code that was used before, or is too old."""
        digest = _digest(code)
        if digest not in await self._links.read():
            return None
        link = await self._links.change(lambda links: links.pop(digest, None))
        return link if link is not None and link.ends_at > self._clock.now() else None

    async def begin(self, role: PersonRole | None = None, person: str = "") -> str:
        """The value of a new session's cookie. Who it is stands in what is signed."""
        ends_at = self._clock.now() // SECOND + SESSION_S
        name = secrets.token_urlsafe(18)
        await self._learn(name, ends_at, role, person)
        body = f"{name}.{ends_at}"
        if role is not None:
            body += f".{role}.{person.encode().hex()}"
        return f"{body}.{self._sign('session', body)}"

    async def list_sessions(self) -> dict[str, KnownSession]:
        return self._standing(await self._sessions.read())

    async def end(self, name: str) -> None:
        """Its cookie is worth nothing from now on, wherever it is."""

        def end(sessions: dict[str, KnownSession]) -> None:
            if name not in self._standing(sessions):
                raise SessionNotFound(name=name)
            sessions[name].is_ended = True

        await self._sessions.change(end)

    async def end_others(self, name: str) -> int:
        """All but this one; how many there were."""

        def end(sessions: dict[str, KnownSession]) -> int:
            others = [each for each in self._standing(sessions) if each != name]
            for each in others:
                sessions[each].is_ended = True
            return len(others)

        return await self._sessions.change(end)

    async def adopt(self, file: Path) -> None:
        """What a home knew of sessions before they were in the store: one that was ended stays so."""
        found = await RecordFile(file, KnownSession).read()

        def add(sessions: dict[str, KnownSession]) -> None:
            for name, session in found.items():
                if session.ends_at > self._clock.now() // SECOND:
                    known = sessions.setdefault(name, session)
                    known.is_ended |= session.is_ended

        if found:
            await self._sessions.change(add)

    def _standing(self, sessions: dict[str, KnownSession]) -> dict[str, KnownSession]:
        now = self._clock.now() // SECOND
        return {name: each for name, each in sessions.items() if not each.is_ended and each.ends_at > now}

    async def _learn(self, name: str, ends_at: int, role: PersonRole | None, person: str) -> None:
        now = self._clock.now() // SECOND

        def add(sessions: dict[str, KnownSession]) -> None:
            for each in [known for known, session in sessions.items() if session.ends_at <= now]:
                del sessions[each]
            sessions.setdefault(name, KnownSession(now, ends_at, role=role or "owner", person=person))

        await self._sessions.change(add)

    async def session(self, cookie_header: str) -> LoginSession | None:
        value = _cookie(cookie_header)
        body, dot, signature = value.rpartition(".")
        if not dot or not hmac.compare_digest(signature.encode(), self._sign("session", body).encode()):
            return None
        name, end, *who = body.split(".")
        if int(end) <= self._clock.now() // SECOND:
            return None
        role, person = (PersonRole(who[0]), bytes.fromhex(who[1]).decode()) if who else (None, "")
        known = (await self._sessions.read()).get(name)
        if known is None:
            await self._learn(name, int(end), role, person)
        elif known.is_ended:
            return None
        return LoginSession(name, int(end), self._sign("csrf", body), role, person)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(), hashlib.sha256).hexdigest()


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogateescape")).hexdigest()


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
