"""The services of a server that runs, asked over HTTP: they look like those of this process."""

import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from postroom.kernel import commands as c
from postroom.kernel.transitions.claim import ClaimedBatch
from postroom.runtime import RoomOptions, SyncRoom, wire
from postroom.runtime.core import RoomCore
from postroom.runtime.housekeeping import HousekeepingLoop
from postroom.services import ServiceRequest, Services
from postroom.terminal.cli.readonly import ReadOnlyFile

if TYPE_CHECKING:
    import httpx2

KIND = "application/msgpack"
PATH = "/internal/call"
PATIENCE_S = 120.0
AT_ONCE_S = 25.0


class RemoteService:
    """Each of its attributes is a method of the service of this name."""

    def __init__(self, http: "httpx2.AsyncClient", url: str, name: str) -> None:
        self._http = http
        self._url = url
        self._name = name

    def __getattr__(self, method: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any, **options: Any) -> Any:
            return await self._ask(ServiceRequest(self._name, method, args, options))

        return call

    async def _ask(self, request: ServiceRequest) -> Any:
        import httpx2

        from postroom.terminal.cli.connection import Unreachable, refusal

        try:
            answer = await self._http.post(PATH, content=wire.encode(request))
        except httpx2.TransportError as error:
            raise Unreachable(url=self._url, reason=str(error) or type(error).__name__) from None
        kind = answer.headers.get("content-type", "")
        if answer.is_success:
            return wire.decode(answer.content)
        if kind.startswith(KIND):
            raise wire.decode_error(answer.content)
        if kind.startswith("application/json"):
            raise refusal(answer.status_code, answer.json())
        raise Unreachable(url=self._url, reason=f"it answered with status {answer.status_code}")


class RemoteServices:
    """Each of its attributes is a service."""

    def __init__(self, http: "httpx2.AsyncClient", url: str) -> None:
        self._http = http
        self._url = url

    def __getattr__(self, name: str) -> RemoteService:
        return RemoteService(self._http, self._url, name)


@contextlib.asynccontextmanager
async def remote_services(url: str, token: str) -> AsyncIterator[Services]:
    import httpx2

    headers = {"authorization": f"Bearer {token}", "content-type": KIND}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False) as http:
        yield cast(Services, RemoteServices(http, url))


class RemoteCommitter:
    """Stands where the committer of a room stands that owns its store."""

    def __init__(self, url: str, token: str) -> None:
        import httpx2

        headers = {"authorization": f"Bearer {token}", "content-type": KIND}
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=120, trust_env=False)
        self._url = url

    def execute(self, command: c.Command, *, wait: float = 0) -> Any:
        """`wait` is for claims: how long the house may wait for something to claim."""
        import httpx2

        from postroom.terminal.cli.connection import Unreachable, refusal

        try:
            params = {"wait": wait} if wait else {}
            answer = self._http.post("/internal/commands", params=params, content=wire.encode(command))
        except httpx2.TransportError as error:
            raise Unreachable(url=self._url, reason=str(error) or type(error).__name__) from None
        if answer.is_success:
            return wire.decode(answer.content)
        if answer.headers.get("content-type", "").startswith(KIND):
            raise wire.decode_error(answer.content)
        if answer.headers.get("content-type", "").startswith("application/json"):
            raise refusal(answer.status_code, answer.json())
        raise Unreachable(url=self._url, reason=f"it answered with status {answer.status_code}")

    def close(self) -> None:
        self._http.close()


class RemoteRoom(SyncRoom):
    """Waits at the house and not here, where nobody would ring."""

    def __init__(self, core: RoomCore, asking: RemoteCommitter) -> None:
        super().__init__(core)
        self._at_the_house = asking

    def _wait_and_claim(
        self, command: c.Claim, wait: float, enough: threading.Event | None = None
    ) -> ClaimedBatch:
        until = time.monotonic() + wait
        while True:
            left = until - time.monotonic()
            taken: ClaimedBatch = self._at_the_house.execute(command, wait=min(max(left, 0), AT_ONCE_S))
            if taken.messages or left <= AT_ONCE_S:
                return taken


def remote_room(path: Path, url: str, token: str, actor: str) -> SyncRoom:
    core = RoomCore(ReadOnlyFile(path), RoomOptions(actor=actor, housekeeping=False))
    core.committer.close()
    asking = RemoteCommitter(url, token)
    core.committer = asking  # type: ignore[assignment]
    core.housekeeping = HousekeepingLoop(asking.execute, core.clock, core.actor)
    return RemoteRoom(core, asking)
