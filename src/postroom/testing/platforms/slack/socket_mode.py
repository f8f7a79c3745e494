"""Slack's socket mode: events over a socket that the app opened, each acknowledged or sent again."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.faults import ConnectionDropped, DeliveredTwice, FaultPlan
from postroom.testing.platforms.transcript import GIVE_UP_SECONDS

ACKNOWLEDGE_WITHIN = 3 * SECOND
# At once, after a minute, after five: then the event is given up.
RETRY_AFTER = (0, 60 * SECOND, 300 * SECOND)


class SocketMode:
    def __init__(
        self,
        clock: HeldClock,
        faults: FaultPlan,
        accept: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._clock = clock
        self._faults = faults
        # Called with the id of an acknowledged envelope and what came with it.
        self._accept = accept
        self._sockets: list[tuple[web.WebSocketResponse, web.Request]] = []
        self._waiting: dict[str, asyncio.Event] = {}
        self._deliveries: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self.acknowledged: list[str] = []
        self.given_up: list[str] = []

    @property
    def connected(self) -> bool:
        return bool(self._sockets)

    async def wait_until_connected(self, connected: bool = True) -> None:
        while self.connected is not connected:
            await self._changed.wait()

    async def wait_for_acknowledgements(self, count: int) -> None:
        while len(self.acknowledged) < count:
            await self._changed.wait()

    async def drain(self) -> None:
        """Waits until every event was acknowledged or given up."""
        async with asyncio.timeout(GIVE_UP_SECONDS):
            while self._deliveries:
                await asyncio.gather(*self._deliveries)

    def push(self, envelope_id: str, kind: str, payload: dict[str, Any], *, repeated: bool = True) -> None:
        task = asyncio.create_task(self._deliver(envelope_id, kind, payload, repeated))
        self._deliveries.add(task)
        task.add_done_callback(self._deliveries.discard)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        response = web.WebSocketResponse()
        await response.prepare(request)
        hello = {"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}, "debug_info": {}}
        await response.send_str(json.dumps(hello))
        socket = (response, request)
        self._sockets.append(socket)
        self._note_change()
        try:
            async for frame in response:
                if frame.type is WSMsgType.TEXT:
                    self._take_acknowledgement(json.loads(frame.data))
        finally:
            self._sockets.remove(socket)
            self._note_change()
        return response

    async def ask_to_reconnect(self) -> None:
        """Slack renews a connection every few hours: it says so and closes it."""
        for response, _ in list(self._sockets):
            await response.send_str(json.dumps({"type": "disconnect", "reason": "refresh_requested"}))
            await response.close()

    def drop_connections(self) -> None:
        for _, request in self._sockets:
            if request.transport is not None:
                request.transport.abort()

    async def close(self) -> None:
        tasks = list(self._deliveries)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _take_acknowledgement(self, message: dict[str, Any]) -> None:
        envelope_id = message["envelope_id"]
        if waiting := self._waiting.get(envelope_id):
            waiting.set()
        self.acknowledged.append(envelope_id)
        self._accept(envelope_id, message.get("payload") or {})
        self._note_change()

    async def _deliver(self, envelope_id: str, kind: str, payload: dict[str, Any], repeated: bool) -> None:
        envelope = {
            "envelope_id": envelope_id,
            "type": kind,
            "payload": payload,
            "accepts_response_payload": kind != "events_api",
        }
        deadline = self._clock.now()
        for attempt in range(len(RETRY_AFTER) + 1 if repeated else 1):
            if attempt:
                await self._clock.wait_until(deadline + RETRY_AFTER[attempt - 1])
                envelope |= {"retry_attempt": attempt, "retry_reason": "timeout"}
            acknowledged = self._waiting[envelope_id] = asyncio.Event()
            deadline = self._clock.now() + ACKNOWLEDGE_WITHIN
            sent = await self._send(envelope)
            if self._faults.take("socket", DeliveredTwice):
                await self._send({**envelope, "retry_attempt": 1, "retry_reason": "timeout"})
            if sent and await self._wait(acknowledged, deadline):
                return
        self.given_up.append(envelope_id)
        self._note_change()

    async def _send(self, envelope: dict[str, Any]) -> bool:
        if not self._sockets:
            return False
        response, request = self._sockets[-1]
        drop = self._faults.take("socket", ConnectionDropped)
        if drop is None or drop != ConnectionDropped("before"):
            try:
                await response.send_str(json.dumps(envelope))
            except ConnectionError:
                # The client is gone, and the server has not noticed yet.
                return False
        if drop is not None and request.transport is not None:
            request.transport.abort()
        return True

    async def _wait(self, acknowledged: asyncio.Event, deadline: int) -> bool:
        timer = asyncio.create_task(self._clock.wait_until(deadline))
        answer = asyncio.create_task(acknowledged.wait())
        try:
            await asyncio.wait({timer, answer}, return_when=asyncio.FIRST_COMPLETED)
            return acknowledged.is_set()
        finally:
            timer.cancel()
            answer.cancel()
            await asyncio.gather(timer, answer, return_exceptions=True)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
