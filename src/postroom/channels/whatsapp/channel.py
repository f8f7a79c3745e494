"""One phone number of a business on WhatsApp. Answers are free for a day after a person wrote; then only a
template reaches them.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import mimetypes
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import httpx2

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore, Sink, WebhookAnswer, WebhookRequest
from postroom.channels.errors import (
    ChannelMisconfigured,
    FileUnavailable,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)
from postroom.channels.http_problems import explain_connection
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage
from postroom.channels.whatsapp.markup import CAPABILITIES, render
from postroom.channels.whatsapp.updates import find_sender, list_changes, list_envelopes, read_message

log = logging.getLogger("postroom.channels")

GRAPH = "https://graph.facebook.com/v23.0"
REQUEST_S = 30.0
WINDOW_S = 24 * 3600
MOST_PEOPLE = 5000
BUTTON_BODY = 1024
FEW_BUTTONS = 3
TEMPLATE_CHARS = 1000
# The Cloud API does not say how long to wait.
PAUSE_S = 15.0
_BUSY = frozenset({4, 80007, 130429, 131048, 131056})
_MEDIA_KINDS = ("image", "audio", "video")


class WhatsAppChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        needed = ("access_token", "phone_number_id", "app_secret", "verify_token")
        if missing := [field for field in needed if not options.get(field)]:
            reason = f"{', '.join(missing)} not set. See: postroom channel setup whatsapp"
            raise ChannelMisconfigured(channel=name, reason=reason)
        self._phone = str(options["phone_number_id"])
        self._secret = str(options["app_secret"]).encode()
        self._verify_token = str(options["verify_token"])
        self._template = options.get("template")
        self._language = str(options.get("template_language") or "en_US")
        self._api = str(options.get("base_url") or GRAPH)
        headers = {"Authorization": f"Bearer {options['access_token']}"}
        self._client = httpx2.AsyncClient(headers=headers, timeout=REQUEST_S)
        # When each person wrote last, by WhatsApp's own time.
        self._wrote_at: dict[str, int] = {}

    async def open(self) -> None:
        answer = await self._client.get(f"{self._api}/{self._phone}", params={"fields": "verified_name"})
        if answer.status_code in (400, 401, 403):
            reason = f"Meta refuses its token or phone_number_id: {_error_of(answer)['message']}"
            raise ChannelMisconfigured(channel=self._name, reason=reason)
        answer.raise_for_status()

    async def close(self) -> None:
        await self._client.aclose()

    async def receive(self, store: EnvelopeStore) -> None:
        self._wrote_at = {**await store.read_cursor(), **self._wrote_at}
        await asyncio.Event().wait()

    async def accept_webhook(self, request: WebhookRequest, store: EnvelopeStore) -> WebhookAnswer:
        if request.method == "GET":
            return self._verify(request.query)
        signed = hmac.new(self._secret, request.body, hashlib.sha256).hexdigest()
        given = request.headers.get("x-hub-signature-256", "")
        if not hmac.compare_digest(f"sha256={signed}".encode(), given.encode()):
            return WebhookAnswer(401)
        try:
            changes = list(list_changes(json.loads(request.body), self._phone))
            envelopes = [envelope for value in changes for envelope in list_envelopes(value)]
        except (ValueError, KeyError, TypeError, AttributeError):
            return WebhookAnswer(400)
        for value in changes:
            self._note_failures(value)
        for envelope in envelopes:
            self._note_time(envelope.raw["message"])
        if envelopes:
            await store(envelopes, self._wrote_at)
        return WebhookAnswer(200)

    def _verify(self, query: Mapping[str, str]) -> WebhookAnswer:
        given = query.get("hub.verify_token", "")
        if not hmac.compare_digest(given.encode(), self._verify_token.encode()):
            return WebhookAnswer(403)
        return WebhookAnswer(200, query.get("hub.challenge", ""))

    def _note_time(self, message: dict[str, Any]) -> None:
        sender = find_sender(message)
        before = self._wrote_at.pop(sender, 0)
        self._wrote_at[sender] = max(before, int(message.get("timestamp", 0)))
        if len(self._wrote_at) > MOST_PEOPLE:
            del self._wrote_at[next(iter(self._wrote_at))]

    def _note_failures(self, value: dict[str, Any]) -> None:
        for status in value.get("statuses", ()):
            for error in status.get("errors", ()):
                log.error(
                    "%s: WhatsApp took message %s and could not deliver it: %s",
                    self._name,
                    status.get("biz_opaque_callback_data") or status.get("id"),
                    error.get("title"),
                )

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        return read_message(envelope)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        content = await self._describe(address, piece, file)
        message = {
            "messaging_product": "whatsapp",
            "recipient_type": "individual",
            "to" if address.chat.lstrip("+").isdigit() else "recipient": address.chat,
            "biz_opaque_callback_data": key,
            **content,
        }
        if address.reply_to is not None:
            message["context"] = {"message_id": address.reply_to}
        answer = await self._post("messages", json=message)
        return str(answer["messages"][0]["id"])

    async def _describe(self, address: Address, piece: Piece, file: BinaryIO | None) -> dict[str, Any]:
        if not self._is_open(address.chat):
            return self._describe_template(piece)
        if file is not None:
            return await self._describe_file(Path(piece.path or "file").name, file)
        text = render(piece.text)
        if not piece.choices:
            return {"type": "text", "text": {"body": text, "preview_url": False}}
        if len(piece.choices) <= FEW_BUTTONS and len(text) <= BUTTON_BODY:
            replies = [{"id": choice.value, "title": choice.label} for choice in piece.choices]
            action: dict[str, Any] = {"buttons": [{"type": "reply", "reply": reply} for reply in replies]}
            interactive = {"type": "button", "body": {"text": text}, "action": action}
        else:
            rows = [{"id": choice.value, "title": choice.label} for choice in piece.choices]
            action = {"button": "Choose", "sections": [{"title": "Choose", "rows": rows}]}
            interactive = {"type": "list", "body": {"text": text}, "action": action}
        return {"type": "interactive", "interactive": interactive}

    def _is_open(self, person: str) -> bool:
        return time.time() - self._wrote_at.get(person, 0) < WINDOW_S

    def _describe_template(self, piece: Piece) -> dict[str, Any]:
        if self._template is None or piece.path is not None:
            reason = (
                "They have not written for a day, and WhatsApp takes only templates then."
                " Set channels.whatsapp.template to one with a place for text."
            )
            raise Undeliverable(reason, whole=piece.path is None)
        # Templates take no line breaks.
        text = " ".join(render(piece.text).split())[:TEMPLATE_CHARS]
        body = {"type": "body", "parameters": [{"type": "text", "text": text}]}
        language = {"code": self._language}
        template = {"name": self._template, "language": language, "components": [body]}
        return {"type": "template", "template": template}

    async def _describe_file(self, name: str, file: BinaryIO) -> dict[str, Any]:
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        content = await asyncio.to_thread(file.read)
        form = {"messaging_product": "whatsapp", "type": media_type}
        try:
            media = await self._post("media", data=form, files={"file": (name, content, media_type)})
        except SendProblem as problem:
            if isinstance(problem, Undeliverable | RetryAfter):
                raise
            # Nobody has seen an upload, so it can be made again.
            raise NotSent(problem.reason) from problem
        kind = media_type.partition("/")[0]
        if kind not in _MEDIA_KINDS:
            return {"type": "document", "document": {"id": media["id"], "filename": name}}
        return {"type": kind, kind: {"id": media["id"]}}

    async def _post(self, what: str, **request: Any) -> dict[str, Any]:
        try:
            answer = await self._client.post(f"{self._api}/{self._phone}/{what}", **request)
        except httpx2.TransportError as error:
            raise explain_connection(error, "WhatsApp") or error from error
        if answer.is_success:
            return answer.json()
        raise _explain(answer)

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        try:
            found = await self._client.get(f"{self._api}/{file.handle}")
            found.raise_for_status()
            async with self._client.stream("GET", found.json()["url"]) as answer:
                answer.raise_for_status()
                async for chunk in answer.aiter_bytes():
                    target.write(chunk)
        except (httpx2.HTTPError, KeyError) as error:
            raise FileUnavailable(name=file.name, reason=f"WhatsApp did not send it ({error}).") from None

    async def show_typing(self, address: Address) -> None:
        if address.reply_to is not None:
            indicator = {"messaging_product": "whatsapp", "status": "read", "message_id": address.reply_to}
            await self._post("messages", json={**indicator, "typing_indicator": {"type": "text"}})


def _error_of(answer: httpx2.Response) -> dict[str, Any]:
    try:
        error = answer.json().get("error") or {}
    except ValueError:
        error = {}
    return {"message": f"status {answer.status_code}", "code": 0, **error}


def _explain(answer: httpx2.Response) -> SendProblem:
    error = _error_of(answer)
    message = str(error["message"])
    if answer.status_code == 429 or error["code"] in _BUSY:
        return RetryAfter("WhatsApp asks to wait.", PAUSE_S)
    if answer.status_code in (401, 403) or error["code"] == 190:
        return NotSent("WhatsApp refuses the token.")
    if answer.status_code >= 500:
        return NotSent(f"WhatsApp failed: {message}.")
    return Undeliverable(message)
