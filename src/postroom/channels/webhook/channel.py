"""A chat platform of one's own: two signed HTTP requests, described in docs/how-to/channels.md."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

import httpx2
import msgspec

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore, Sink, WebhookAnswer, WebhookRequest
from postroom.channels.errors import (
    ChannelMisconfigured,
    FileUnavailable,
    NotSent,
    RetryAfter,
    Undeliverable,
)
from postroom.channels.http_problems import explain_connection
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage
from postroom.channels.webhook import CAPABILITIES

HEADER = "x-postroom-signature"
TOLERANCE_S = 300
REQUEST_S = 30.0
PAUSE_S = 10.0

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class PushedFile(msgspec.Struct, frozen=True):
    """`content` in base64."""

    name: str
    content: str


class PushedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What the other program posts. The same `id` again is the same message."""

    id: Name
    sender_id: Name
    chat: Name | None = None
    sender: str = ""
    text: str = ""
    thread: str | None = None
    pressed: str | None = None
    files: tuple[PushedFile, ...] = ()


class WebhookChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        self._secret, self._url = str(options.get("secret") or ""), str(options.get("url") or "")
        if not self._secret or not self._url.startswith(("http://", "https://")):
            reason = "it needs a secret, and the url where answers go. See: postroom channel setup webhook"
            raise ChannelMisconfigured(channel=name, reason=reason)
        self._client = httpx2.AsyncClient(timeout=REQUEST_S)

    async def close(self) -> None:
        await self._client.aclose()

    async def receive(self, store: EnvelopeStore) -> None:
        await asyncio.Event().wait()

    async def accept_webhook(self, request: WebhookRequest, store: EnvelopeStore) -> WebhookAnswer:
        if not is_signed(self._secret, request.body, request.headers.get(HEADER, ""), time.time()):
            return WebhookAnswer(401, "The signature is not right, or too old.")
        try:
            message = msgspec.json.decode(request.body, type=PushedMessage)
        except msgspec.DecodeError as error:
            return WebhookAnswer(400, str(error))
        await store([Envelope(message.id, msgspec.to_builtins(message))])
        return WebhookAnswer(200)

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        message = msgspec.convert(envelope.raw, PushedMessage)
        if not message.text and not message.files and message.pressed is None:
            return None
        return ReceivedMessage(
            message_id=message.id,
            chat=message.chat or message.sender_id,
            thread=message.thread,
            sender_id=message.sender_id,
            sender=message.sender or message.sender_id,
            text=message.text,
            pressed=message.pressed,
            files=tuple(ReceivedFile(handle=file.content, name=file.name) for file in message.files),
        )

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        try:
            target.write(base64.b64decode(file.handle, validate=True))
        except binascii.Error:
            raise FileUnavailable(name=file.name, reason="its content is not base64.") from None

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        answer: dict[str, Any] = {
            "id": key,
            "chat": address.chat,
            "thread": address.thread,
            "reply_to": address.reply_to,
            "text": piece.text.plain(),
            "choices": [{"label": choice.label, "value": choice.value} for choice in piece.choices],
        }
        if file is not None:
            content = base64.b64encode(await asyncio.to_thread(file.read)).decode()
            answer["file"] = {"name": Path(piece.path or "file").name, "content": content}
        body = json.dumps(answer).encode()
        headers = {"Content-Type": "application/json", HEADER: sign(self._secret, body, int(time.time()))}
        try:
            got = await self._client.post(self._url, content=body, headers=headers)
        except httpx2.TransportError as error:
            raise explain_connection(error, "The receiver") or error from error
        if got.is_success:
            return key
        if got.status_code == 429:
            wait = got.headers.get("retry-after", "")
            raise RetryAfter("The receiver asks to wait.", float(wait) if wait.isdecimal() else PAUSE_S)
        if got.status_code >= 500 or got.status_code in (401, 403, 404, 408):
            raise NotSent(f"The receiver answers with {got.status_code}.")
        raise Undeliverable(f"The receiver refused it with {got.status_code}.")


def sign(secret: str, body: bytes, now_s: int) -> str:
    signed = hmac.new(secret.encode(), f"{now_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={now_s},v1={signed}"


def is_signed(secret: str, body: bytes, signature: str, now_s: float) -> bool:
    parts = {name: value for name, _, value in (part.partition("=") for part in signature.split(","))}
    sent = parts.get("t", "")
    if not (sent.isascii() and sent.isdecimal() and len(sent) <= 12) or abs(now_s - int(sent)) > TOLERANCE_S:
        return False
    return hmac.compare_digest(
        sign(secret, body, int(sent)).encode(), f"t={sent},v1={parts.get('v1', '')}".encode()
    )
