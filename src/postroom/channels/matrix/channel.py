"""One bot on Matrix, through matrix-nio. The place in the stream is kept with what was read up to it."""

import asyncio
import hashlib
import io
import mimetypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import aiohttp
import nio

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore, Sink
from postroom.channels.errors import (
    ChannelMisconfigured,
    FileUnavailable,
    MaybeSent,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)
from postroom.channels.html_markup import render_html
from postroom.channels.matrix.events import make_envelope, read_event
from postroom.channels.matrix.markup import CAPABILITIES
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage
from postroom.channels.styled_text import StyledText

SYNC_MS = 30_000
PAGE = 100
PAUSE_S = 5.0
TYPING_MS = 30_000


class MatrixChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        needed = ("homeserver", "user", "access_token")
        if missing := [field for field in needed if not options.get(field)]:
            reason = f"{', '.join(missing)} not set. See: postroom channel setup matrix"
            raise ChannelMisconfigured(channel=name, reason=reason)
        self._bot = str(options["user"])
        # Nothing is repeated behind our back: what may have been sent is for the delivery plan to know.
        config = nio.AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0, request_timeout=60)
        self._client = nio.AsyncClient(str(options["homeserver"]), self._bot, config=config)
        self._client.access_token = str(options["access_token"])
        self._client.user_id = self._bot

    async def open(self) -> None:
        me = await self._client.whoami()
        if isinstance(me, nio.WhoamiError):
            if me.status_code not in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_FORBIDDEN"):
                raise ConnectionError(f"The homeserver answers: {me}")
            reason = "The homeserver does not know its token. Log in anew and copy the access token."
            raise ChannelMisconfigured(channel=self._name, reason=reason)
        self._bot = self._client.user_id = me.user_id

    async def close(self) -> None:
        await self._client.close()

    async def receive(self, store: EnvelopeStore) -> None:
        since = (await store.read_cursor()).get("since")
        # The first sync tells of all rooms; only of what comes after the kept place messages are taken.
        full = True
        while True:
            news = await self._client.sync(SYNC_MS, since=since, full_state=full)
            if not isinstance(news, nio.SyncResponse):
                raise ConnectionError(f"The homeserver does not answer as it should: {news}")
            envelopes: list[Envelope] = []
            for room_id, room in news.rooms.join.items():
                events = [event.source for event in room.timeline.events]
                if room.timeline.limited and since and room.timeline.prev_batch:
                    events = [*await self._fetch_gap(room_id, since, room.timeline.prev_batch), *events]
                envelopes += [make_envelope(room_id, self._count_members(room_id), each) for each in events]
            wanted = [envelope for envelope in envelopes if read_event(envelope, self._bot) is not None]
            if wanted:
                await store(wanted, {"since": news.next_batch})
            for room_id in news.rooms.invite:
                await self._client.join(room_id)
            since, full = news.next_batch, False

    async def _fetch_gap(self, room: str, since: str, until: str) -> list[dict[str, Any]]:
        """What a sync left out, the oldest first."""
        found: list[dict[str, Any]] = []
        place = until
        while place != since:
            page = await self._client.room_messages(
                room, start=place, end=since, direction=nio.MessageDirection.back, limit=PAGE
            )
            if not isinstance(page, nio.RoomMessagesResponse):
                raise ConnectionError(f"The homeserver does not tell what was missed: {page}")
            found += [event.source for event in page.chunk]
            if not page.chunk or not page.end:
                break
            place = page.end
        return found[::-1]

    def _count_members(self, room: str) -> int:
        known = self._client.rooms.get(room)
        return known.member_count if known is not None else 2

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        return read_event(envelope, self._bot)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        room = self._find_room(address.chat)
        content = await self._upload(piece, file) if file is not None else _describe(piece.text)
        if address.thread is not None:
            content["m.relates_to"] = {"rel_type": "m.thread", "event_id": address.thread}
        elif address.reply_to:
            content["m.relates_to"] = {"m.in_reply_to": {"event_id": address.reply_to}}
        return await self._put(room, content, hashlib.sha256(key.encode()).hexdigest()[:32])

    async def _put(self, room: str, content: dict[str, Any], transaction: str) -> str:
        try:
            sent = await self._client.room_send(room, "m.room.message", content, tx_id=transaction)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _explain_connection(error) from error
        if isinstance(sent, nio.RoomSendResponse):
            return sent.event_id
        raise _explain(sent)

    async def edit(self, address: Address, platform_id: str, piece: Piece) -> None:
        new = _describe(piece.text)
        relation = {"rel_type": "m.replace", "event_id": platform_id}
        content = {**new, "body": f"* {new['body']}", "m.new_content": new, "m.relates_to": relation}
        key = f"{platform_id}/{new['body']}".encode()
        await self._put(address.chat, content, hashlib.sha256(key).hexdigest()[:32])

    def _find_room(self, chat: str) -> str:
        """A room; of a person, the one that is shared with nobody else."""
        if not chat.startswith("@"):
            return chat
        for room in self._client.rooms.values():
            if room.member_count == 2 and chat in room.users:
                return room.room_id
        raise Undeliverable(f"There is no room with {chat} yet: they must write first.")

    async def _upload(self, piece: Piece, file: BinaryIO) -> dict[str, Any]:
        name = Path(piece.path or "file").name
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        content = await asyncio.to_thread(file.read)
        try:
            answer, _ = await self._client.upload(
                io.BytesIO(content), content_type=media_type, filename=name, filesize=len(content)
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # Nobody has seen an upload, so it can be made again.
            raise NotSent(f"The upload broke off: {error}.") from error
        if not isinstance(answer, nio.UploadResponse):
            raise _explain(answer)
        kind = media_type.partition("/")[0]
        kind = f"m.{kind}" if kind in ("image", "audio", "video") else "m.file"
        info = {"mimetype": media_type, "size": len(content)}
        return {"msgtype": kind, "body": name, "filename": name, "url": answer.content_uri, "info": info}

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        try:
            answer = await self._client.download(mxc=file.handle)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise FileUnavailable(name=file.name, reason=f"the homeserver broke off ({error}).") from None
        if not isinstance(answer, nio.MemoryDownloadResponse):
            raise FileUnavailable(name=file.name, reason=f"the homeserver says: {answer}.")
        target.write(answer.body)

    async def show_typing(self, address: Address) -> None:
        await self._client.room_typing(address.chat, True, timeout=TYPING_MS)


def _describe(text: StyledText) -> dict[str, Any]:
    content: dict[str, Any] = {"msgtype": "m.text", "body": text.plain()}
    if text.spans:
        content |= {"format": "org.matrix.custom.html", "formatted_body": render_html(text)}
    return content


def _explain(error: Any) -> SendProblem:
    code, wait = getattr(error, "status_code", None), getattr(error, "retry_after_ms", None)
    status = getattr(getattr(error, "transport_response", None), "status", 0)
    if code == "M_LIMIT_EXCEEDED":
        return RetryAfter("The homeserver asks to wait.", (wait or PAUSE_S * 1000) / 1000)
    if status >= 500 or code in (None, "M_UNKNOWN"):
        return NotSent(f"The homeserver failed: {error}.")
    if code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN"):
        return NotSent("The homeserver does not know the bot's token any more.")
    if code == "M_TOO_LARGE":
        return Undeliverable("It is too large for the homeserver.", whole=False)
    return Undeliverable(f"The homeserver refused it: {error}.")


def _explain_connection(error: Exception) -> SendProblem:
    if isinstance(error, aiohttp.ClientConnectorError):
        return NotSent("The homeserver could not be reached.")
    return MaybeSent("The connection to the homeserver broke before it answered.")
