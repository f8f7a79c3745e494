"""Waiting for a provider's rate limit: with a growing pause, one word to the person, and an end.

The limit is the agent's, so while it lasts one message asks again at the end of each pause, and the others of
that agent wait without asking. No wait uses up an attempt, and none outlasts `TurnRules.rate_limit_s`.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from postroom.clock import SECOND, iso, micros
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office.lanes.batches import Batch, is_combined
from postroom.office.ports import RoomPort
from postroom.office.turns.outcomes import TurnRules, gave_up, held, tell
from postroom.providers.protocol import Failed

KIND = "rate_limit"
GIVEN_UP = "rate_limited"  # the kind of the dead letters
# The first pause when the server names none; what it doubles up to; and the longest that a server may name.
FIRST_PAUSE_S = 60.0
SHORTEST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 3600.0
LONGEST_NAMED_S = 24 * 3600.0
# From here on the person hears of it.
LONG_WAIT_S = 300.0


class AgentWait(msgspec.Struct, frozen=True, kw_only=True):
    """Until when an agent asks nothing of these providers, and what it was told `tries` times in a row."""

    until: int = 0
    tries: int = 0
    reason: str = ""
    providers: tuple[str, ...] = ()

    def holds(self, now: int) -> bool:
        """One that lasts longer than any may was begun by a clock that was ahead."""
        return now < self.until <= now + micros(max(LONGEST_PAUSE_S, LONGEST_NAMED_S))

    def after(self, problem: Failed, now: int) -> "AgentWait":
        """One more refusal. A moment that is past tells nothing, and one that is far away may be meant for
        something else; a server that always names the same short pause is believed less and less."""
        named = 0.0 if problem.retry_at is None else (problem.retry_at - now) / SECOND
        first = SHORTEST_PAUSE_S if named > 0 else FIRST_PAUSE_S
        growing = min(first * 2 ** min(self.tries, 30), LONGEST_PAUSE_S)
        pause = max(growing, min(named, LONGEST_NAMED_S))
        return msgspec.structs.replace(
            self, until=now + micros(pause), tries=self.tries + 1, reason=problem.message
        )


class MessageWait(msgspec.Struct, frozen=True, kw_only=True):
    """Since when one message waits, and whether its person knows. `since` 0: it does not wait any more."""

    since: int = 0
    told: bool = False


class RateLimits:
    """What is kept of the waits of one agent, who asks these providers."""

    def __init__(self, room: RoomPort, agent: str, providers: tuple[str, ...]) -> None:
        self._room = room
        self._agent = agent
        self._providers = providers

    async def of_agent(self) -> AgentWait:
        """A wait for other providers than today's is none."""
        record = await self._room.latest_record(KIND, _agent_key(self._agent))
        found = msgspec.convert(record.data, AgentWait) if record is not None else AgentWait()
        return found if found.providers == self._providers else AgentWait(providers=self._providers)

    async def of_messages(self, batch: Batch) -> dict[str, MessageWait]:
        found: dict[str, MessageWait] = {}
        for message in batch.messages:
            record = await self._room.latest_record(KIND, message.id)
            if record is not None:
                found[message.id] = msgspec.convert(record.data, MessageWait)
        return found


def remember_agent(agent: str, wait: AgentWait) -> c.Command:
    return c.AddRecord(kind=KIND, key=_agent_key(agent), data=msgspec.to_builtins(wait), actor=agent)


def ended(agent: str, wait: AgentWait) -> list[c.Command]:
    """The provider has answered: the next limit begins with a short pause again."""
    return [remember_agent(agent, AgentWait(providers=wait.providers))] if wait.tries else []


def keep_waiting(
    batch: Batch, agent: str, wait: AgentWait, waits: Mapping[str, MessageWait], rules: TurnRules, now: int
) -> list[c.Command]:
    """Later, or no more: each message by how long it has waited itself."""
    commands: list[c.Command] = []
    over: list[Message] = []
    for message in batch.messages:
        before = waits.get(message.id) or MessageWait()
        own = before if 0 < before.since <= now else MessageWait(since=now, told=before.told)
        end = own.since + micros(rules.rate_limit_s)
        if now >= end:
            over.append(message)
            reason = f"{wait.reason} It was waited for since {iso(own.since)}, and no longer."
            commands.append(c.Fail(reason=reason, kind=GIVEN_UP, retry=False, **held(message, agent)))
            own = MessageWait()
        else:
            until = min(wait.until, end)
            reason = f"rate limited until {iso(until)}: {wait.reason}"
            # Counted from the store's time, which is not this clock's while that was put back.
            commands.append(c.Snooze(seconds=(until - now) / SECOND, reason=reason, **held(message, agent)))
            if message is batch.primary and until - own.since >= micros(LONG_WAIT_S) and not own.told:
                commands += _tell_of_wait(message, agent, wait, until, end)
                own = msgspec.structs.replace(own, told=True)
        if own != before:
            commands.append(_remember_message(message, agent, own))
    if over and not is_combined(batch.primary):
        hours = f"{rules.rate_limit_s / 3600:g}"
        reason = f"{wait.reason} It did not end in {hours} hours (guards.rate_limit_s)."
        commands += tell(batch.primary, agent, gave_up(agent, reason, over), kind="office.failure")
    return commands


def _tell_of_wait(message: Message, agent: str, wait: AgentWait, until: int, end: int) -> list[c.Command]:
    if is_combined(message):
        return []
    text = (
        f"@{agent} has to wait: {wait.reason}\n"
        f"Your message goes on by itself, next at {iso(until)}, and nothing is lost. "
        f"If the limit still holds at {iso(end)}, you are told."
    )
    return tell(message, agent, text, kind="office.notice")


def _remember_message(message: Message, agent: str, wait: MessageWait) -> c.Command:
    data: dict[str, Any] = msgspec.to_builtins(wait)
    return c.AddRecord(kind=KIND, key=message.id, data=data, message_id=message.id, actor=agent)


def _agent_key(agent: str) -> str:
    return f"agent/{agent}"
