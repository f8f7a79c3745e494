"""The work queue for the holder of a key: the same endpoints as over HTTP, called within the process.

So what a key may do, how often, and what the audit keeps of it are decided in one place.
"""

from typing import Any
from urllib.parse import quote

import httpx2
from starlette.types import ASGIApp

from postroom.errors import PostroomError
from postroom.kernel.checks import split_path


class ServiceRefused(PostroomError):
    """{message} ({code})"""

    code = "SERVICE_REFUSED"


class QueueCalls:
    """For one call of one key's holder."""

    def __init__(self, app: ASGIApp, authorization: str, tenant: str) -> None:
        self._app = app
        self.tenant = tenant
        self._headers = {"authorization": authorization}

    async def post(self, path: str, body: Any) -> Any:
        transport = httpx2.ASGITransport(app=self._app, client=("127.0.0.1", 0))
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", headers=self._headers
        ) as http:
            answer = await http.post(f"/v1{path}", json=body)
        told = answer.json()
        if answer.status_code >= 400:
            problem = told["error"]
            raise ServiceRefused(message=problem["message"], code=problem["code"])
        return told["data"]

    async def publish(self, queue: str, body: Any) -> dict[str, Any]:
        return {"id": (await self.post(f"{_place(queue)}/messages", {"body": body}))["id"]}

    async def claim(self, queue: str, limit: int) -> list[dict[str, Any]]:
        found = await self.post(f"{_place(queue)}/claim", {"batch_size": limit})
        return [{name: each[name] for name in ("id", "claim_token", "body")} for each in found]

    async def settle(self, scope: str, message_id: str, verb: str, body: dict[str, Any]) -> None:
        await self.post(f"/scopes/{_word(scope)}/messages/{_word(message_id)}/{verb}", body)


def _place(queue: str) -> str:
    scope, slug = split_path(queue)
    return f"/scopes/{_word(scope)}/queues/{_word(slug)}"


def _word(text: str) -> str:
    return quote(text, safe="")
