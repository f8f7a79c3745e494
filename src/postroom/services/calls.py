"""One use case on its way: the right is asked for, names are found, one unit is committed, one entry is kept.

The audit entry commits with the change it is about. What was refused, or only looked at, gets one of its own.
"""

import asyncio
import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from postroom.errors import PostroomError
from postroom.kernel import commands as c
from postroom.kernel import jsontext, service_commands
from postroom.kernel.access import permissions
from postroom.kernel.access.permissions import Permission
from postroom.kernel.ports import AuditEntry
from postroom.kernel.reader import Reader
from postroom.services.access import Access, CallSubject
from postroom.services.callers import Caller
from postroom.services.context import ServiceContext
from postroom.services.errors import KeyTooNarrow, OwnerOnly, PermissionMissing
from postroom.services.use_cases import UseCases

log = logging.getLogger("postroom.services")

T = TypeVar("T")
REFUSED = frozenset({401, 403, 404})


class Operation(msgspec.Struct, frozen=True):
    """A use case as the audit names it, and what it asks of callers.

    `owner`: for the owner alone. `whole`: no keys bound to one scope. `status`: of a success over HTTP.
    """

    event: str
    permission: Permission
    status: int = 200
    owner: bool = False
    whole: bool = False

    def refusal(self, caller: Caller) -> PostroomError | None:
        """Why this caller may not do it anywhere."""
        if self.owner and not caller.is_owner:
            return OwnerOnly()
        if self.permission not in caller.permissions:
            return PermissionMissing(permission=self.permission)
        if self.whole and caller.scope_id:
            return KeyTooNarrow(what="the whole tenant")
        return None


class ServiceCall:
    """`async with` it: on leaving, the audit knows how it went."""

    def __init__(self, context: ServiceContext, caller: Caller, operation: Operation) -> None:
        self.caller = caller
        self.subject = CallSubject()
        self.details: dict[str, Any] = {}
        self._context = context
        self._operation = operation
        self._is_kept = not caller.request_id

    async def __aenter__(self) -> Self:
        return self

    @property
    def who(self) -> dict[str, Any]:
        """What every command says."""
        return {"actor": self.caller.actor, "tenant": self.caller.tenant}

    async def look(self, question: Callable[[Access], T], *, quick: bool = True) -> T:
        """Ask within the caller's rights; all of one question is answered from one snapshot.

        Not `quick` is what may read many rows or take its time.
        """
        refusal = self._operation.refusal(self.caller)

        def ask(reader: Reader) -> T:
            access = Access(
                reader,
                self.caller,
                self._operation.permission,
                self._context,
                subject=self.subject,
                refusal=refusal,
            )
            try:
                found = question(access)
            except PostroomError as error:
                raise refusal or error from None
            if refusal is not None:
                raise refusal
            return found

        return await self._context.room.look(ask, quick=quick)

    async def allow(self) -> None:
        """For what is about no scope: raise unless the caller may do it."""
        await self.look(lambda access: None)

    async def commit(self, command: c.Command, **details: Any) -> Any:
        """Carry it out, with the entry of this call in the same transaction."""
        self.details |= details
        if self._is_kept:
            return await self._context.room.run(command)
        entry = self._entry(self._operation.status)
        value = await self._context.room.run(msgspec.structs.replace(command, audit=entry))
        self._is_kept = True
        return value

    def entry(self) -> AuditEntry | None:
        """For a command that is carried out in another way; when it took the entry with it, say `keep`."""
        return None if self._is_kept else self._entry(self._operation.status)

    def keep(self) -> None:
        self._is_kept = True

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_kept or isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt):
            return
        status = self._operation.status
        if error is not None:
            status = error.http_status if isinstance(error, PostroomError) else 500
        entry = self._entry(status)
        try:
            await self._context.room.run(
                service_commands.RecordAudit(entries=(entry,), actor="audit", tenant=entry.tenant)
            )
        except PostroomError as failure:
            log.error("the call %s (%s) could not be audited: %s", entry.id, entry.event_type, failure)

    def _entry(self, status: int) -> AuditEntry:
        caller, subject = self.caller, self.subject
        return AuditEntry(
            id=caller.request_id,
            tenant=caller.tenant,
            scope_id=subject.scope_id,
            queue_id=subject.queue_id,
            message_id=subject.message_id,
            correlation_id=subject.correlation_id,
            event_type=self._operation.event,
            permission=permissions.PREFIX + self._operation.permission,
            allowed=status not in REFUSED,
            status=status,
            actor_type=caller.type,
            actor_id=caller.id,
            request_id=caller.request_id,
            details=jsontext.text(self.details),
            created_at=self._context.clock.now(),
        )


class Service(UseCases):
    """Those of the work queue."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    def _call(self, caller: Caller, operation: Operation) -> ServiceCall:
        return ServiceCall(self._context, caller, operation)

    def _now(self) -> int:
        return self._context.clock.now()
