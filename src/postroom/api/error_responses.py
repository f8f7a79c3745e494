"""Everything that goes wrong in a handler, as an answer: never a trace, never a bare 500."""

import errno
import logging
from collections.abc import Sequence
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Match

from postroom.api.responses import Json, error_body, failure
from postroom.api.validation_messages import field_of, told
from postroom.errors import BodyTooLarge, InvalidField, PostroomError

log = logging.getLogger("postroom.api")

NOT_JSON = ("INVALID_JSON", "The body is not valid JSON.")
_STATUS_CODES = {
    400: NOT_JSON,  # the framework says so of what it cannot even begin to read, like too deep a nesting
    404: ("NOT_FOUND", "Not found"),
    405: ("METHOD_NOT_ALLOWED", "Method not allowed"),
}
# What a name that somebody gave may be, and no name on a disk can.
_NO_PLACES = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP})
SOURCES = frozenset({"body", "path", "query", "header"})


def needs(sentence: str, *fields: str) -> dict[str, Any]:
    """For a route: what its clients are told when one of these fields is missing or empty."""
    return {"x-needs": {"sentence": sentence, "fields": list(fields)}}


def register(app: Starlette) -> None:
    app.add_exception_handler(PostroomError, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(UnicodeEncodeError, _told)
    app.add_exception_handler(OSError, _told)
    app.add_exception_handler(Exception, _told)


def understood(error: Exception) -> Exception:
    """Errors of the system that come from what was asked, as what they are."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidField("body", "holds half a character (a surrogate without its other half)")
    if isinstance(error, OSError) and error.errno in _NO_PLACES:
        return InvalidField("body", f"names a path that cannot be used: {(error.strerror or '').lower()}")
    return error


def answer(method: str, path: str, error: Exception) -> Json:
    """Of whatever went wrong while a request was carried out."""
    error = understood(error)
    if not isinstance(error, PostroomError):
        log.error("%s %s failed", method, path, exc_info=error)
        message = "Something unexpected went wrong. It is in the log: postroom logs"
        return Json(error_body(path, "UNEXPECTED", message), status_code=500)
    if error.http_status >= 500:
        log.error("%s %s: %s", method, path, error)
    return failure(path, error)


def _told(request: Request, error: Exception) -> Json:
    return answer(request.method, request.url.path, error)


def _plain(request: Request, error: Exception) -> Json:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, PostroomError):
        # The framework hides what went wrong while a body was read behind a plain 400.
        return failure(request.url.path, error.__cause__)
    code, message = _STATUS_CODES.get(error.status_code, ("HTTP_ERROR", str(error.detail)))
    body = error_body(request.url.path, code, message)
    headers = {"allow": ", ".join(_methods_of(request))} if error.status_code == 405 else error.headers
    return Json(body, status_code=error.status_code, headers=headers)


def _methods_of(request: Request) -> list[str]:
    """What the path takes: the framework names the methods of one of its routes alone."""
    found: set[str] = set()
    pending: list[Any] = list(request.app.routes)
    while pending:
        route = pending.pop()
        for method in getattr(route, "methods", None) or ():
            match, _ = route.matches({**request.scope, "method": method})
            found |= {method} if match is Match.FULL else set()
        if not hasattr(route, "methods"):
            pending += getattr(getattr(route, "original_router", route), "routes", None) or ()
    return sorted(found)


def _invalid(request: Request, error: Exception) -> Json:
    assert isinstance(error, RequestValidationError)
    found: Sequence[Any] = error.errors()
    first = found[0]
    path = request.url.path
    if any(problem["type"] == "json_invalid" for problem in found):
        return Json(error_body(path, *NOT_JSON), status_code=400)
    extra = getattr(request.scope.get("route"), "openapi_extra", None) or {}
    needed = extra.get("x-needs")
    if needed and any(_is_missing(problem, needed["fields"]) for problem in found):
        body = error_body(path, "VALIDATION_ERROR", needed["sentence"])
        return Json({"ok": False, **body} if "x-ok" in extra else body, status_code=400)
    field = field_of([step for step in first["loc"] if step not in SOURCES])
    message = f"{field}: {told(first)}."
    return Json(error_body(path, "VALIDATION_ERROR", message, field=field), status_code=422)


# The field is there, and something else is wrong with it.
_PRESENT = frozenset({"value_error", "string_unicode", "string_too_long", "too_long"})


def _is_missing(problem: Any, fields: Sequence[str]) -> bool:
    if problem["type"] in _PRESENT:
        return False
    location = tuple(problem["loc"])
    if location == ("body",):
        return problem["type"] == "missing"
    return len(location) == 2 and location[0] == "body" and location[1] in fields


def too_large(text: str, limit: int, what: str = "message") -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise BodyTooLarge(what=what, size=size, limit=limit)
