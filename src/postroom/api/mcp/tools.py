"""What callers may do: each call is made in a caller's name, and gets no further than that caller may.

An agent writes to its teammates as part of the conversation its turn is about, so that guards hold for tools
as they do for tags. The holder of a key has the work queues, exactly as far as under `/v1`.
"""

from typing import Any

from postroom.api.auth.errors import EntryRefused
from postroom.api.dependencies import Dependencies
from postroom.errors import InvalidField
from postroom.kernel.checks import split_path
from postroom.kernel.model import NewMessage
from postroom.services.callers import Caller


class NotForKeys(EntryRefused):
    """A key opens the work queues only: publish, claim, complete and fail."""

    code = "KEY_NOT_HERE"


class Tools:
    def __init__(self, deps: Dependencies) -> None:
        self._services = deps.services

    async def send_message(self, caller: Caller, to: str, text: str) -> dict[str, Any]:
        return {"messageId": await self._services.conversations.write_to(caller, to, text)}

    async def read_inbox(self, caller: Caller, limit: int = 20) -> list[dict[str, Any]]:
        return await self._services.conversations.read_inbox(caller, max(1, min(limit, 200)))

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
        return {"id": await self._services.questions.ask(caller, question, options)}

    async def read_answer(self, caller: Caller, id: str) -> dict[str, Any]:  # noqa: A002
        found = await self._services.questions.read(caller, id)
        return {"open": found.open, "answer": found.answer}

    async def list_agents(self, caller: Caller) -> list[dict[str, Any]]:
        found = await self._services.agents.directory(caller)
        return [{"id": each.id, "name": each.name, "teams": list(each.teams)} for each in found]

    async def search_history(self, caller: Caller, query: str, limit: int = 20) -> list[dict[str, Any]]:
        return await self._services.conversations.search(caller, query, max(1, min(limit, 100)))

    async def tasks(
        self, caller: Caller, action: str, task: str = "", fields: dict[str, Any] | None = None
    ) -> Any:
        tasks, given = self._services.tasks, dict(fields or {})
        if action == "list":
            return [each.document() for each in await tasks.list_all(caller, **given)]
        if action == "add":
            return (await tasks.add(caller, given.pop("title", ""), **given)).document()
        if action == "change":
            return (await tasks.change(caller, task, **given)).document()
        if action == "comment":
            made = await tasks.comment(caller, task, str(given.get("content", "")), author=caller.name)
            return made.document()
        raise InvalidField("action", "must be list, add, change or comment")
