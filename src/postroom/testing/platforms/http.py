"""A fake platform over HTTP: routes, faults in the middle of calls, and loud refusals.

Subclasses say which calls there are and how the platform words an error; they never answer a call they do not
understand whole.
"""

import asyncio
import json
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from aiohttp import web

from postroom.testing.platforms.base import LOOPBACK, FakePlatform
from postroom.testing.platforms.faults import CallHeld, ConnectionDropped, RateLimited, ServerFailed
from postroom.testing.platforms.transcript import Attachment

MAX_BODY = 128 * 1024 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Refusal(Exception):
    """The platform's own error answer: nothing was done, and the client is told so."""

    def __init__(self, status: int, message: str, **details: Any) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.details = details


class NotImplementedByFake(Exception):
    """The client asks for what this fake does not implement."""


class CallParameters:
    """The parameters of one call. Whatever is not read was not understood, and `check_read` says so."""

    def __init__(self, values: Mapping[str, Any], files: Mapping[str, Attachment] | None = None) -> None:
        self._values = dict(values)
        self.files = dict(files or {})
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def get(self, name: str, default: Any = None) -> Any:
        self._read.add(name)
        value = self._values.get(name)
        return default if value is None else value

    def text(self, name: str, default: str = "") -> str:
        return str(self.get(name, default))

    def number(self, name: str, default: int = 0) -> int:
        return int(self.get(name, default))

    def flag(self, name: str) -> bool:
        """False, absent, and the texts that forms send for it are all false."""
        value = self.get(name, False)
        return value.lower() in ("true", "1") if isinstance(value, str) else bool(value)

    def structure(self, name: str, default: Any = None) -> Any:
        """A nested value: as it is in a JSON body, or as JSON text in a form."""
        value = self.get(name)
        if isinstance(value, str) and value:
            return json.loads(value)
        return default if value is None else value

    def ignore(self, *names: str) -> None:
        """Parameters that change nothing a test could see."""
        self._read.update(names)

    def check_read(self, call: str) -> None:
        if unread := sorted(set(self._values) - self._read):
            raise NotImplementedByFake(f"{call} with the parameters {', '.join(unread)}")


class HttpPlatform(FakePlatform):
    """One aiohttp server on loopback."""

    _runner: web.AppRunner | None = None

    @abstractmethod
    def routes(self) -> Iterable[web.RouteDef]:
        """Every call this fake understands. A route's `name` is the call's name, for faults."""

    @abstractmethod
    def render_refusal(self, refusal: Refusal) -> web.Response:
        """An error in the platform's own words."""

    @abstractmethod
    def render_rate_limit(self, fault: RateLimited) -> web.Response:
        """«Too many requests» in the platform's own words."""

    def render_server_failure(self, fault: ServerFailed) -> web.Response:
        """A page of what stands before the platform: not the platform's JSON."""
        text = f"<html><body><h1>{fault.status} Server Error</h1></body></html>"
        return web.Response(status=fault.status, text=text, content_type="text/html")

    def name_call(self, request: web.Request) -> str:
        """The name of a call, for faults and failures."""
        name = request.match_info.route.name
        return name or f"{request.method} {request.path}"

    async def _open(self, port: int) -> int:
        app = web.Application(middlewares=[self._serve], client_max_size=MAX_BODY)
        app.add_routes(self.routes())
        app.router.add_route("*", "/{rest:.*}", self._refuse_unknown)
        # No access log and no waiting for clients at the end: a platform that goes away does not say goodbye.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, port, reuse_address=True)
        await site.start()
        return self._runner.addresses[0][1]

    async def _close(self) -> None:
        runner, self._runner = self._runner, None
        if runner is None:
            return
        for site in list(runner.sites):
            await site.stop()
        if runner.server is not None:
            for connection in list(runner.server.connections):
                if connection.transport is not None:
                    connection.transport.abort()
        await runner.cleanup()

    async def _refuse_unknown(self, request: web.Request) -> web.StreamResponse:
        raise NotImplementedByFake(f"{request.method} {request.path}")

    @web.middleware
    async def _serve(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        call = self.name_call(request)
        fault = self.faults.take(call, RateLimited, ServerFailed, ConnectionDropped, CallHeld)
        match fault:
            case RateLimited():
                return self.render_rate_limit(fault)
            case ServerFailed():
                return self.render_server_failure(fault)
            case ConnectionDropped(when="before"):
                return _hang_up(request)
            case CallHeld(when="before"):
                await fault.stop_here()
        response = await self._answer(call, request, handler)
        match fault:
            case ConnectionDropped(when="during"):
                return await _hang_up_halfway(request, response)
            case ConnectionDropped():
                return _hang_up(request)
            case CallHeld(when="after"):
                await fault.stop_here()
        return response

    async def _answer(self, call: str, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return self.render_refusal(refusal)
        except NotImplementedByFake as missing:
            self.record_failure(f"does not implement {missing}")
            return self.render_refusal(Refusal(501, f"The fake {self.name} does not implement {missing}"))
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception as error:
            self.record_failure(f"failed in {call}: {error!r}")
            return self.render_refusal(Refusal(500, f"The fake {self.name} failed: {error!r}"))


def answer_json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """JSON without a character set in its type: discord.py takes nothing else for JSON."""
    body = json.dumps(data, ensure_ascii=False).encode()
    return web.Response(
        body=body, status=status, headers={"Content-Type": "application/json", **(headers or {})}
    )


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _hang_up_halfway(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    body = response.body if isinstance(response, web.Response) else None
    if not isinstance(body, bytes):
        return _hang_up(request)
    partial = web.StreamResponse(status=response.status, headers={"Content-Type": response.content_type})
    partial.content_length = len(body)
    await partial.prepare(request)
    await partial.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return partial


async def read_parameters(request: web.Request) -> CallParameters:
    """Query, JSON, form and multipart bodies alike."""
    values: dict[str, Any] = dict(request.query)
    files: dict[str, Attachment] = {}
    if request.content_type == "application/json" and request.body_exists:
        values |= await request.json()
    elif request.content_type in ("multipart/form-data", "application/x-www-form-urlencoded"):
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                files[name] = Attachment(value.filename, value.file.read(), value.content_type)
            else:
                values[name] = value
    return CallParameters(values, files)
