"""Every request is checked here first, streams included; nothing behind this is reached unchecked.

In this order: the host's name, the page that asks, preflights, who asks, forged requests, the size.
"""

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom.api.auth.agent_tokens import AgentTokens
from postroom.api.auth.callers import CheckKey, no_keys
from postroom.api.auth.errors import (
    AgentNotHere,
    CsrfRefused,
    HeadersTooLarge,
    HostRefused,
    KeyNotHere,
    OriginRefused,
    RequestTooLarge,
    TooManyAttempts,
    TooManyRequests,
    TurnEnded,
    Unauthorized,
    WrongToken,
)
from postroom.api.auth.headers import preflight_headers, with_headers
from postroom.api.auth.hosts import AllowedHosts, is_loopback
from postroom.api.auth.logins import Logins
from postroom.api.auth.owner_token import OwnerToken
from postroom.api.auth.rate_limit import RateLimiter
from postroom.api.auth.refusal_log import RefusalLog
from postroom.api.responses import failure, is_queue_service
from postroom.clock import Clock
from postroom.errors import PostroomError
from postroom.services import callers
from postroom.services.callers import Caller, CallerKind
from postroom.settings.model import Settings

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# Reachable without a token; the login page because one logs in there.
PROBES = frozenset({"/healthz", "/readyz"})
OPEN = PROBES | {"/login", "/login.css", "/portal/icon.svg"}
# What platforms push; each channel knows its own by their signature.
HOOKS = "/hooks/"
TOOLS = "/mcp"
STREAM = "/api/events/stream"
# Files are larger than requests; whoever takes them counts their bytes.
UPLOADS = "/portal/files"
# A stream has no end, and a link that logs in would be used up.
NOT_LOOKED_AT = frozenset({STREAM, "/login"})
MOST_HEADER_BYTES = 64 * 1024
# A person may come here by a link on a page of others.
ENTRANCES = frozenset({"/", "/login"})
FAILURES_PER_MINUTE = 10
_ABSENT: dict[str, str] = dict.fromkeys(
    (
        "host",
        "origin",
        "authorization",
        "cookie",
        "content-length",
        "transfer-encoding",
        "sec-fetch-site",
        "sec-fetch-mode",
        "x-csrf-token",
        "x-forwarded-for",
        "forwarded",
        "accept",
        "access-control-request-method",
        "access-control-request-headers",
        "access-control-request-private-network",
    ),
    "",
)
_WANTED = {name.encode(): name for name in _ABSENT}


class AuthMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        *,
        settings: Callable[[], Settings],
        owner: OwnerToken,
        logins: Logins,
        audit: RefusalLog,
        clock: Clock,
        agents: AgentTokens | None = None,
        check_key: CheckKey = no_keys,
        is_at_work: Callable[[str], Awaitable[bool]] | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._owner = owner
        self._logins = logins
        self._audit = audit
        self._check_key = check_key
        self._is_at_work = is_at_work
        self._agents = agents or AgentTokens(owner, clock)
        self._clock = clock
        self._failures = RateLimiter("failures", clock, FAILURES_PER_MINUTE)
        self._known = settings()
        self._learn(self._known)

    def _learn(self, settings: Settings) -> None:
        limits = settings.limits
        self._known, self._names = settings, AllowedHosts(settings.api)
        self._pace = RateLimiter("pace", self._clock, limits.requests_per_minute)
        most = limits.owner_requests_per_minute
        self._owners_pace = RateLimiter("owner", self._clock, most) if most is not None else None

    def counts(self) -> dict[str, int]:
        """What its limits have counted, for other processes."""
        return {name: count for each in self._limiters() for name, count in each.counts().items()}

    def learn(self, others: Mapping[str, int]) -> None:
        for each in self._limiters():
            each.learn(others)

    def _limiters(self) -> list[RateLimiter]:
        limiters = [self._failures, self._pace]
        return limiters if self._owners_pace is None else [*limiters, self._owners_pace]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        settings = self._settings()
        if settings is not self._known:
            self._learn(settings)
        attempt = AuthAttempt(scope)
        send = with_headers(
            send, attempt.origin if attempt.origin and self._names.admits(attempt.origin) else None
        )
        try:
            answer = await self._judge(attempt, settings)
        except PostroomError as error:
            client = attempt.client or "?"
            self._audit.refused(error.code, client, attempt.method, attempt.path)
            answer = _refusal(attempt, error)
        if answer is not None:
            await answer(scope, receive, send)
            return
        limits = settings.limits
        limit = limits.file_bytes if attempt.path == UPLOADS else limits.request_bytes
        length = attempt.headers["content-length"]
        if length and not (length.isdecimal() and int(length) <= limit):
            answer = failure(attempt.path, RequestTooLarge(limit=limit))
            answer.headers["connection"] = "close"
            await answer(scope, receive, send)
            return
        if attempt.method == "HEAD" and attempt.path not in NOT_LOOKED_AT:
            # Answered like GET; the server itself leaves the body out.
            scope = {**scope, "method": "GET"}
        # Of a body that says how long it is, the server takes no more; one in chunks can be of any length.
        is_bounded = length and not attempt.headers["transfer-encoding"]
        await self._app(scope, receive if is_bounded else _measured(receive, limit), send)

    async def _judge(self, attempt: "AuthAttempt", settings: Settings) -> Response | None:
        """The answer when the way ends here; None when it leads on."""
        if attempt.header_bytes > MOST_HEADER_BYTES:
            raise HeadersTooLarge(limit=MOST_HEADER_BYTES)
        host = attempt.headers["host"]
        if "host" in attempt.repeated or not self._names.knows(host):
            raise HostRefused(host=host[:100])
        own = bool(attempt.origin) and self._names.is_own(attempt.origin, host)
        if attempt.origin and not own and not self._names.admits(attempt.origin):
            raise OriginRefused(origin=attempt.origin[:100])
        if not attempt.origin and attempt.headers["sec-fetch-site"] in ("cross-site", "same-site"):
            # Images and links of other pages send no origin; links of people to our first page are welcome.
            follows_link = attempt.method == "GET" and attempt.headers["sec-fetch-mode"] == "navigate"
            if not (follows_link and attempt.path in ENTRANCES):
                raise OriginRefused(origin="another site")
        if attempt.method == "OPTIONS":
            return Response(status_code=204, headers=preflight_headers(attempt))
        attempt.scope.setdefault("state", {})["csrf"] = ""
        if attempt.path.startswith(HOOKS):
            attempt.scope["state"]["caller"] = None
            return None
        caller = await self._who(attempt, settings, own)
        if attempt.path not in PROBES:
            self._count(attempt, caller)
        if caller is None and attempt.path not in OPEN and not is_queue_service(attempt.path):
            raise Unauthorized
        if caller is not None and caller.kind is CallerKind.KEY and not _is_for_keys(attempt.path):
            raise KeyNotHere
        if caller is not None and caller.kind is CallerKind.AGENT and attempt.path != TOOLS:
            raise AgentNotHere(agent=caller.name)
        attempt.scope["state"]["caller"] = caller
        return None

    def _count(self, attempt: "AuthAttempt", caller: Caller | None) -> None:
        """The owner's own programs all together, if they have a measure; others each by itself."""
        if caller is not None and caller.kind is CallerKind.KEY and attempt.path != TOOLS:
            return  # the work queue has measures of its own
        if caller is not None and caller.is_owner:
            pace, who = self._owners_pace, "owner"
        else:
            pace, who = self._pace, f"{caller.kind}:{caller.name}" if caller else f"address:{attempt.client}"
        if pace is None:
            return
        if wait := pace.wait(who):
            raise TooManyRequests(limit=pace.per_minute, seconds=wait)
        pace.spend(who)

    async def _who(self, attempt: "AuthAttempt", settings: Settings, own: bool) -> Caller | None:
        if attempt.headers["authorization"]:
            return await self._by_token(attempt)
        cookie = attempt.headers["cookie"]
        session = await self._logins.session(cookie) if cookie else None
        if session is not None:
            attempt.scope["state"]["csrf"] = session.csrf
            if attempt.method not in SAFE and not self._is_own_page(attempt, session.csrf, own):
                raise CsrfRefused
            return session.caller
        if settings.api.auth == "loopback" and is_loopback(attempt.client) and not attempt.is_forwarded:
            return callers.owner(kind=CallerKind.LOCAL, name="local")
        return None

    async def _by_token(self, attempt: "AuthAttempt") -> Caller | None:
        scheme, _, token = attempt.headers["authorization"].partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and token and "authorization" not in attempt.repeated:
            if self._owner.matches(token):
                return callers.owner()
            if (agent := self._agents.caller(token)) is not None:
                if agent.turn and self._is_at_work and not await self._is_at_work(agent.turn):
                    raise TurnEnded(agent=agent.name)
                return agent
            if (caller := await self._check_key(token)) is not None:
                return caller
        client = attempt.client or "?"
        if wait := self._failures.wait(client):
            raise TooManyAttempts(seconds=wait)
        self._failures.spend(client)
        if is_queue_service(attempt.path):
            return None  # its own gate says more precisely what is wrong with a key
        raise WrongToken

    def _is_own_page(self, attempt: "AuthAttempt", csrf: str, own: bool) -> bool:
        """A browser sends the cookie by itself; only our own pages know the word that goes with it."""
        return own and hmac.compare_digest(attempt.headers["x-csrf-token"].encode(), csrf.encode())

    def failed_login(self, client: str) -> None:
        """Counts against the same measure as wrong tokens."""
        if wait := self._failures.wait(client):
            raise TooManyAttempts(seconds=wait)
        self._failures.spend(client)


class AuthAttempt:
    """A request as authentication sees it: where to, from where, and the few headers that matter."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.client: str | None = scope["client"][0] if scope.get("client") else None
        self.headers = dict(_ABSENT)
        """Empty those that were not sent."""
        self.repeated: set[str] = set()
        sent: set[str] = set()
        self.header_bytes = 0
        for name, value in scope["headers"]:
            self.header_bytes += len(name) + len(value)
            if (key := _WANTED.get(name)) is not None:
                if key in sent:
                    self.repeated.add(key)
                sent.add(key)
                self.headers[key] = value.decode("latin-1")
        self.origin = self.headers["origin"]

    @property
    def is_forwarded(self) -> bool:
        """Somebody stands between: then the address says nothing about who asks."""
        return bool(self.headers["x-forwarded-for"] or self.headers["forwarded"])

    @property
    def wants_page(self) -> bool:
        return self.method == "GET" and "text/html" in self.headers["accept"]


def _is_for_keys(path: str) -> bool:
    return path == TOOLS or is_queue_service(path)


def _refusal(attempt: AuthAttempt, error: PostroomError) -> Response:
    if isinstance(error, Unauthorized) and attempt.wants_page:
        return RedirectResponse("/login", status_code=303)
    return failure(attempt.path, error)


def _measured(receive: Receive, limit: int) -> Receive:
    """Bodies that do not say how long they are get counted as they come."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message: Any = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > limit:
                raise RequestTooLarge(limit=limit)
        return message

    return counted
