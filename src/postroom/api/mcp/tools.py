"""What callers may do: each call is made in a caller's name, and gets no further than that caller may.

An agent writes to its teammates as part of the conversation its turn is about, so that guards hold for tools
as they do for tags. The holder of a key has the work queues, exactly as far as under `/v1`.
"""

from typing import Any

from postroom.api.auth.errors import EntryRefused
from postroom.api.dependencies import Dependencies
from postroom.api.office import history, message_rows
from postroom.api.office.messages import short_id
from postroom.errors import InvalidField, NotFound
from postroom.kernel import commands as c
from postroom.kernel.checks import DEFAULT_SCOPE, split_path
from postroom.kernel.model import Message, NewMessage
from postroom.kernel.states import OPEN, State
from postroom.office import queues
from postroom.office.intake.intake import Incoming
from postroom.office.lanes.batches import text_of
from postroom.office.tasks import Board
from postroom.office.turns import outcomes
from postroom.services.callers import Caller, CallerKind

CHANNEL = "mcp"
DESK = "reviews"


class TurnOver(EntryRefused):
    """@{agent} may do this during a turn only, and the turn of this token is over."""

    code = "TURN_OVER"


class NotTeammates(EntryRefused):
    """@{agent} may write to members of its teams only, and @{to} is in none of them."""

    code = "NOT_TEAMMATES"


class NotForKeys(EntryRefused):
    """A key opens the work queues only: publish, claim, complete and fail."""

    code = "KEY_NOT_HERE"


