"""What a change of agents and teams means for the room: sessions forgotten, mail of those who left ended.

Nothing waits for somebody who will not come: what was for a team goes to its new leader, and anything else
becomes a dead letter, which comes back with the agent.
"""

from collections.abc import AsyncIterator, Iterable

from postroom.errors import IdempotencyConflict, NotFound, QueueClosed, QueueFull, WrongState
from postroom.kernel import commands as c
from postroom.kernel.model import Message, NewMessage
from postroom.kernel.states import OPEN
from postroom.office import queues as places
from postroom.office.agents.errors import AgentNotFound
from postroom.office.intake.intake import MAIL
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.lanes.batches import PASSED_ON, is_combined, team_of
from postroom.office.ports import RoomPort
from postroom.office.sessions import Sessions
from postroom.office.turns import outcomes
from postroom.settings.model import Settings

PAGE = 200


async def reset(room: RoomPort, settings: Settings, agents: Iterable[str] | None = None) -> list[str]:
    """Forgets the sessions of these agents, or of all, at once or not at all; their next turns begin anew."""
    present = settings.present_agents()
    wanted = list(present) if agents is None else list(dict.fromkeys(agent.lower() for agent in agents))
    for agent in wanted:
        if agent not in present:
            raise AgentNotFound(agent=agent)
    sessions = Sessions(room, {})
    if wanted:
        commands = tuple(sessions.reset(agent) for agent in wanted)
        await room.run(c.Unit(commands=commands, actor=room.actor))
    return wanted


async def settle(room: RoomPort, before: Settings, after: Settings) -> int:
    """Brings the room from one state of the settings to another, when the lanes of those who left have ended.
    Returns how many messages became dead letters."""
    old, new = OfficeDirectory.of(before), OfficeDirectory.of(after)
    sessions = Sessions(room, {})
    for agent in old.agents:
        if agent not in new.agents:
            await room.run(sessions.reset(agent))
    for team in old.teams:
        for member in old.members(team):
            if member not in new.members(team):
                await _leave(room, places.room_of(team), member)
    return await sweep(room, new)


async def sweep(room: RoomPort, directory: OfficeDirectory) -> int:
    """Ends what waits in inboxes of agents that are not there. For each start too: whoever removed an agent
    may have been cut short."""
    ended = 0
    try:
        queues = await room.queues(places.SCOPE)
    except NotFound:
        return 0
    for queue in queues:
        agent = queue.slug.removeprefix("inbox/")
        if queue.slug == f"inbox/{agent}" and agent not in directory.agents:
            async for message in _open(room, queue.path):
                if not await _pass_on(room, message, agent, directory):
                    ended += await _end(room, message, agent)
    return ended


async def _open(room: RoomPort, queue: str, **wanted: object) -> AsyncIterator[Message]:
    cursor: str | None = None
    while True:
        try:
            page = await room.messages(queue=queue, state=tuple(OPEN), cursor=cursor, limit=PAGE, **wanted)
        except NotFound:
            return
        for message in page.messages:
            yield message
        cursor = page.next_cursor
        if cursor is None:
            return


async def _pass_on(room: RoomPort, message: Message, agent: str, directory: OfficeDirectory) -> bool:
    """Whether it was for a team that still has somebody to lead it: then it is theirs."""
    team = team_of(message) if message.message_type == MAIL else None
    leader = directory.leader_of(team) if team is not None else None
    if leader is None:
        return False
    passed = NewMessage(
        body=message.body,
        message_type=message.message_type,
        agent=leader,
        channel=message.channel,
        sender=message.sender,
        sender_id=message.sender_id,
        files=list(message.files) or None,
        metadata=dict(message.metadata) or None,
        correlation_id=message.correlation_id,
        causation_id=message.causation_id,
        hop=message.hop,
        source_type=message.source_type,
        source_id=message.source_id,
    )
    reason = f"{PASSED_ON}@{leader}, since @{agent} was removed"
    commands = (
        c.Cancel(message_id=message.id, reason=reason, actor=room.actor),
        c.Publish(queue=places.inbox(leader), messages=[passed], actor=room.actor),
    )
    try:
        await room.run(c.Unit(commands=commands, actor=room.actor))
    except WrongState:  # it came to its own end meanwhile
        return True
    except (QueueFull, QueueClosed):
        return False
    return True


async def _end(room: RoomPort, message: Message, agent: str) -> bool:
    """The person is told in the same unit; of a combined answer, with the answers of the others."""
    reason = f"@{agent} was removed"
    told: list[c.Command] = []
    if not is_combined(message):
        words = outcomes.gave_up(agent, f"{reason}.", [message])
        told = outcomes.tell(message, agent, words, kind="office.failure", key=f"removed:{message.id}")
    kill = c.Kill(message_id=message.id, reason=reason, actor=room.actor)
    try:
        await room.run(c.Unit(commands=(kill, *told), actor=room.actor))
    except WrongState:  # it came to its own end meanwhile
        return False
    except IdempotencyConflict:  # it was removed, came back, and is removed again
        await room.run(kill)
    return True


async def _leave(room: RoomPort, queue: str, member: str) -> None:
    """Posts in hand are cancelled first: who holds one learns of it, and unsubscribing ends the others."""
    async for message in _open(room, queue, subscription=member, deliveries=True):
        if message.claimed_by is not None:
            try:
                reason = f"@{member} left the team"
                await room.run(c.Cancel(message_id=message.id, reason=reason, actor=room.actor))
            except WrongState:
                continue
    try:
        await room.run(c.Unsubscribe(queue=queue, name=member, actor=room.actor))
    except NotFound:
        return
