"""The gate of every route: who calls, how often, what they may; then errors as answers, and the audit.

Whatever a caller may not know of answers exactly like what does not exist.
"""

import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from postroom.api.error_responses import understood
from postroom.api.queue import envelopes
from postroom.api.queue.request_context import RequestContext
from postroom.api.queue.service import QueueService, new_id
from postroom.api.responses import Json
from postroom.errors import MessageNotFound, PostroomError, QueueNotFound, ScopeNotFound
from postroom.kernel import jsontext, service_commands
from postroom.kernel.access import acl, trust
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import DEAD_LETTER, Queue, Scope
from postroom.kernel.ports import MessageFilter, Reader
from postroom.kernel.rows import Row, Stored
from postroom.kernel.service_ports import AuditEntry
from postroom.services import Caller, callers
from postroom.services.errors import (
    AclDenied,
    KeyTooNarrow,
    OwnerOnly,
    PermissionMissing,
    RateLimited,
)

log = logging.getLogger("postroom.api.queue")

TENANT_HEADER = "x-postroom-tenant"
MOST_ENTRIES = 10_000
MALFORMED = {"code": "VALIDATION_ERROR", "message": "The request could not be read: it is not valid JSON."}
Call = Callable[[Request], Coroutine[Any, Any, Response]]


def needs(
    permission: Permission | str, event: str, *, owner: bool = False, whole: bool = False
) -> dict[str, Any]:
    """What a route asks of its callers. `owner`: the house's token. `whole`: no keys bound to one scope."""
    return {"x-permission": f"scaiqueue:{permission}", "x-event": event, "x-owner": owner, "x-whole": whole}


def gated(house: QueueService) -> type[APIRoute]:
    class Gated(APIRoute):
        def get_route_handler(self) -> Call:
            handler = super().get_route_handler()
            asks: dict[str, Any] = self.openapi_extra or {}
            gate = AccessGate(house, asks)

            async def handle(request: Request) -> Response:
                return await gate.pass_through(request, handler)

            return handle

    return Gated


