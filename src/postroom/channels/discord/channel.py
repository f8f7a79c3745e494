"""One bot on Discord, through discord.py. The gateway never repeats: after each start, what was missed since
the last stored message of each chat is fetched.
"""

import asyncio
import contextlib
import hashlib
import io
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import aiohttp
import discord
import discord.gateway
import discord.http
import yarl

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore, Sink
from postroom.channels.discord.events import COMMAND, make_envelope, read_event
from postroom.channels.discord.markup import CAPABILITIES, render
from postroom.channels.errors import (
    ChannelMisconfigured,
    FileUnavailable,
    MaybeSent,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)
from postroom.channels.model import Address, Choice, Envelope, Piece, ReceivedFile, ReceivedMessage
from postroom.services.chat_commands import MENU

log = logging.getLogger("postroom.channels")

PLACEHOLDER = "your_token_here"
NONCE_CHARS = 25
MOST_CHATS = 2000
PAGE = 100
REQUEST_S = 30.0
LONGEST_WAIT_S = 30.0
UNKNOWN_CHANNEL = 10003
DEFER_UPDATE, ANSWER, EPHEMERAL = 6, 4, 1 << 6
TEXT_OPTION = 3


class _GatewayClient(discord.Client):
    """Hands on what the gateway says, as it said it."""

    def __init__(self) -> None:
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
        super().__init__(
            intents=intents,
            max_messages=None,
            max_ratelimit_timeout=LONGEST_WAIT_S,
            enable_debug_events=True,
            chunk_guilds_at_startup=False,
            guild_ready_timeout=0.5,
        )
        self.told: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    async def on_socket_raw_receive(self, text: str) -> None:
        event = json.loads(text)
        if event.get("t") in ("READY", "MESSAGE_CREATE", "INTERACTION_CREATE"):
            self.told.put_nowait((event["t"], event["d"]))


class DiscordBotChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        self._token = str(options.get("bot_token") or "")
        if not self._token or self._token == PLACEHOLDER:
            reason = "it has no bot token. See: postroom channel setup discord"
            raise ChannelMisconfigured(channel=name, reason=reason)
        # The library knows one Discord for all of a process.
        if base := options.get("base_url"):
            discord.http.Route.BASE = str(base)
        if gateway := options.get("gateway_url"):
            discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(str(gateway))
        self._client: _GatewayClient | None = None
        self._bot = ""
        # The last message of each chat that is stored, or left nothing to store.
        self._last: dict[str, str] = {}

    async def open(self) -> None:
        await self._log_in()

    async def _log_in(self) -> _GatewayClient:
        await self.close()
        client = _GatewayClient()
        try:
            await client.login(self._token)
        except discord.LoginFailure:
            await client.close()
            reason = "Discord does not know its token. Reset it on discord.com/developers, under Bot."
            raise ChannelMisconfigured(channel=self._name, reason=reason) from None
        except BaseException:
            await client.close()
            raise
        assert client.user is not None
        self._client, self._bot = client, str(client.user.id)
        return client

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def receive(self, store: EnvelopeStore) -> None:
        client = self._client
        if client is None or client.is_closed() or client.ws is not None:
            client = await self._log_in()
        self._last = {**await store.read_cursor(), **self._last}
        async with asyncio.TaskGroup() as group:
            connecting = group.create_task(self._connect(client))
            storing = group.create_task(self._store_all(client, store))
            connecting.add_done_callback(lambda done: storing.cancel())

    async def _connect(self, client: _GatewayClient) -> None:
        try:
            await client.connect(reconnect=True)
        except discord.PrivilegedIntentsRequired:
            reason = (
                "it may not read messages. On discord.com/developers, under Bot, switch on Message Content"
                " Intent."
            )
            raise ChannelMisconfigured(channel=self._name, reason=reason) from None
        raise ConnectionError("Discord closed the connection.")

    async def _store_all(self, client: _GatewayClient, store: EnvelopeStore) -> None:
        """One after the other, in the order in which they were told."""
        while True:
            kind, data = await client.told.get()
            if kind == "READY":
                # A new session: what came since the last one is not told by the gateway.
                await self._offer_commands(client)
                for chat, last in list(self._last.items()):
                    await self._catch_up(client, chat, last, store)
            elif (envelope := make_envelope(kind, data)) is not None:
                await self._store(envelope, store)
                if kind == "INTERACTION_CREATE":
                    await self._acknowledge(client, data)

    async def _store(self, envelope: Envelope, store: EnvelopeStore) -> None:
        data = envelope.raw["data"]
        if envelope.raw["kind"] == "MESSAGE_CREATE":
            chat = data["channel_id"]
            before = self._last.pop(chat, "0")
            self._last[chat] = max(before, data["id"], key=int)
            if len(self._last) > MOST_CHATS:
                del self._last[next(iter(self._last))]
        if read_event(envelope, self._bot) is not None:
            await store([envelope], self._last)

    async def _catch_up(self, client: _GatewayClient, chat: str, last: str, store: EnvelopeStore) -> None:
        while True:
            try:
                page = await client.http.logs_from(int(chat), PAGE, after=int(last))
            except (discord.NotFound, discord.Forbidden):
                self._last.pop(chat, None)
                return
            # History does not say whether a chat is in a server, where only what mentions the bot is for it.
            place = await self._find_server(client, chat) if page else {}
            for message in sorted(page, key=lambda each: int(each["id"])):
                last = str(message["id"])
                data: dict[str, Any] = {**message, **place, "channel_id": chat}
                if (envelope := make_envelope("MESSAGE_CREATE", data)) is not None:
                    await self._store(envelope, store)
            if len(page) < PAGE:
                return

    async def _find_server(self, client: _GatewayClient, chat: str) -> dict[str, str]:
        found: Any = await client.http.get_channel(int(chat))
        return {"guild_id": str(found["guild_id"])} if found.get("guild_id") else {}

    async def _offer_commands(self, client: _GatewayClient) -> None:
        option = {"type": TEXT_OPTION, "name": "words", "description": "What it is about", "required": False}
        wanted: list[Any] = [
            {"name": name, "description": text, "type": 1, "options": [option]} for name, text in MENU.items()
        ]
        try:
            await client.http.bulk_upsert_global_commands(int(self._bot), wanted)
        except discord.HTTPException as error:
            log.warning("%s: the commands are not in Discord's menu: %s", self._name, error)

    async def _acknowledge(self, client: _GatewayClient, data: dict[str, Any]) -> None:
        """Discord waits three seconds only. The answer itself is a message like any other."""
        answer: dict[str, Any] = {"type": DEFER_UPDATE}
        if data["type"] == COMMAND:
            answer = {"type": ANSWER, "data": {"content": "…", "flags": EPHEMERAL}}
        route = discord.http.Route(
            "POST", "/interactions/{id}/{token}/callback", id=data["id"], token=data["token"]
        )
        with contextlib.suppress(discord.HTTPException):
            await client.http.request(route, json=answer)

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        return read_event(envelope, self._bot)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        try:
            return await self._send(address.chat, address, piece, key, file)
        except discord.NotFound as missing:
            if missing.code != UNKNOWN_CHANNEL or self._client is None:
                raise _explain(missing) from missing
        # It is not a chat's id but a person's.
        try:
            private = await self._client.create_dm(discord.Object(int(address.chat)))
            return await self._send(str(private.id), address, piece, key, file)
        except Exception as error:
            raise _explain(error) from error

    async def _send(self, chat: str, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        if self._client is None:
            raise NotSent("Discord is not connected.")
        place = self._client.get_partial_messageable(int(chat))
        given: dict[str, Any] = {"nonce": hashlib.sha256(key.encode()).hexdigest()[:NONCE_CHARS]}
        if address.reply_to:
            given["reference"] = discord.MessageReference(
                message_id=int(address.reply_to), channel_id=int(chat), fail_if_not_exists=False
            )
        if file is not None:
            content = await asyncio.to_thread(file.read)
            given["file"] = discord.File(io.BytesIO(content), filename=Path(piece.path or "file").name)
        else:
            given["content"] = render(piece.text)
        if piece.choices:
            given["view"] = _make_view(piece.choices)
        try:
            sent = await place.send(allowed_mentions=discord.AllowedMentions.none(), **given)
        except discord.NotFound:
            raise
        except Exception as error:
            raise _explain(error) from error
        return str(sent.id)

    async def edit(self, address: Address, platform_id: str, piece: Piece) -> None:
        if self._client is None:
            raise NotSent("Discord is not connected.")
        place = self._client.get_partial_messageable(int(address.chat))
        try:
            await place.get_partial_message(int(platform_id)).edit(content=render(piece.text))
        except Exception as error:
            raise _explain(error) from error

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        timeout = aiohttp.ClientTimeout(total=None, connect=REQUEST_S, sock_read=REQUEST_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(file.handle, raise_for_status=True) as answer,
            ):
                async for chunk in answer.content.iter_chunked(65536):
                    target.write(chunk)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise FileUnavailable(name=file.name, reason=f"Discord did not send it ({error}).") from None

    async def show_typing(self, address: Address) -> None:
        if self._client is not None:
            await self._client.http.send_typing(int(address.chat))


def _make_view(choices: tuple[Choice, ...]) -> discord.ui.View:
    view = discord.ui.View(timeout=None)
    for choice in choices:
        view.add_item(discord.ui.Button(label=choice.label, custom_id=choice.value))
    # Presses come as events of their own, also after a restart.
    view.stop()
    return view


def _explain(error: Exception) -> Exception:
    """A `SendProblem`, or the error itself when it is a fault of this program."""
    match error:
        case SendProblem():
            return error
        case discord.RateLimited():
            return RetryAfter("Discord asks to wait.", error.retry_after)
        case discord.HTTPException() if error.status == 429:
            return RetryAfter("Discord asks to wait.", LONGEST_WAIT_S)
        case discord.HTTPException() if error.status >= 500:
            return NotSent(f"Discord failed ({error.status}).")
        case discord.HTTPException() if error.status == 401:
            return NotSent("Discord does not know the bot's token any more.")
        case discord.HTTPException() if error.status == 413:
            return Undeliverable("The file is too large for Discord.", whole=False)
        case discord.HTTPException():
            return Undeliverable(error.text or f"Discord refused it ({error.status}).")
        case aiohttp.ClientConnectorError():
            return NotSent("Discord could not be reached.")
        case aiohttp.ClientError() | TimeoutError() | OSError():
            return MaybeSent("The connection to Discord broke before it answered.")
        case _:
            return error
