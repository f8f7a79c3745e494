"""The audit of a scope: every gated call, allowed or refused; and everything of one conversation in order."""

from typing import Any

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import checks
from postroom.kernel.access.permissions import Permission
from postroom.kernel.ledger import Event
from postroom.kernel.model import DEAD_LETTER, Scope
from postroom.kernel.ports import AuditEntry, AuditFilter, MessageFilter
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service

MOST_STEPS = 10_000
MOST_LISTED = 10_000
FILTERS = frozenset(AuditFilter.__struct_fields__) - {"tenant", "scope_id", "queue_ids"}


# How far back the newest events are looked for.
MOST_LOOKED = 2000


class AuditPage(msgspec.Struct, frozen=True):
    """`scopes` are the names of the scopes that the entries are about."""

    entries: list[AuditEntry]
    more: bool
    scopes: dict[int, str]


class Trace(msgspec.Struct, frozen=True):
    """What happened in a conversation, and the calls that were made about it, each in order."""

    events: list[Event]
    calls: list[AuditEntry]


class Audit(Service):
    LIST = Operation("audit.read", Permission.VIEW)
    TRACE = Operation("audit.trace", Permission.VIEW)
    EVENTS = Operation("audit.events", Permission.VIEW, owner=True)

    async def list_page(
        self,
        caller: Caller,
        scope: str | None = None,
        *,
        cursor: str | None = None,
        limit: int = 50,
        **filters: Any,
    ) -> AuditPage:
        """Newest first; without a scope (for the owner), of all. Filters are the fields of `AuditFilter`.

        The calls of a moment ago are there: an answer is sent after its entry is kept."""
        async with self._call(caller, self.LIST) as call:

            def find(access: Access) -> tuple[list[AuditEntry], dict[int, str]]:
                place = None
                if scope is not None:
                    place = access.scope(scope)
                else:
                    access.require_owner()
                checks.check_count("limit", limit, least=1, most=MOST_LISTED)
                for name in set(filters) - FILTERS:
                    raise InvalidField(name, "is not something to filter by")
                wanted = AuditFilter(
                    tenant=access.tenant, scope_id=place.id if place is not None else None, **filters
                )
                if place is not None:
                    wanted = _narrow(access, place, wanted)
                names = {each.id: each.slug for each in access.reader.scopes(access.tenant)}
                return access.reader.audit(wanted, cursor, limit + 1), names

            found, names = await call.look(find, quick=False)
            return AuditPage(found[:limit], len(found) > limit, names)

    async def newest_events(self, caller: Caller, words: str = "", *, limit: int = 100) -> list[Event]:
        """The newest of the ledger that have all these words in type, place, actor or id. For the owner."""
        async with self._call(caller, self.EVENTS) as call:

            def find(access: Access) -> list[Event]:
                access.require_owner()
                wanted = words.casefold().split()
                head = access.reader.head().seq
                found = [
                    event
                    for event in access.reader.events(max(0, head - MOST_LOOKED), MOST_LOOKED)
                    if all(word in _searched(event) for word in wanted)
                ]
                return found[: -limit - 1 : -1]

            return await call.look(find, quick=False)

    async def trace(self, caller: Caller, scope: str, correlation_id: str) -> Trace:
        """Everything that happened in one conversation of a scope, in order: calls, rules, housekeepers."""
        async with self._call(caller, self.TRACE) as call:

            def find(access: Access) -> Trace:
                place = access.scope(scope)
                wanted = AuditFilter(
                    tenant=access.tenant,
                    scope_id=place.id,
                    correlation_id=correlation_id,
                    newest_first=False,
                )
                calls = access.reader.audit(_narrow(access, place, wanted), None, MOST_STEPS)
                return Trace(_events(access, place, correlation_id), calls)

            found = await call.look(find, quick=False)
            call.subject.correlation_id = correlation_id
            return found


def _narrow(access: Access, scope: Scope, wanted: AuditFilter) -> AuditFilter:
    """Calls about queues that the caller may not look into would tell of them."""
    seen = access.queue_ids(scope, Permission.VIEW)
    return wanted if seen is None else msgspec.structs.replace(wanted, queue_ids=seen)


def _events(access: Access, scope: Scope, correlation_id: str) -> list[Event]:
    of_it = MessageFilter(
        tenant=access.tenant, scope=scope.slug, correlation_id=correlation_id, deliveries=True
    )
    messages = access.reader.page(of_it, None, MOST_STEPS)
    if not messages:
        return []
    since = min(stored.row.created_at for stored in messages)
    until = max(stored.row.updated_at for stored in messages)
    found = access.reader.events_about(access.tenant, correlation_id, since, until, MOST_STEPS)
    events = [event for event in found if event.scope in (None, scope.slug)]
    sight = access.sight(scope)
    if sight.is_whole:
        return events
    seen = {None, *(queue.slug for queue in access.list_queues(scope))}
    return [event for event in events if _place_of(event) in seen]


def _place_of(event: Event) -> str | None:
    """A dead letter is where it came from."""
    return event.details.get("from", event.queue) if event.queue == DEAD_LETTER else event.queue


def _searched(event: Event) -> str:
    parts = (event.type, event.scope, event.queue, event.actor, event.message_id, event.correlation_id)
    return " ".join(part for part in parts if part).casefold()
