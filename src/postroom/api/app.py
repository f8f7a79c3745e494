"""The whole API as one application: routes, errors, live events, and the authentication before all."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from fastapi import APIRouter, FastAPI
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom import __version__, portal
from postroom.api import error_responses, examples, health, hooks, internal, metrics
from postroom.api.activity_metrics import ActivityMetrics
from postroom.api.auth.auth_middleware import TOOLS, AuthMiddleware
from postroom.api.auth.logins import Logins
from postroom.api.auth.owner_token import OwnerToken
from postroom.api.auth.refusal_log import RefusalLog
from postroom.api.dependencies import Dependencies
from postroom.api.mcp.lazy import LazyTools
from postroom.api.office import (
    agents,
    conversations,
    guards,
    imports,
    insights,
    messages,
    pairing,
    plugins,
    queue,
    responses,
    schedules,
    services,
    settings,
    tasks,
    teams,
    unconfirmed,
)
from postroom.api.office.fast_messages import FastMessages
from postroom.api.request_metrics import RequestMetrics
from postroom.api.responses import Json, error_body
from postroom.api.stream import route
from postroom.api.stream.tail import EventTail
from postroom.kernel.states import State

ABOUT = """Everything the office can do. Send the token from `POSTROOM_HOME/token` as
`Authorization: Bearer …`. Errors have a sentence in `error` and a stable `code`."""


PARTS = (
    health,
    messages,
    responses,
    queue,
    agents,
    teams,
    settings,
    tasks,
    schedules,
    services,
    pairing,
    unconfirmed,
    hooks,
    guards,
    conversations,
    internal,
    imports,
    insights,
    plugins,
)


def create_app(
    deps: Dependencies,
    *,
    more: Sequence[APIRouter] = (),
    aliases: Mapping[str, str] | None = None,
    tools: bool = True,
    programs: bool = True,
) -> "OfficeApi":
    """`more` are routers of other parts, already put together, some of them also reached under another
    beginning of the path, by `aliases`; `tools` are those at `/mcp`. Without `programs` it is for people: the
    portal, and signs of life."""

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            if served is not None:
                await stack.enter_async_context(served.running())
            if deps.room.is_shared and deps.sessions_file is not None:
                await logins.adopt(deps.sessions_file)
            await tail.open()
            await activity.begin()
            sharing = asyncio.create_task(shared_counts.run()) if programs and deps.room.is_shared else None
            try:
                yield
            finally:
                if sharing is not None:
                    sharing.cancel()
                    await asyncio.gather(sharing, return_exceptions=True)
                await tail.close()
                await audit.settled()

    app = FastAPI(
        title="Postroom",
        version=__version__,
        description=ABOUT,
        lifespan=life,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    error_responses.register(app)
    owner = OwnerToken(deps.token)
    if deps.room.is_shared:
        logins = Logins.in_store(owner, deps.clock, deps.room)
    else:
        logins = Logins.in_file(owner, deps.clock, deps.sessions_file)
    audit = RefusalLog(deps.room, deps.clock, deps.redact)
    tail = EventTail(deps.room, deps.translate)
    for router in more:  # they know at once which paths are not theirs
        app.include_router(router)
    for part in PARTS if programs else (health,):
        app.include_router(part.routes(deps))
    if programs:
        app.include_router(route.routes(deps, tail))
    counted = CollectorRegistry()
    activity = ActivityMetrics(deps.room, counted)
    app.include_router(metrics.routes(deps, lambda: tail.listeners, activity, counted))
    served = LazyTools(lambda: _tools(deps)) if tools and programs and find_spec("mcp") else None
    routed = _Split(app, served, aliases or {})
    keeper = AuthMiddleware(
        FastMessages(deps.services.conversations, routed) if programs else routed,
        settings=lambda: deps.control.settings,
        owner=owner,
        logins=logins,
        audit=audit,
        clock=deps.clock,
        check_key=deps.check_key,
        is_at_work=lambda message_id: _is_at_work(deps, message_id),
    )
    shared_counts = deps.services.authentication.shared_counts
    shared_counts.add(keeper)
    portal.register(app, deps, logins, keeper.failed_login)
    examples.show(app)
    return OfficeApi(RequestMetrics(keeper, counted), tail, deps.closing)


async def _is_at_work(deps: Dependencies, message_id: str) -> bool:
    """Whether somebody works on the message now."""
    found = await deps.room.look(lambda reader: reader.get(message_id), quick=True)
    return found is not None and found.row.state == State.CLAIMED


def _tools(deps: Dependencies) -> tuple[ASGIApp, contextlib.AbstractAsyncContextManager[None]]:
    from postroom.api.mcp.server import running, tool_app

    app = tool_app(deps)
    return app, running(app)


@dataclass(frozen=True)
class _Split:
    """Tools to the one side, everything else to the other."""

    app: ASGIApp
    tools: ASGIApp | None
    aliases: Mapping[str, str] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] != TOOLS or self.tools is None:
            await _once(self.app, self._plain(scope), receive, send)
        elif scope["method"] == "POST":
            await _once(self.tools, scope, receive, send)
        else:
            # We begin nothing by ourselves, so there is no stream to listen to, and no session to end.
            body = error_body(TOOLS, "METHOD_NOT_ALLOWED", "Method not allowed")
            await Json(body, status_code=405, headers={"allow": "POST"})(scope, receive, send)

    def _plain(self, scope: Scope) -> Scope:
        """Routes are made once; who comes by another name is led to them."""
        for alias, meant in self.aliases.items():
            if scope["path"].startswith(f"{alias}/"):
                raw: bytes = scope.get("raw_path") or scope["path"].encode()
                path = meant + scope["path"].removeprefix(alias)
                return {**scope, "path": path, "raw_path": meant.encode() + raw.removeprefix(alias.encode())}
        return scope


async def _once(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """The framework raises once more what it has answered and logged; the connection is none the worse."""
    answered = False

    async def watched(message: Message) -> None:
        nonlocal answered
        await send(message)
        answered = message["type"] == "http.response.body" and not message.get("more_body")

    try:
        await app(scope, receive, watched)
    except Exception:
        if not answered:
            raise


@dataclass(frozen=True)
class OfficeApi:
    """The application for a server."""

    application: ASGIApp
    tail: EventTail
    closing: asyncio.Event

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)

    async def end_streams(self) -> None:
        """Before the server closes: it waits for those who listen or wait, and they would do so for long."""
        self.closing.set()
        await self.tail.close()
