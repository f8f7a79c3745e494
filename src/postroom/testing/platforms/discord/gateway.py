"""Discord's gateway: events of a session are numbered and kept for a resume, and not repeated otherwise."""

import asyncio
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import WSMsgType, web

from postroom.testing.platforms.base import LOOPBACK

DISPATCH, HEARTBEAT, IDENTIFY, PRESENCE, RESUME, RECONNECT = 0, 1, 2, 3, 6, 7
INVALID_SESSION, HELLO, HEARTBEAT_ACK = 9, 10, 11
AUTHENTICATION_FAILED, DISALLOWED_INTENTS = 4004, 4014
HEARTBEAT_MS = 41_250

GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
PRIVILEGED = 1 << 1 | 1 << 8 | MESSAGE_CONTENT


class _Compressor(Protocol):
    def pack(self, text: str) -> bytes: ...


class _Zlib:
    def __init__(self) -> None:
        self._stream = zlib.compressobj()

    def pack(self, text: str) -> bytes:
        return self._stream.compress(text.encode()) + self._stream.flush(zlib.Z_SYNC_FLUSH)


class _Zstd:
    def __init__(self) -> None:
        # Only clients that have this package ask for this compression.
        from zstandard import COMPRESSOBJ_FLUSH_BLOCK, ZstdCompressor

        self._stream = ZstdCompressor().compressobj()
        self._flush = COMPRESSOBJ_FLUSH_BLOCK

    def pack(self, text: str) -> bytes:
        return self._stream.compress(text.encode()) + self._stream.flush(self._flush)


@dataclass
class GatewaySession:
    id: str
    intents: int
    # Every event of the session with its number, also those sent into a broken connection.
    events: list[tuple[int, str, Any]] = field(default_factory=list)
    socket: "GatewaySocket | None" = None


class GatewaySocket:
    """One connection of a client."""

    def __init__(self, response: web.WebSocketResponse, request: web.Request) -> None:
        self._response = response
        self._request = request
        self._sending = asyncio.Lock()
        match request.query.get("compress"):
            case "zlib-stream":
                self._compressor: _Compressor | None = _Zlib()
            case "zstd-stream":
                self._compressor = _Zstd()
            case _:
                self._compressor = None

    async def send(self, op: int, data: Any, number: int | None = None, event: str | None = None) -> None:
        text = json.dumps({"op": op, "d": data, "s": number, "t": event})
        async with self._sending:
            try:
                if self._compressor is None:
                    await self._response.send_str(text)
                else:
                    await self._response.send_bytes(self._compressor.pack(text))
            except ConnectionError:
                # The client is gone and has not been missed yet; a resume brings it the event.
                pass

    async def close(self, code: int) -> None:
        await self._response.close(code=code)

    def abort(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()


class Gateway:
    """Sessions and their sockets. `greet` gives the events with which a new session begins."""

    def __init__(
        self,
        token: str,
        address: Callable[[], str],
        greet: Callable[[], list[tuple[str, Any]]],
        record_failure: Callable[[str], None],
    ) -> None:
        self._token = token
        self._address = address
        self._greet = greet
        self._record_failure = record_failure
        self._sessions: dict[str, GatewaySession] = {}
        self._changed = asyncio.Event()
        # How often a client began anew, and how often it took up a session again.
        self.identified = 0
        self.resumed = 0
        # Whether the owner of the bot has switched on the intents that Discord guards.
        self.privileged_intents = True

    @property
    def connected(self) -> bool:
        return any(session.socket is not None for session in self._sessions.values())

    async def wait_until_connected(self, connected: bool = True) -> None:
        while self.connected is not connected:
            await self._changed.wait()

    async def dispatch(self, event: str, data: Any, intent: int = 0, *, censored: Any = None) -> None:
        """Tells every session that asked for it; `censored` is for those that may not read messages."""
        for session in list(self._sessions.values()):
            if intent and not session.intents & intent:
                continue
            shown = data if censored is None or session.intents & MESSAGE_CONTENT else censored
            await self._send_event(session, event, shown)

    def drop_connections(self) -> None:
        """Every socket breaks; the sessions can be taken up again."""
        for session in self._sessions.values():
            if session.socket is not None:
                session.socket.abort()

    async def ask_to_reconnect(self) -> None:
        for session in list(self._sessions.values()):
            if session.socket is not None:
                await session.socket.send(RECONNECT, None)

    def forget_sessions(self) -> None:
        """No session can be taken up again: whoever comes back begins anew and has missed what happened."""
        self.drop_connections()
        self._sessions.clear()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        # Discord answers pings of the transport, but clients keep their own heartbeat: no help from aiohttp.
        response = web.WebSocketResponse(autoping=True)
        await response.prepare(request)
        socket = GatewaySocket(response, request)
        session: GatewaySession | None = None
        try:
            await socket.send(HELLO, {"heartbeat_interval": HEARTBEAT_MS})
            async for frame in response:
                if frame.type is not WSMsgType.TEXT:
                    continue
                payload = json.loads(frame.data)
                match payload["op"]:
                    case 1:
                        await socket.send(HEARTBEAT_ACK, None)
                    case 2:
                        session = await self._identify(socket, payload["d"])
                    case 6:
                        session = await self._resume(socket, payload["d"])
                    case op:
                        self._record_failure(f"does not implement opcode {op} of the gateway")
                        await socket.close(4001)
        finally:
            if session is not None and session.socket is socket:
                session.socket = None
                self._note_change()
                if response.close_code in (1000, 1001):
                    # A client that takes its leave cannot take up the session again.
                    self._sessions.pop(session.id, None)
        return response

    async def _identify(self, socket: GatewaySocket, data: dict[str, Any]) -> GatewaySession | None:
        if data["token"] != self._token:
            await socket.close(AUTHENTICATION_FAILED)
            return None
        if data["intents"] & PRIVILEGED and not self.privileged_intents:
            await socket.close(DISALLOWED_INTENTS)
            return None
        self.identified += 1
        session = GatewaySession(f"session-{self.identified}", data["intents"], socket=socket)
        self._sessions[session.id] = session
        for event, content in self._greet():
            if event == "READY":
                content |= {"session_id": session.id, "resume_gateway_url": self._address()}
                if "shard" in data:
                    content |= {"shard": data["shard"]}
            await self._send_event(session, event, content)
        self._note_change()
        return session

    async def _resume(self, socket: GatewaySocket, data: dict[str, Any]) -> GatewaySession | None:
        session = self._sessions.get(data["session_id"])
        if session is None or data["token"] != self._token:
            await socket.send(INVALID_SESSION, False)
            return None
        self.resumed += 1
        session.socket = socket
        for number, event, content in [entry for entry in session.events if entry[0] > data["seq"]]:
            await socket.send(DISPATCH, content, number, event)
        await self._send_event(session, "RESUMED", {"_trace": []})
        self._note_change()
        return session

    async def _send_event(self, session: GatewaySession, event: str, data: Any) -> None:
        number = len(session.events) + 1
        session.events.append((number, event, data))
        if session.socket is not None:
            await session.socket.send(DISPATCH, data, number, event)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def gateway_address(port: int) -> str:
    return f"ws://{LOOPBACK}:{port}/gateway"
