"""Commands of the kernel that commit together, for the owner's own tools at the shell."""

from collections.abc import Sequence
from typing import Any

from postroom.errors import InvalidField
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service


class Units(Service):
    APPLY = Operation("unit.apply", Permission.MANAGE, owner=True)

    async def apply(self, caller: Caller, commands: Sequence[c.Command]) -> list[Any]:
        """All of them or none; what each came to."""
        async with self._call(caller, self.APPLY) as call:
            await call.allow()
            for command in commands:
                if not isinstance(command, c.Command):
                    raise InvalidField("commands", f"{type(command).__name__} is no command")
            return await call.commit(c.Unit(commands=tuple(commands), **call.who))
