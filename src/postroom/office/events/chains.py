"""When the work of a team on a person's message begins, and when nobody is at it any more."""

from typing import Any

from postroom.kernel.ledger import Event
from postroom.kernel.model import Message
from postroom.office.events.lookup import Lookup
from postroom.office.lanes.batches import team_of

Told = list[tuple[str, dict[str, Any]]]


def chain_starts(message: Message, lookup: Lookup) -> Told:
    """When the agent belongs to a team; its own work could be handed on."""
    team = _team(message, lookup)
    if team is None:
        return []
    known = lookup.directory.teams[team]
    data = {
        "teamId": team,
        "teamName": known.name or team,
        "agents": list(lookup.directory.members(team)),
        "leader": lookup.directory.leader_of(team) or "",
    }
    return [("team_chain_start", data)]


async def chain_ends(event: Event, message: Message, lookup: Lookup) -> Told:
    """After the last turn of the conversation, as things stood when this turn was over."""
    talk = [m for m in await lookup.conversation(message.correlation_id) if _is_work(m)]
    first = next((m for m in talk if m.message_type == "office.mail"), None)
    team = _team(first, lookup) if first else None
    if team is None or any(_was_open(m, event.time) for m in talk):
        return []
    if await _another_ends_with(event, talk, lookup):
        return []
    steps = [m for m in talk if isinstance(m.result, dict) and "answer" in m.result]
    before = [m for m in steps if (m.finished_at or 0) <= event.time]
    agents = list(dict.fromkeys(m.agent for m in before if m.agent))
    return [("team_chain_end", {"teamId": team, "totalSteps": len(before), "agents": agents})]


async def _another_ends_with(event: Event, talk: list[Message], lookup: Lookup) -> bool:
    """Turns that are committed together end at the same time; the last of them ends the chain."""
    ids = {m.id for m in talk}
    return any(
        later.type == event.type and later.message_id in ids for later in await lookup.same_time(event)
    )


def _is_work(message: Message) -> bool:
    return message.message_type in ("office.mail", "office.note")


def _was_open(message: Message, time: int) -> bool:
    """Not whether it is open now: whoever reads the ledger later is told the same."""
    if message.created_at > time:
        return False
    return message.finished_at is None or message.finished_at > time


def _team(message: Message, lookup: Lookup) -> str | None:
    teams = lookup.directory.teams
    addressed = team_of(message)
    if addressed in teams:
        return addressed
    return next(iter(lookup.directory.teams_of(message.agent or "")), None)
