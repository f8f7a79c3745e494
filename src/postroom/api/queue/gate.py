"""The gate of every route: who calls and how often, then errors as answers. Services decide what they may."""

import logging
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from postroom.api.error_responses import understood
from postroom.api.queue import envelopes
from postroom.api.responses import Json
from postroom.errors import Invalid, PostroomError
from postroom.kernel.access.permissions import PREFIX, Permission
from postroom.services import callers
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation
from postroom.services.container import Services
from postroom.services.errors import RequestLimitReached
from postroom.services.public_ids import PublicIds
from postroom.services.rates import Standing

log = logging.getLogger("postroom.api.queue")

TENANT_HEADER = "x-postroom-tenant"
MALFORMED = {"code": "VALIDATION_ERROR", "message": "The request could not be read: it is not valid JSON."}
UNEXPECTED = {"code": "SCAIQUEUE_UNEXPECTED", "message": "Something unexpected went wrong; see the log."}
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
IsOwner = Callable[[str], bool]


def nobody(token: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RouteCall:
    """One request as routes see it: the services, who calls, and how ids are shown."""

    services: Services
    caller: Caller
    ids: PublicIds


async def _call_of(request: Request) -> RouteCall:
    """Asynchronous, for the framework wakes a thread for every function that is not."""
    return request.state.call


Calling = Annotated[RouteCall, Depends(_call_of)]


def needs(operation: Operation) -> dict[str, Any]:
    """What a route asks of its callers, for the document and for requests that cannot be read."""
    return {
        "x-permission": PREFIX + operation.permission,
        "x-event": operation.event,
        "x-owner": operation.owner,
        "x-whole": operation.whole,
    }


def route_class(services: Services, is_owner: IsOwner = nobody) -> type[APIRoute]:
    class GatedRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handler = super().get_route_handler()
            gate = Gate(services, is_owner, self.openapi_extra or {})

            async def handle(request: Request) -> Response:
                return await gate.answer(request, handler)

            return handle

    return GatedRoute


class Gate:
    """`is_owner` tells the owner's token; where the API's own authentication has run, it has told already."""

    def __init__(self, services: Services, is_owner: IsOwner, asks: dict[str, Any]) -> None:
        self._services = services
        self._is_owner = is_owner
        self._operation = Operation(
            asks["x-event"],
            Permission(asks["x-permission"].removeprefix(PREFIX)),
            owner=asks["x-owner"],
            whole=asks["x-whole"],
        )

    async def answer(self, request: Request, handler: Handler) -> Response:
        request_id = str(uuid.uuid4())
        standing: Standing | None = None
        try:
            caller = await self._authenticate(request, request_id)
            standing = await self._services.authentication.admit(caller)
            request.state.call = RouteCall(self._services, caller, await self._services.public_ids())
            try:
                answer = await handler(request)
            except RequestValidationError as error:
                await self._refuse_unread(request, caller)
                answer = _invalid(error, request_id)
        except RequestLimitReached as error:
            standing = error.data["standing"]
            answer = envelopes.failed(error, request_id)
        except PostroomError as error:
            answer = _refused(request, error, request_id)
        except HTTPException as error:
            if isinstance(error.__cause__, PostroomError):
                # The framework hides what went wrong while a body was read behind a plain 400.
                answer = envelopes.failed(error.__cause__, request_id)
            else:
                answer = envelopes.problem_answer(error.status_code, MALFORMED, request_id)
        except Exception as fault:
            error = understood(fault)
            if isinstance(error, PostroomError):
                answer = envelopes.failed(error, request_id)
            else:
                log.error("%s %s failed", request.method, request.url.path, exc_info=fault)
                answer = envelopes.problem_answer(500, UNEXPECTED, request_id)
        answer.headers["x-request-id"] = request_id
        if standing is not None:
            answer.headers.update(standing.headers())
        return answer

    async def _authenticate(self, request: Request, request_id: str) -> Caller:
        caller: Caller | None = getattr(request.state, "caller", None)
        authentication = self._services.authentication
        if caller is None:
            secret = _bearer(request)
            caller = (
                callers.owner() if self._is_owner(secret) else await authentication.require_holder(secret)
            )
        caller = await authentication.choose_tenant(caller, request.headers.get(TENANT_HEADER))
        return caller.with_request(request_id)

    async def _refuse_unread(self, request: Request, caller: Caller) -> None:
        """Nobody learns from what is wrong with a request whether there is what it names."""
        path = request.path_params

        def enter(access: Access) -> None:
            if "message_id" in path:
                access.message(path["scope_id"], path["message_id"])
            elif "queue_id" in path:
                access.queue(path["scope_id"], path["queue_id"])
            elif "scope_id" in path:
                access.scope(path["scope_id"])

        try:
            async with self._services.call(caller, self._operation) as call:
                await call.look(enter)
                raise Unread
        except Unread:
            return


class Unread(Invalid):
    """The request could not be read."""


def _refused(request: Request, error: PostroomError, request_id: str) -> Json:
    if error.http_status >= 500:
        log.error("%s %s: %s", request.method, request.url.path, error)
    return envelopes.failed(error, request_id)


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _invalid(error: RequestValidationError, request_id: str) -> Json:
    if any(problem["type"] == "json_invalid" for problem in error.errors()):
        return envelopes.problem_answer(400, MALFORMED, request_id)
    details = []
    for problem in error.errors():
        steps = [str(step) for step in problem["loc"] if step not in ("body", "query", "path")]
        details.append(
            {"field": ".".join(steps) or "body", "message": problem["msg"].removeprefix("Value error, ")}
        )
    first = details[0]
    shown: dict[str, Any] = {
        "code": "VALIDATION_ERROR",
        "message": f"{first['field']}: {first['message']}.",
        "details": details,
    }
    return envelopes.problem_answer(422, shown, request_id)
