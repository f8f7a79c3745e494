"""How many requests other processes have let through in the last minute. Each tells its own now and then, so
that a limit holds for all of them together. What a process told that is gone is dropped by the others.
"""

from postroom.clock import SECOND
from postroom.kernel import jsontext, service_commands
from postroom.kernel.facts import RATE, ROOM
from postroom.kernel.ports import FactFilter
from postroom.kernel.transitions.context import TransitionContext

PREFIX = "requests/"
LASTS = 60 * SECOND


def share(ctx: TransitionContext, command: service_commands.ShareRequestCounts) -> dict[str, int]:
    """Keep what this process has counted; the sum of what the others have."""
    others: dict[str, int] = {}
    before: dict[str, int] = {}
    old: list[str] = []
    own = PREFIX + command.process
    for fact in ctx.session.scan(FactFilter(kind=RATE, prefix=PREFIX)):
        counts = jsontext.decode(fact.data)
        if fact.key == own:
            before = counts
        elif fact.updated_at <= ctx.now - LASTS:
            old.append(fact.key)
        else:
            for name, count in counts.items():
                others[name] = others.get(name, 0) + count
    ctx.session.drop_facts([(ROOM, RATE, key) for key in old])
    if command.counts or before:
        # Who has nothing to tell writes nothing, so that a room at rest stays at rest.
        ctx.session.remember(RATE, own, command.counts, ctx.now)
    return others