class Tools:
    def __init__(self, front: Dependencies) -> None:
        self._front = front
        self._room = front.room
        self._services = front.services

    async def _turn(self, caller: Caller) -> Message:
        """What the agent works on at the moment."""
        try:
            message = await self._room.get(caller.turn)
        except NotFound:
            raise TurnOver(agent=caller.name) from None
        if message.state is not State.CLAIMED:
            raise TurnOver(agent=caller.name)
        return message

    def _board(self) -> Board:
        return Board(self._room, lambda: self._front.staff.office.directory)

    async def send_message(self, caller: Caller, to: str, text: str) -> dict[str, Any]:
        directory = self._front.staff.office.directory
        found = directory.find(to.removeprefix("@"))
        if found is None:
            raise InvalidField("to", f'there is no agent or team "{to}"')
        if not text.strip():
            raise InvalidField("text", "is empty")
        if caller.kind is CallerKind.AGENT:
            cause = await self._turn(caller)
            team = directory.common_team(caller.name, found.agent, found.team)
            if team is None or found.agent == caller.name:
                raise NotTeammates(agent=caller.name, to=to)
            note = outcomes.handed(cause, caller.name, found.agent, text, team, CHANNEL)
            [receipt] = await self._room.run(note)
            return {"messageId": receipt.id}
        message_id = short_id(CHANNEL)
        mail = Incoming(
            channel=CHANNEL,
            sender=caller.name,
            sender_id=caller.name,
            text=text,
            platform_id=message_id,
            agent=found.team or found.agent,
        )
        await self._front.staff.office.take_in(mail)
        return {"messageId": message_id}

    async def read_inbox(self, caller: Caller, limit: int = 20) -> list[dict[str, Any]]:
        """Answers to what this caller has sent: to an agent the newest, to others each once."""
        limit = max(1, min(limit, 200))
        if caller.kind is CallerKind.AGENT:
            return await self._answers(caller.name, limit)
        await self._room.run(queues.open_outbox(CHANNEL))
        claimed = await self._room.claim(queues.outbox(CHANNEL), limit=200, worker=caller.name)
        mine = [message for message in claimed if message.sender_id == caller.name][:limit]
        async with self._room.unit() as unit:
            for message in claimed:
                if message in mine:
                    unit.complete(message, {"read by": caller.name})
                else:
                    unit.release(message)
        return [
            {
                "from": message.agent,
                "text": text_of(message),
                "messageId": message_rows.message_id_of(message),
            }
            for message in mine
        ]

    async def _answers(self, agent: str, limit: int) -> list[dict[str, Any]]:
        sent = await self._room.numbered(
            scope=queues.SCOPE, labels={"by": CHANNEL, "from": agent}, newest_first=True, limit=limit
        )
        return [
            {
                "from": message.agent,
                "messageId": message.id,
                "about": text_of(message)[:200],
                "waiting": message.state in OPEN,
                "text": message.result.get("answer") if isinstance(message.result, dict) else None,
                "state": message.state,
            }
            for _, message in sent
        ]

    async def publish(self, caller: Caller, queue: str, body: Any) -> dict[str, Any]:
        [made] = await self._services.messages.publish(caller, *split_path(queue), [NewMessage(body=body)])
        return {"id": made.found.message.id}

    async def claim(self, caller: Caller, queue: str, limit: int = 1) -> list[dict[str, Any]]:
        found = await self._services.claims.claim(caller, [split_path(queue)], limit=limit)
        messages = [each.message for each in found]
        return [{"id": each.id, "claim_token": each.claim_token, "body": each.body} for each in messages]

    async def complete(
        self,
        caller: Caller,
        id: str,  # noqa: A002
        claim_token: str,
        result: Any = None,
    ) -> None:
        await self._services.claims.complete(caller, id, claim_token, result=result)

    async def fail(self, caller: Caller, id: str, claim_token: str, reason: str) -> None:  # noqa: A002
        await self._services.claims.fail(caller, id, claim_token, reason=reason)

    async def ask_human(self, caller: Caller, question: str, options: list[str]) -> dict[str, Any]:
        """A question in a queue that people answer; the answer is the message's result."""
        cause = await self._turn(caller) if caller.kind is CallerKind.AGENT else None
        queue = f"{DEFAULT_SCOPE}/{DESK}"
        await self._room.run(c.CreateQueue(queue=queue, settings={}, exist_ok=True, actor=caller.name))
        spec = {
            "title": f"@{caller.name} asks",
            "sections": [
                {"type": "context", "content": question},
                {"type": "decision", "options": options or ["yes", "no"]},
            ],
        }
        message = NewMessage(
            body={"question": question},
            message_type="office.question",
            hitl_spec=spec,
            correlation_id=cause.correlation_id if cause else None,
            causation_id=cause.id if cause else None,
            source_type="agent" if cause else "user",
            source_id=caller.name,
        )
        receipts = await self._room.run(c.Publish(queue=queue, messages=[message], actor=caller.name))
        return {"id": receipts[0].id}

    async def read_answer(self, caller: Caller, id: str) -> dict[str, Any]:  # noqa: A002
        message = await self._room.get(id)
        theirs = caller.kind is CallerKind.AGENT and message.source_id != caller.name
        if message.message_type != "office.question" or theirs:
            raise InvalidField("id", "is no question of yours")
        return {"open": message.state in OPEN, "answer": message.result}

    async def list_agents(self, caller: Caller) -> list[dict[str, Any]]:
        directory = self._front.staff.office.directory
        return [
            {"id": agent.id, "name": agent.name, "teams": list(directory.teams_of(agent.id))}
            for agent in directory.agents.values()
        ]

    async def search_history(self, caller: Caller, query: str, limit: int = 20) -> list[dict[str, Any]]:
        """What was said to and by the agent itself; the owner's clients search all agents."""
        whose = caller.name if caller.kind is CallerKind.AGENT else None
        rows = await history.of_agent(self._room, whose, 1000, 0)
        words = query.casefold().split()
        found = [row for row in rows if all(word in row["content"].casefold() for word in words)]
        return found[: max(1, min(limit, 100))]

    async def tasks(
        self, caller: Caller, action: str, task: str = "", fields: dict[str, Any] | None = None
    ) -> Any:
        board, given = self._board(), dict(fields or {})
        if action == "list":
            return [each.shown() for each in await board.all(**given)]
        if action == "add":
            return (await board.add(given.pop("title", ""), **given)).shown()
        if action == "change":
            return (await board.change(task, **given)).shown()
        if action == "comment":
            made = await board.comments.add(
                task, str(given.get("content", "")), author=caller.name, author_type="agent"
            )
            return made.shown()
        raise InvalidField("action", "must be list, add, change or comment")
