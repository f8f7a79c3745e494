"""Scopes: made, read, changed, paused, archived, deleted."""

import msgspec

from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import LifecycleState, Scope
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service

# How scopes and queues are opened and closed.
STATES = {
    "pause": LifecycleState.PAUSED,
    "resume": LifecycleState.ACTIVE,
    "drain": LifecycleState.DRAINING,
    "archive": LifecycleState.ARCHIVED,
    "unarchive": LifecycleState.ACTIVE,
}


def state_operations(noun: str) -> dict[str, Operation]:
    return {verb: Operation(f"{noun}.{verb}", Permission.MANAGE) for verb in STATES}


def find_state(verb: str) -> LifecycleState:
    if verb not in STATES:
        raise InvalidField("verb", f"is {verb!r}, must be one of {', '.join(STATES)}")
    return STATES[verb]


class ScopeTotals(msgspec.Struct, frozen=True):
    """A scope with what is in it: its own queues, open messages and dead letters."""

    scope: Scope
    queues: int
    open: int
    dead: int


class Scopes(Service):
    CREATE = Operation("scope.create", Permission.MANAGE, 201, whole=True)
    LIST = Operation("scope.list", Permission.VIEW)
    READ = Operation("scope.read", Permission.VIEW)
    UPDATE = Operation("scope.update", Permission.MANAGE)
    DELETE = Operation("scope.delete", Permission.MANAGE, 204, whole=True)
    CHANGE = state_operations("scope")

    async def create(
        self,
        caller: Caller,
        slug: str,
        *,
        display_name: str = "",
        description: str = "",
        exist_ok: bool = False,
    ) -> Scope:
        """Make a scope, with its five system queues. A slug that is taken is a conflict."""
        async with self._call(caller, self.CREATE) as call:
            await call.allow()
            return await call.commit(
                c.CreateScope(
                    slug=slug,
                    display_name=display_name,
                    description=description,
                    exist_ok=exist_ok,
                    **call.who,
                )
            )

    async def list_all(self, caller: Caller) -> list[Scope]:
        """The scopes this caller can see."""
        async with self._call(caller, self.LIST) as call:
            return await call.look(lambda access: access.scopes(None), quick=False)

    async def list_totals(self, caller: Caller) -> list[ScopeTotals]:
        async with self._call(caller, self.LIST) as call:

            def count(access: Access) -> list[ScopeTotals]:
                return [_totals(access, scope) for scope in access.scopes(None)]

            return await call.look(count, quick=False)

    async def read(self, caller: Caller, scope: str) -> Scope:
        async with self._call(caller, self.READ) as call:
            return await call.look(lambda access: access.scope(scope))

    async def update(
        self, caller: Caller, scope: str, *, display_name: str | None = None, description: str | None = None
    ) -> Scope:
        """Change what a scope is called and what is said of it."""
        async with self._call(caller, self.UPDATE) as call:
            found = await call.look(lambda access: access.scope(scope))
            return await call.commit(
                c.UpdateScope(slug=found.slug, display_name=display_name, description=description, **call.who)
            )

    async def set_state(self, caller: Caller, scope: str, verb: str) -> Scope:
        state = find_state(verb)
        async with self._call(caller, self.CHANGE[verb]) as call:
            found = await call.look(lambda access: access.scope(scope))
            return await call.commit(c.SetScopeState(slug=found.slug, state=state, **call.who))

    async def delete(self, caller: Caller, scope: str) -> None:
        """Only when no open messages and no dead letters are left in it."""
        async with self._call(caller, self.DELETE) as call:
            found = await call.look(lambda access: access.scope(scope))
            await call.commit(c.DeleteScope(slug=found.slug, **call.who))


def _totals(access: Access, scope: Scope) -> ScopeTotals:
    queues = access.list_queues(scope)
    counts = [access.reader.counts(queue.id) for queue in queues]
    return ScopeTotals(
        scope,
        sum(not queue.system for queue in queues),
        sum(count.open for count in counts),
        sum(count.dead for count in counts),
    )
