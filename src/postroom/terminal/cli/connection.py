"""The way to the office: over HTTP to the house that runs, else through the same API in this very process."""

import contextlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from postroom.app.home import Home
from postroom.app.roles import ProcessRole, Running, running
from postroom.errors import PostroomError
from postroom.terminal.cli.store_access import whoami

if TYPE_CHECKING:
    import httpx2

PATIENCE_S = 60.0
_EXIT_CODES = {400: 2, 401: 3, 403: 3, 404: 4, 409: 5, 413: 2, 422: 2, 429: 5, 503: 6}


class Answered(PostroomError):
    """{message}"""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message=message)
        self.code = code  # type: ignore[misc]
        self.exit_code = _EXIT_CODES.get(status, 1)  # type: ignore[misc]
        self.http_status = status  # type: ignore[misc]


class Unreachable(PostroomError):
    """The office at {url} does not answer: {reason}. See: postroom status"""

    code = "UNREACHABLE"
    exit_code = 6


class OfficeClient:
    """Speaks to the API and returns what it says; what it refuses is raised."""

    def __init__(self, http: "httpx2.AsyncClient", *, url: str, live: bool) -> None:
        self.http = http
        self.url = url
        self.live = live
        """Whether a house runs, whose agents work by themselves."""

    async def get(self, path: str, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        return await self._ask("GET", path, params=given)

    async def post(
        self, path: str, body: Mapping[str, Any] | None = None, *, patience_s: float | None = PATIENCE_S
    ) -> Any:
        """`patience_s` is for what takes long by its nature; None waits for as long as it takes."""
        return await self._ask("POST", path, json=dict(body or {}), timeout=patience_s)

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        return await self._ask("PUT", path, json=dict(body))

    async def delete(self, path: str) -> Any:
        return await self._ask("DELETE", path)

    async def _ask(self, method: str, path: str, **options: Any) -> Any:
        import httpx2

        try:
            answer = await self.http.request(method, path, **options)
        except httpx2.TransportError as error:
            raise Unreachable(url=self.url, reason=str(error) or type(error).__name__) from None
        try:
            body = answer.json()
        except ValueError:
            body = None
        if answer.is_success:
            return body
        raise refusal(answer.status_code, body)


def refusal(status: int, body: Any) -> Answered:
    said = body.get("error") if isinstance(body, dict) else None
    if isinstance(said, dict):
        return Answered(status, said.get("code", "HTTP_ERROR"), said.get("message", f"Status {status}"))
    code = body.get("code") if isinstance(body, dict) else None
    message = str(said or f"The office answered with status {status}.")
    return Answered(status, code or "HTTP_ERROR", message)


def daemon(home: Home) -> Running | None:
    """The process of the house that can be spoken to."""
    return next((found for found in running(home.run) if found.url), None)


@contextlib.asynccontextmanager
async def connected(*, works: bool = False) -> AsyncIterator[OfficeClient]:
    """`works`: without a house that runs, agents work in this process while this lasts."""
    import httpx2

    home = Home.of()
    found = daemon(home)
    if found is not None and found.url:
        headers = {"authorization": f"Bearer {token_of(home)}"}
        async with httpx2.AsyncClient(
            base_url=found.url, headers=headers, timeout=PATIENCE_S, trust_env=False
        ) as http:
            yield OfficeClient(http, url=found.url, live=True)
        return
    async with _own_house(home, works=works) as (app, token):
        transport = httpx2.ASGITransport(app=app)
        headers = {"authorization": f"Bearer {token}"}
        base = "http://127.0.0.1"
        async with httpx2.AsyncClient(
            transport=transport, base_url=base, headers=headers, timeout=None
        ) as http:
            yield OfficeClient(http, url="this process", live=False)


@contextlib.asynccontextmanager
async def _own_house(home: Home, *, works: bool) -> AsyncIterator[tuple[Any, str]]:
    from postroom.app.first_run import prepare
    from postroom.app.server_process import ProcessPlan, indoors

    prepare(home)
    plan = ProcessPlan(home=home, roles=frozenset({ProcessRole.WORKER} if works else ()), actor=whoami())
    async with indoors(plan) as found:
        yield found


def token_of(home: Home) -> str:
    if given := os.environ.get("POSTROOM_TOKEN"):
        return given
    from postroom.api.auth.owner_token import owners_token
    from postroom.settings import with_environment
    from postroom.settings.errors import SettingsBroken

    try:
        given = with_environment(home.settings.load()).api.token
    except SettingsBroken:
        given = None  # the house goes on with what it has read, and its token with it
    return owners_token(home.token, given.reveal() if given else None)


def shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
