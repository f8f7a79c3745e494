"""Completions of several workers, sent together: while one call is on its way, the next ones gather."""

import asyncio
from typing import Any

import httpx2

from postroom.client.asynchronous import AsyncClient
from postroom.client.errors import ServiceError, refused
from postroom.client.model import Message

MOST = 100
# A service that does not know the call yet, or that refuses all because of one: then each goes alone.
NOT_TOGETHER = frozenset({404, 405, 413, 422})
Waiting = tuple[Message, Any, "asyncio.Future[None]"]


class CompletionBatch:
    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._waiting: list[Waiting] = []
        self._sending: asyncio.Task[None] | None = None

    async def complete(self, message: Message, result: Any) -> None:
        """Returns when the service has it; raises what the service refused this one with."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, result, done))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())
        await done

    async def _send(self) -> None:
        try:
            while self._waiting:
                some, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                await self._send_some(some)
        finally:
            self._sending = None

    async def _send_some(self, some: list[Waiting]) -> None:
        if len(some) > 1:
            try:
                answers = await self._client.complete_many([(message, result) for message, result, _ in some])
                for answer, (_, _, done) in zip(answers, some, strict=True):
                    _settle(done, refused(answer.status, {"error": answer.error}) if answer.error else None)
                return
            except httpx2.TransportError as error:
                _refuse(some, error)
                return
            except Exception as error:
                # Such as a result that cannot be sent: it is its own worker's, and nobody waits for ever.
                if isinstance(error, ServiceError) and error.status not in NOT_TOGETHER:
                    _refuse(some, error)
                    return
        await asyncio.gather(*(self._send_one(each) for each in some))

    async def _send_one(self, waiting: Waiting) -> None:
        message, result, done = waiting
        try:
            await self._client.complete(message, result)
        except Exception as error:
            _settle(done, error)
        else:
            _settle(done, None)


def _refuse(some: list[Waiting], error: Exception) -> None:
    for _, _, done in some:
        _settle(done, error)


def _settle(done: "asyncio.Future[None]", error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