class AccessGate:
    def __init__(self, house: QueueService, asks: dict[str, Any]) -> None:
        self._house = house
        self._permission = Permission(str(asks["x-permission"]).removeprefix("scaiqueue:"))
        self._event: str = asks["x-event"]
        self._owner: bool = asks.get("x-owner", False)
        self._whole: bool = asks.get("x-whole", False)

    async def pass_through(self, request: Request, handler: Call) -> Response:
        visit = RequestContext(self._house, new_id(), self._event, self._permission)
        request.state.visit = visit
        try:
            await self._judge(request, visit)
            answer = await handler(request)
        except PostroomError as error:
            if isinstance(error, RateLimited):
                visit.standing = error.data["standing"]
            if error.http_status >= 500:
                log.error("%s %s: %s", request.method, request.url.path, error)
            answer = envelopes.failed(error, visit.request_id)
        except RequestValidationError as error:
            answer = _invalid(error, visit.request_id)
        except HTTPException as error:
            if isinstance(error.__cause__, PostroomError):
                # The framework hides what went wrong while a body was read behind a plain 400.
                answer = envelopes.failed(error.__cause__, visit.request_id)
            else:
                answer = envelopes.problem_answer(error.status_code, MALFORMED, visit.request_id)
        except Exception as fault:
            error = understood(fault)
            if isinstance(error, PostroomError):
                answer = envelopes.failed(error, visit.request_id)
            else:
                log.error("%s %s failed", request.method, request.url.path, exc_info=fault)
                problem = {
                    "code": "SCAIQUEUE_UNEXPECTED",
                    "message": "Something unexpected went wrong; see the log.",
                }
                answer = envelopes.problem_answer(500, problem, visit.request_id)
        answer.headers["x-request-id"] = visit.request_id
        if visit.standing is not None:
            answer.headers.update(visit.standing.headers())
        await self._audit(visit, answer.status_code)
        return answer

    # who calls, and what they may

    async def _judge(self, request: Request, visit: RequestContext) -> None:
        services = self._house.services
        caller: Caller | None = getattr(request.state, "caller", None)
        if caller is None:
            secret = _bearer(request)
            if self._house.is_owner(secret):
                caller = callers.owner()
            else:
                caller = await services.authentication.require_holder(secret)
        caller = await services.authentication.choose_tenant(caller, request.headers.get(TENANT_HEADER))
        visit.opaque = await self._house.opaque()
        visit.let_in(caller)
        visit.standing = await services.authentication.admit(caller)
        now, path = self._house.clock.now(), request.path_params

        def look(reader: Reader) -> None:
            try:
                self._check_permission(caller)
            except PostroomError:
                # The audit of the place tells of refused calls too, if the caller may know of the place.
                with contextlib.suppress(PostroomError):
                    self._resolve(reader, visit, path, now)
                raise
            self._resolve(reader, visit, path, now)

        await self._house.ask(look)

    def _check_permission(self, caller: Caller) -> None:
        if self._owner and not caller.is_owner:
            raise OwnerOnly
        if self._permission not in caller.permissions:
            raise PermissionMissing(permission=self._permission)
        if self._whole and caller.key is not None and caller.key.scope_id:
            raise KeyTooNarrow(what="the whole tenant")

    # the place and message a path names

    def _resolve(self, reader: Reader, visit: RequestContext, path: dict[str, Any], now: int) -> None:
        if "scope_id" not in path:
            return
        scope = find_scope(reader, visit, path["scope_id"])
        guard = AccessCheck(reader, visit, now)
        if guard.verdict(scope, None, self._permission) is AccessVerdict.HIDDEN and not guard.named_in(scope):
            raise ScopeNotFound(scope=path["scope_id"])
        queue: Queue | None = None
        if "message_id" in path:
            stored = reader.get(path["message_id"])
            if stored is None or (stored.row.tenant, stored.row.scope_id) != (visit.tenant, scope.id):
                raise MessageNotFound(message_id=path["message_id"])
            name = reader.queue_names()[stored.row.queue_id]
            queue = reader.queue(visit.tenant, *name)
            verdict = guard.of_message(scope, stored.row, self._permission)
            if verdict is AccessVerdict.HIDDEN:
                raise MessageNotFound(message_id=path["message_id"])
            visit.stored = stored
            visit.message_id, visit.correlation_id = stored.row.id, stored.row.correlation_id
        elif "queue_id" in path:
            queue = find_queue(reader, visit, scope, path["queue_id"])
            verdict = guard.verdict(scope, queue.id, self._permission)
            if verdict is AccessVerdict.HIDDEN:
                raise QueueNotFound(queue=path["queue_id"])
        else:
            verdict = guard.verdict(scope, None, self._permission)
        visit.enter(scope, queue)
        if verdict is not AccessVerdict.ALLOWED:
            raise AclDenied(place=queue.path if queue else scope.slug, permission=self._permission)

    async def _audit(self, visit: RequestContext, status: int) -> None:
        caller = visit.known_caller
        if caller is None or status == 429:
            return
        scope_id, queue_id = visit.places
        entry = AuditEntry(
            id=visit.request_id,
            tenant=caller.tenant,
            scope_id=scope_id,
            queue_id=queue_id,
            message_id=visit.message_id,
            correlation_id=visit.correlation_id,
            event_type=visit.event,
            permission=f"scaiqueue:{visit.permission}",
            allowed=status not in (401, 403, 404),
            status=status,
            actor_type=caller.type,
            actor_id=caller.id,
            request_id=visit.request_id,
            details=jsontext.text(visit.details),
            created_at=self._house.clock.now(),
        )
        try:
            await self._house.run(
                service_commands.RecordAudit(entries=(entry,), actor="audit", tenant=caller.tenant)
            )
        except PostroomError as error:
            log.error("a call could not be recorded: %s", error)


