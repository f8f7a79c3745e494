"""Named leaderships: leases in the store, so that of many processes one does what only one may."""

from postroom.clock import micros
from postroom.kernel import commands as c
from postroom.kernel.facts import LEADER, Leadership, to_leadership
from postroom.kernel.ports import FactFilter
from postroom.kernel.transitions.context import TransitionContext


def lead(ctx: TransitionContext, command: c.Lead) -> bool:
    """Whether the holder leads now. Giving up is a lease that has ended."""
    until = ctx.now + micros(command.seconds)
    before = ctx.session.fact(LEADER, command.name)
    if before is not None:
        known = to_leadership(before.data)
        if known.holder != command.holder and known.until > ctx.now:
            return False
    ctx.session.remember(LEADER, command.name, Leadership(command.holder, until), ctx.now)
    return until > ctx.now


def end_leaderships(ctx: TransitionContext, holder: str) -> None:
    """Of a holder, and of those whose names begin with it and a slash."""
    for fact in ctx.session.scan(FactFilter(kind=LEADER)):
        known = to_leadership(fact.data)
        is_theirs = known.holder == holder or known.holder.startswith(f"{holder}/")
        if is_theirs and known.until > ctx.now:
            ctx.session.put(fact.next(Leadership(known.holder, ctx.now), ctx.now))
