"""Agents going round in circles, found on the way a message has come since a person last said something."""

from collections import Counter
from collections.abc import AsyncIterator

import msgspec

from postroom.errors import NotFound
from postroom.kernel.model import Message
from postroom.office.guards.budgets import BudgetGuard
from postroom.office.guards.rules import GuardRules
from postroom.office.guards.similarity import TextFingerprint
from postroom.office.lanes.batches import text_of
from postroom.office.ports import RoomPort

# So many steps back are looked at, however long the way was.
STEPS = 40
# For the person behind it, the whole way is gone: no conversation has more hops than this.
WHOLE_WAY = 10_000


class Loop(msgspec.Struct, frozen=True):
    """Between whom, and how often."""

    guard: BudgetGuard
    sender: str
    receiver: str
    times: int


async def way_back(room: RoomPort, message: Message, steps: int = STEPS) -> AsyncIterator[Message]:
    """What caused it, and what caused that, up to what a person wrote, which is the last."""
    for _ in range(steps):
        if message.causation_id is None or message.from_agent is None:
            return
        try:
            message = await room.get(message.causation_id)
        except NotFound:
            return
        yield message


async def find_loop(room: RoomPort, message: Message, rules: GuardRules, since: int) -> Loop | None:
    """`since`: what was written before this moment has been looked at by a person."""
    fewest = min(rules.cycles, rules.repeats)
    if message.from_agent is None or message.hop <= fewest or message.created_at <= since:
        return None
    step = _step(message)
    seen, gists = Counter([step]), [TextFingerprint(text_of(message))]
    async for cause in way_back(room, message):
        if cause.from_agent is None or cause.created_at <= since:
            break
        seen[_step(cause)] += 1
        if _step(cause) == step and gists[0].like(gist := TextFingerprint(text_of(cause))):
            gists.append(gist)
        if len(gists) > rules.repeats:
            return Loop(BudgetGuard.REPEATS, *step, len(gists))
        if seen[step] > rules.cycles:
            return Loop(BudgetGuard.CYCLE, *step, seen[step])
    return None


def _step(message: Message) -> tuple[str, str]:
    return message.from_agent or "", message.agent or message.queue