class AccessCheck:
    """What the access lists of places say to one caller."""

    def __init__(self, reader: Reader, visit: RequestContext, now: int) -> None:
        self._reader = reader
        self._house = visit.house
        self._caller = visit.caller
        self._now = now

    def verdict(self, scope: Scope, queue_id: int | None, wanted: Permission) -> AccessVerdict:
        caller = self._caller
        if caller.key is not None and caller.key.scope_id not in (0, scope.id):
            bound = caller.key.scope_id
            if wanted is not Permission.PUBLISH or not trust.may_cross(
                self._reader, caller.tenant, bound, scope.id, "publish"
            ):
                return AccessVerdict.HIDDEN
        if self._is_closed(scope):
            return AccessVerdict.HIDDEN
        if caller.is_admin:
            return AccessVerdict.ALLOWED
        found: list[acl.AclEntry] = []
        if queue_id is not None:
            found = self._entries(acl.ENTRY, f"{scope.id}/{queue_id}/")
        found = found or self._entries(acl.GRANT, f"{scope.id}/")
        return acl.judge(found, caller.principals, wanted, self._now)

    def of_message(self, scope: Scope, row: Row, wanted: Permission) -> AccessVerdict:
        """A dead letter is for those who may know of where it lies, and of where it came from."""
        places = {row.queue_id}
        if self._reader.queue_names()[row.queue_id][1] == DEAD_LETTER and row.origin_queue_id is not None:
            places.add(row.origin_queue_id)
        found = {self.verdict(scope, queue_id, wanted) for queue_id in places}
        return next(
            each
            for each in (AccessVerdict.HIDDEN, AccessVerdict.REFUSED, AccessVerdict.ALLOWED)
            if each in found
        )

    def named_in(self, scope: Scope) -> bool:
        """Whether a queue's list lets them in although the scope's does not."""
        caller = self._caller
        if (caller.key is not None and caller.key.scope_id not in (0, scope.id)) or self._is_closed(scope):
            return False
        found = self._entries(acl.ENTRY, f"{scope.id}/")
        return any((entry.principal_type, entry.principal_id) in caller.principals for entry in found)

    def _is_closed(self, scope: Scope) -> bool:
        """The house's own mail is not for keys, unless one was made for it."""
        key = self._caller.key
        return key is not None and key.scope_id != scope.id and self._house.is_own(scope)

    def _entries(self, kind: str, prefix: str) -> list[acl.AclEntry]:
        found = self._reader.documents(self._caller.tenant, kind, prefix, "", MOST_ENTRIES)
        return [acl.read(document.data) for document in found]


def find_scope(reader: Reader, visit: RequestContext, name: str) -> Scope:
    """By its id or its slug."""
    for scope in reader.scopes(visit.tenant):
        if name in (scope.slug, visit.opaque.scope(scope.id)):
            return scope
    raise ScopeNotFound(scope=name)


def visible_scope(reader: Reader, visit: RequestContext, name: str) -> Scope:
    """As `find_scope`, but not what the caller may not know of."""
    scope = find_scope(reader, visit, name)
    if (
        AccessCheck(reader, visit, visit.house.clock.now()).verdict(scope, None, Permission.VIEW)
        is AccessVerdict.HIDDEN
    ):
        raise ScopeNotFound(scope=name)
    return scope


def find_queue(reader: Reader, visit: RequestContext, scope: Scope, name: str) -> Queue:
    for queue in reader.queues(visit.tenant, scope.slug):
        if name in (queue.slug, visit.opaque.queue(queue.id)):
            return queue
    raise QueueNotFound(queue=name)


def visible_queues(reader: Reader, visit: RequestContext) -> list[Queue] | None:
    """The queues of the visit's scope that the caller may look into; None when it may look into all."""
    guard = AccessCheck(reader, visit, visit.house.clock.now())
    queues = reader.queues(visit.tenant, visit.scope.slug)
    seen = [
        queue
        for queue in queues
        if guard.verdict(visit.scope, queue.id, Permission.VIEW) is AccessVerdict.ALLOWED
    ]
    return None if len(seen) == len(queues) else seen


def seen_message(reader: Reader, visit: RequestContext, message_id: str) -> Stored | None:
    """A message of the visit's scope, if the caller may look at it."""
    stored = reader.get(message_id)
    if stored is None or (stored.row.tenant, stored.row.scope_id) != (visit.tenant, visit.scope.id):
        return None
    guard = AccessCheck(reader, visit, visit.house.clock.now())
    seen = guard.of_message(visit.scope, stored.row, Permission.VIEW) is AccessVerdict.ALLOWED
    return stored if seen else None


def visible_page(
    reader: Reader, visit: RequestContext, wanted: MessageFilter, after: int | None, limit: int
) -> list[Stored]:
    """A page of messages, without what lies in queues that the caller may not look into, or died in them."""
    queues = visible_queues(reader, visit)
    if queues is None:
        return reader.page(wanted, after, limit)
    seen = {queue.id for queue in queues}
    hidden = {queue.id for queue in reader.queues(visit.tenant, visit.scope.slug)} - seen
    dead = next((queue.id for queue in queues if queue.slug == DEAD_LETTER), None)
    wanted = msgspec.structs.replace(wanted, queue_ids=tuple(seen))
    found: list[Stored] = []
    while True:
        part = reader.page(wanted, after, limit)
        found += [
            each for each in part if each.row.queue_id != dead or each.row.origin_queue_id not in hidden
        ]
        if len(part) < limit or len(found) >= limit:
            return found[:limit]
        after = part[-1].row.seq


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
