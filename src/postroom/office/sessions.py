"""Which session of its provider an agent goes on with: one for all, one per person, or one per thread.

A session is resumed by its id, never as "the last one", so that nobody's words reach another by accident.
"""

from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office.post import PostRoom
from postroom.office.turns import Turn
from postroom.settings.agents import SessionScope

KIND = "session"


class Sessions:
    def __init__(self, room: PostRoom, scopes: dict[str, SessionScope]) -> None:
        self._room = room
        self._scopes = scopes

    def key(self, message: Message, agent: str) -> str:
        scope = self._scopes.get(agent, "agent")
        if scope == "agent":
            return agent
        person = f"{agent}/{message.channel}/{message.sender_id or message.sender}"
        if scope == "sender":
            return person
        return f"{person}/{message.metadata.get('thread', '')}"

    async def of(self, message: Message, agent: str) -> dict[str, str]:
        """The session to go on with at each provider."""
        record = await self._room.latest_record(KIND, self.key(message, agent))
        return dict(record.data) if record is not None else {}

    def after(self, message: Message, agent: str, turn: Turn, *, forget: bool) -> list[c.Command]:
        """What to remember of a turn; `forget` begins anew, as when the session has outgrown the model."""
        if not forget and not turn.sessions:
            return []
        data = {} if forget else dict(turn.sessions)
        return [c.AddRecord(kind=KIND, key=self.key(message, agent), data=data, actor=agent)]

    def reset(self, agent: str, message: Message | None = None) -> c.Command:
        key = agent if message is None else self.key(message, agent)
        return c.AddRecord(kind=KIND, key=key, data={}, actor=agent)
