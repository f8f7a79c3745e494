"""The service on a real socket, with callers of several tenants."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI

import postroom
from postroom import Room
from postroom.api.queue import router
from postroom.api.queue.router import PREFIXES
from postroom.clock import Clock
from postroom.services.container import Services
from postroom.webhooks.addresses import check_url, nowhere

OWNER = "the-token-of-the-house"


@dataclass
class Answer:
    """An answer as tests look at it."""

    status: int
    document: Any
    headers: httpx2.Headers

    @property
    def data(self) -> Any:
        assert self.status < 400, self.document
        return self.document["data"]

    @property
    def code(self) -> str:
        return self.document["error"]["code"]


@dataclass
class Caller:
    """Somebody with a token, who says verb, path and body."""

    client: httpx2.AsyncClient
    token: str
    prefix: str = "/v1"
    tenant: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    async def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> Answer:
        headers = dict(self.headers)
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        if self.tenant:
            headers["x-postroom-tenant"] = self.tenant
        answer = await self.client.request(
            method, self.prefix + path, json=body, params=query or None, headers=headers, timeout=120
        )
        return Answer(answer.status_code, answer.json() if answer.content else None, answer.headers)

    async def get(self, path: str, **query: Any) -> Any:
        return (await self("GET", path, **query)).data

    async def post(self, path: str, body: Any = None) -> Any:
        return (await self("POST", path, body)).data

    def with_token(self, token: str) -> "Caller":
        return Caller(self.client, token)


@dataclass
class Service:
    room: Room
    services: Services
    url: str
    owner: Caller
    app: FastAPI

    async def key(self, tenant: str = "default", **wanted: Any) -> Caller:
        """A key of a tenant; without more, one that may do everything."""
        wanted = {"name": "test", "role": "tenant_admin"} | wanted
        if "permissions" in wanted and wanted["role"] == "tenant_admin":
            wanted["role"] = None
        owner = Caller(self.owner.client, OWNER, tenant=tenant)
        made = (await owner("POST", "/api-keys", wanted)).data
        caller = self.owner.with_token(made["secret"])
        caller.headers = {"x-key-id": made["id"]}
        return caller


def _is_owner(token: str) -> bool:
    return token == OWNER


_made: list[tuple[Services, FastAPI]] = []


def _app(room: Room, **options: Any) -> tuple[Services, FastAPI]:
    """Putting an application together takes long, so one serves all tests, each with its own room."""
    inside = options.pop("inside", nowhere)
    options["check_address"] = lambda url: check_url(url, inside=inside())
    if not _made:
        services, app = Services(room, **options), FastAPI()
        for prefix in PREFIXES:
            app.include_router(router(services, prefix, _is_owner))
        _made.append((services, app))
    services, app = _made[0]
    Services.__init__(services, room, **options)
    return services, app


@contextlib.asynccontextmanager
async def serving(
    folder: Path, clock: Clock | None = None, *, url: str | None = None, **options: Any
) -> AsyncIterator[Service]:
    service_options = {name: options.pop(name) for name in ("rates", "lake", "inside") if name in options}
    options = {"durability": "relaxed", "actor": "tester", **options}
    if clock is not None:
        options |= {"clock": clock, "housekeeping": False}
    async with postroom.open(url or f"sqlite:///{folder / 'room.db'}", **options) as room:
        services, app = _app(room, **service_options)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen(100)
            port = taken.getsockname()[1]
            config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=2)
            server = uvicorn.Server(config)
            running = asyncio.create_task(server.serve(sockets=[taken]))
            base = f"http://127.0.0.1:{port}"
            try:
                async with httpx2.AsyncClient(base_url=base, timeout=120) as client:
                    yield Service(room, services, base, Caller(client, OWNER), app)
            finally:
                server.should_exit = True
                await running
