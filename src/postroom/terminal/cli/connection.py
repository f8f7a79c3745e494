"""The server of this home, if it runs: where it is, and how it is spoken to."""

import contextlib
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from postroom.app.home import Home
from postroom.app.roles import Running, find_api
from postroom.errors import PostroomError

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


def refusal(status: int, body: Any) -> Answered:
    said = body.get("error") if isinstance(body, dict) else None
    if isinstance(said, dict):
        return Answered(status, said.get("code", "HTTP_ERROR"), said.get("message", f"Status {status}"))
    code = body.get("code") if isinstance(body, dict) else None
    message = str(said or f"The office answered with status {status}.")
    return Answered(status, code or "HTTP_ERROR", message)


def find_server(home: Home) -> Running | None:
    """The process of this home that can be spoken to."""
    return find_api(home.run)


@contextlib.asynccontextmanager
async def server_client(
    *, patience_s: float | None = PATIENCE_S, url: str | None = None, token: str = ""
) -> "AsyncIterator[httpx2.AsyncClient]":
    """For what only the server's HTTP has: the stream of events, and links to log in with. Of the server of
    this home, or of one elsewhere with its token."""
    import httpx2

    from postroom.app.process import NotRunning

    if url is None:
        home = Home.of()
        found = find_server(home)
        if found is None or found.url is None:
            raise NotRunning
        url, token = found.url, token_of(home)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=patience_s, trust_env=False) as http:
        yield http


async def make_login_link(role: str | None = None, name: str = "guest") -> dict[str, Any]:
    """A link that logs a browser in, once: yours, or that of somebody with a role."""
    import httpx2

    async with server_client() as http:
        try:
            wish = {"role": role, "name": name} if role is not None else None
            answer = await http.post("/api/login-link", json=wish)
        except httpx2.TransportError as error:
            raise Unreachable(url=str(http.base_url), reason=str(error) or type(error).__name__) from None
        if not answer.is_success:
            raise refusal(answer.status_code, answer.json())
        return answer.json()


def token_of(home: Home) -> str:
    if given := os.environ.get("POSTROOM_TOKEN"):
        return given
    from postroom.api.auth.owner_token import owners_token
    from postroom.settings import with_environment
    from postroom.settings.errors import SettingsBroken

    try:
        given = with_environment(home.settings.load()).api.token
    except SettingsBroken:
        given = None  # the server goes on with what it has read, and its token with it
    return owners_token(home.token, given.reveal() if given else None)
