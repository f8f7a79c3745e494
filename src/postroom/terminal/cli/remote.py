"""The services of a server that runs, asked over HTTP: they look like those of this process."""

import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from postroom.runtime import wire
from postroom.services.container import ServiceRequest, Services

if TYPE_CHECKING:
    import httpx2

KIND = "application/msgpack"
PATH = "/internal/call"
PATIENCE_S = 120.0


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
async def remote_services(
    url: str, token: str, *, patience_s: float | None = PATIENCE_S
) -> AsyncIterator[Services]:
    import httpx2

    headers = {"authorization": f"Bearer {token}", "content-type": KIND}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=patience_s, trust_env=False) as http:
        yield cast(Services, RemoteServices(http, url))
