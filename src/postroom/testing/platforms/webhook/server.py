"""The other side of the generic webhook channel: it posts what people write, and takes answers, both signed.

Like a well-made receiver it drops an answer whose id came before.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from typing import Any

from aiohttp import web

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import InboundEvent, Person
from postroom.testing.platforms.faults import RateLimited
from postroom.testing.platforms.http import CallParameters, HttpPlatform, Refusal
from postroom.testing.platforms.transcript import Attachment, Delivery, OfferedButton
from postroom.testing.platforms.webhook_sender import PushedEvent, WebhookSender

SECRET = "webhook-secret"
HEADER = "X-Postroom-Signature"


class FakeWebhook(HttpPlatform):
    """Answers are posted to `answers_url`, a call named `answer`; `subscribe` says where words go."""

    name = "webhook"

    def __init__(self, *, secret: str = SECRET, clock: HeldClock | None = None) -> None:
        super().__init__(clock=clock)
        self.secret = secret
        self.webhook = WebhookSender(
            self.clock, self.faults, self._headers, delays=(1, 10, 60), endless=True, answer_within=30,
            in_order=False,
        )  # fmt: skip
        self._events: dict[str, dict[str, Any]] = {}
        self._answered: set[str] = set()

    @property
    def answers_url(self) -> str:
        return f"{self.url}/answers"

    async def subscribe(self, url: str) -> None:
        self.webhook.url = url

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        chat: str | None = None,
        thread: str | None = None,
        files: Sequence[Attachment] = (),
    ) -> InboundEvent:
        contents = [{"name": file.name, "content": base64.b64encode(file.content).decode()} for file in files]
        return self._push(person, chat, {"text": text, "thread": thread, "files": contents})

    async def press(self, person: Person, delivery: Delivery, label: str) -> InboundEvent:
        return self._push(person, delivery.chat, {"pressed": delivery.button(label).value})

    def redeliver(self, event: InboundEvent) -> None:
        self.webhook.push(PushedEvent(event.id, json.dumps(self._events[event.id]).encode()))

    def _push(self, person: Person, chat: str | None, content: dict[str, Any]) -> InboundEvent:
        event_id = f"m{len(self._events) + 1}"
        who = {"sender_id": person.id, "sender": person.name, "chat": chat or person.id}
        self._events[event_id] = {"id": event_id, **who, **content}
        self.webhook.push(PushedEvent(event_id, json.dumps(self._events[event_id]).encode()))
        return InboundEvent(event_id, chat or person.id, event_id)

    def routes(self) -> Iterable[web.RouteDef]:
        return [web.post("/answers", self._answer_call, name="answer")]

    def render_refusal(self, refusal: Refusal) -> web.Response:
        return web.Response(status=refusal.status, text=refusal.message)

    def render_rate_limit(self, fault: RateLimited) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": str(round(fault.retry_after))})

    async def _close(self) -> None:
        await super()._close()
        await self.webhook.close()

    async def _answer_call(self, request: web.Request) -> web.Response:
        body = await request.read()
        sent = request.headers.get(HEADER, "").partition("t=")[2].partition(",")[0]
        if not sent.isdecimal() or request.headers[HEADER] != self._sign(body, int(sent), wrong=False):
            raise Refusal(401, "the signature does not fit")
        answer = CallParameters(json.loads(body))
        delivery = Delivery(
            id=answer.text("id"),
            chat=answer.text("chat"),
            text=answer.text("text"),
            at=self.clock.now(),
            thread=answer.get("thread"),
            reply_to=answer.get("reply_to"),
            buttons=tuple(OfferedButton(**each) for each in answer.get("choices", ())),
            attachments=_read_file(answer.get("file")),
        )
        answer.check_read("an answer")
        if delivery.id not in self._answered:
            self._answered.add(delivery.id)
            self.transcript.add(delivery)
        return web.Response()

    def _headers(self, body: bytes, number: int, wrong: bool) -> dict[str, str]:
        return {HEADER: self._sign(body, self.clock.now() // SECOND, wrong=wrong)}

    def _sign(self, body: bytes, now_s: int, *, wrong: bool) -> str:
        secret = "not the secret" if wrong else self.secret
        signed = hmac.new(secret.encode(), f"{now_s}.".encode() + body, hashlib.sha256).hexdigest()
        return f"t={now_s},v1={signed}"


def _read_file(file: dict[str, str] | None) -> tuple[Attachment, ...]:
    return () if file is None else (Attachment(file["name"], base64.b64decode(file["content"])),)
