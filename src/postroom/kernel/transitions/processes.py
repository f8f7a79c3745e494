"""Which processes have the store open: each tells of itself now and then. Not events: nothing has changed.

What a process told that was killed stays until another in its place begins, or for a month.
"""

from typing import Any

import msgspec

from postroom.clock import SECOND
from postroom.kernel import checks, jsontext, service_commands
from postroom.kernel.facts import PROCESS, ROOM
from postroom.kernel.ports import FactFilter
from postroom.kernel.transitions.context import TransitionContext

# Three times as long as the longest pause between two signs.
SILENT = 45 * SECOND
FORGOTTEN = 30 * 24 * 3600 * SECOND


class KnownProcess(msgspec.Struct, frozen=True):
    """What a process told of itself, and so many microseconds ago."""

    name: str
    data: dict[str, Any]
    age: int

    @property
    def is_silent(self) -> bool:
        return self.age > SILENT


def list_processes(ctx: TransitionContext, command: service_commands.ListProcesses) -> list[KnownProcess]:
    """All that are known, by name."""
    known = {
        fact.key: KnownProcess(fact.key, jsontext.decode(fact.data), max(0, ctx.now - fact.updated_at))
        for fact in ctx.session.scan(FactFilter(kind=PROCESS))
    }
    own = command.process
    if own is not None:
        checks.check_name("process", own, ctx.limits)
        checks.small_json("data", command.data, ctx.limits.record_bytes)
        forgotten = [
            each.name for each in known.values() if each.name != own and _is_over(each, command.data)
        ]
        if command.ended:
            forgotten += [own] if own in known else []
        else:
            ctx.session.remember(PROCESS, own, command.data, ctx.now)
            known[own] = KnownProcess(own, command.data, 0)
        ctx.session.drop_facts([(ROOM, PROCESS, each) for each in forgotten])
        for each in forgotten:
            del known[each]
    return sorted(known.values(), key=lambda each: each.name)


def _is_over(other: KnownProcess, data: dict[str, Any]) -> bool:
    """Whether nobody asks for it any more: another does the same in its place, or it was long ago."""
    fields = ("host", "roles")
    is_replaced = other.is_silent and all(other.data.get(field) == data.get(field) for field in fields)
    return is_replaced or other.age > FORGOTTEN
