"""Logging in and out with a browser: a link that works once, or the token, for a cookie."""

from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import FastAPI, Query, Request
from pydantic import Field
from starlette.responses import HTMLResponse, RedirectResponse, Response

from postroom.api.auth.errors import EntryRefused
from postroom.api.auth.logins import COOKIE, PERSON_NAME, SESSION_S, Logins
from postroom.api.auth.owner_token import OwnerToken
from postroom.api.dependencies import Dependencies
from postroom.api.openapi import AnswerModel, ObjectBody, answers
from postroom.api.responses import Json
from postroom.services.callers import PersonRole

PersonName = Annotated[str, Field(pattern=f"^{PERSON_NAME}$", description="As others see them")]
_FILES = files("postroom.portal") / "assets"


class Link(AnswerModel):
    url: str
    minutes: int


class LinkWish(ObjectBody):
    role: PersonRole | None = Field(default=None, strict=False, description="Without one, the link is yours")
    name: PersonName = "guest"


def _login_page(home: Path | None, problem: str, status: int = 200) -> HTMLResponse:
    text = Template((_FILES / "login.html").read_text("utf-8"))
    page = text.substitute(problem=escape(problem), home=escape(_written(home)))
    return HTMLResponse(page, status_code=status)


def _written(home: Path | None) -> str:
    """As its owner would type it; strangers see the page too, and need not learn the owner's name."""
    if home is None:
        return "~/.postroom"
    own = Path.home()
    return f"~/{home.relative_to(own)}" if home.is_relative_to(own) else str(home)


def register(app: FastAPI, deps: Dependencies, logins: Logins, failed: Callable[[str], None]) -> None:
    owner = OwnerToken(deps.token)

    async def welcome(request: Request, role: PersonRole | None = None, person: str = "") -> Response:
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(
            COOKIE,
            await logins.begin(role, person),
            max_age=SESSION_S,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    def refused(request: Request, problem: str, status: int) -> Response:
        failed(request.client.host if request.client else "?")
        return _login_page(deps.home, problem, status)

    @app.get("/login", include_in_schema=False)
    async def login_page(
        request: Request, code: Annotated[str | None, Query(max_length=200)] = None
    ) -> Response:
        if code is None:
            return _login_page(deps.home, "")
        link = await logins.redeem(code)
        if link is None:
            return refused(request, "This link was used before, or is too old.", 401)
        return await welcome(request, link.role, link.person)

    @app.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        form = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=5)
        token = form.get("token", [""])[0].strip()
        if not owner.matches(token):
            return refused(request, "This is not the token of this office.", 401)
        return await welcome(request)

    @app.post("/logout", include_in_schema=False)
    async def logout(request: Request) -> Response:
        session = await logins.session(request.headers.get("cookie", ""))
        if session is not None:
            await logins.end(session.name)
        answer = RedirectResponse("/login", status_code=303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    @app.post("/api/login-link", tags=["login"], responses=answers(Link, 400))
    async def login_link(request: Request, wish: LinkWish | None = None) -> Json:
        """A link that logs a browser in, once, within a quarter of an hour: the owner's own, or with a `role`
        somebody else's, whose `name` they appear by. For the owner only."""
        if not request.state.caller.is_owner:
            raise EntryRefused
        wish = wish or LinkWish()
        code = await (logins.new_link(wish.role, wish.name) if wish.role else logins.new_link())
        host = request.headers["host"]
        return Json({"url": f"{request.url.scheme}://{host}/login?code={code}", "minutes": 15})

    @app.get("/api/sessions", tags=["login"], responses=answers(AnswerModel))
    async def sessions(request: Request) -> Json:
        """The browsers that are logged in. For the owner only."""
        if not request.state.caller.is_owner:
            raise EntryRefused
        own = await logins.session(request.headers.get("cookie", ""))
        rows = [
            {
                "id": name,
                "began_at": each.began_at,
                "ends_at": each.ends_at,
                "role": each.role,
                "person": each.person,
                "current": name == (own and own.name),
            }
            for name, each in (await logins.list_sessions()).items()
        ]
        return Json({"sessions": rows})

    @app.delete("/api/sessions/{id}", tags=["login"], responses=answers(AnswerModel, 404))
    async def end_session(request: Request, id: str) -> Json:  # noqa: A002
        """End a login: its cookie is worth nothing from now on. For the owner only."""
        if not request.state.caller.is_owner:
            raise EntryRefused
        await logins.end(id)
        return Json({"ok": True})

    @app.get("/api/session", tags=["login"], responses=answers(AnswerModel))
    async def session(request: Request) -> Json:
        """Who asks, and for browsers the word their requests must carry as `X-CSRF-Token`."""
        caller = request.state.caller
        return Json({"kind": caller.kind, "name": caller.name, "csrf": request.state.csrf})
