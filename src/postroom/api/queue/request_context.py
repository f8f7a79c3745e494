"""One call on its way through the gate: who calls, and the place and message it is about."""

from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from postroom.api.queue.service import QueueService
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Message, Queue, Scope
from postroom.kernel.rows import Stored
from postroom.services import Caller
from postroom.services.public_ids import PublicIds
from postroom.services.rates import Standing


class RequestContext:
    """What the gate found out, for the route; and what the route found out, for the audit."""

    def __init__(self, house: QueueService, request_id: str, event: str, permission: Permission) -> None:
        self.house = house
        self.request_id = request_id
        self.event = event
        self.permission = permission
        self.opaque = PublicIds(b"")
        self._caller: Caller | None = None
        self._scope: Scope | None = None
        self._queue: Queue | None = None
        self.standing: Standing | None = None
        self.stored: Stored | None = None
        self.message_id: str | None = None
        self.correlation_id: str | None = None
        self.details: dict[str, Any] = {}

    @property
    def caller(self) -> Caller:
        assert self._caller is not None, "the gate has let nobody in"
        return self._caller

    @property
    def known_caller(self) -> Caller | None:
        return self._caller

    def let_in(self, caller: Caller) -> None:
        self._caller = caller

    @property
    def scope(self) -> Scope:
        assert self._scope is not None, "this route has no scope"
        return self._scope

    @property
    def queue(self) -> Queue:
        assert self._queue is not None, "this route has no queue"
        return self._queue

    def enter(self, scope: Scope | None, queue: Queue | None = None) -> None:
        self._scope, self._queue = scope, queue

    @property
    def places(self) -> tuple[int, int]:
        return (self._scope.id if self._scope else 0, self._queue.id if self._queue else 0)

    @property
    def tenant(self) -> str:
        return self.caller.tenant

    @property
    def who(self) -> dict[str, Any]:
        """What every command says."""
        return {"actor": self.caller.actor, "tenant": self.caller.tenant}

    @property
    def message(self) -> Message:
        assert self.stored is not None, "this route has no message"
        return self.house.directory.message(self.stored)

    def about(self, message: Message) -> None:
        self.message_id, self.correlation_id = message.id, message.correlation_id


def _of(connection: HTTPConnection) -> RequestContext:
    return connection.state.visit


def visit_of(request: Request) -> RequestContext:
    return _of(request)


Visiting = Annotated[RequestContext, Depends(visit_of)]
