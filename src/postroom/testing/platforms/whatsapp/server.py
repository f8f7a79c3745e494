"""The Graph API's calls for WhatsApp, its webhooks, and what people do on WhatsApp."""

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from typing import Any

import aiohttp
from aiohttp import web

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import InboundEvent, Person
from postroom.testing.platforms.faults import RateLimited
from postroom.testing.platforms.http import (
    CallParameters,
    HttpPlatform,
    NotImplementedByFake,
    Refusal,
    answer_json,
    read_parameters,
)
from postroom.testing.platforms.transcript import Act, Attachment, Delivery
from postroom.testing.platforms.webhook_sender import PushedEvent, WebhookSender
from postroom.testing.platforms.whatsapp.media import MediaStore
from postroom.testing.platforms.whatsapp.messages import MessageTemplate, graph_error, read_draft

TOKEN = "EAAfake-whatsapp-token"
PHONE_ID = "106540352242922"
BUSINESS_ID = "102290129340398"
WINDOW = 24 * 3600 * SECOND
# Again soon, then less and less often, for seven days.
RETRY_DELAYS = (1, 60, 600, 3600, 6 * 3600)
RETRIED_FOR = 7 * 24 * 3600


class FakeWhatsApp(HttpPlatform):
    """Base URL for clients: `whatsapp.api_url`. Calls are named `send_message`, `mark_read`, `upload_media`,
    `get_media`, `download`, `get_phone_number`."""

    name = "WhatsApp"

    def __init__(
        self,
        *,
        token: str = TOKEN,
        phone_id: str = PHONE_ID,
        app_secret: str = "app-secret",
        clock: HeldClock | None = None,
    ) -> None:
        super().__init__(clock=clock)
        self.token = token
        self.phone_id = phone_id
        self.app_secret = app_secret
        self.phone_number = "15550783881"
        self.templates: dict[str, MessageTemplate] = {}
        self.webhook = WebhookSender(
            self.clock,
            self.faults,
            self._sign,
            delays=RETRY_DELAYS,
            endless=True,
            lifetime=RETRIED_FOR,
            answer_within=3,
            in_order=False,
        )
        self._media = MediaStore(self.clock)
        # By phone number and by the id that WhatsApp gives each person for this business.
        self._people: dict[str, Person] = {}
        # When each person last wrote: the window for free answers opens then.
        self._wrote_at: dict[str, int] = {}
        self._received: dict[str, str] = {}
        self._changes: dict[str, dict[str, Any]] = {}
        self._count = 0

    @property
    def api_url(self) -> str:
        return f"{self.url}/v23.0"

    @staticmethod
    def scoped_id(person: Person) -> str:
        """The id WhatsApp gives a person for this business: the only one of those who go by a username."""
        return f"DE.{int(person.id) * 7919}"

    def address(self, person: Person) -> str:
        """What a business can answer to, and the chat of the transcript."""
        return person.id if person.username is None else self.scoped_id(person)

    def add_template(self, template: MessageTemplate) -> None:
        self.templates[template.name] = template

    async def subscribe(self, url: str, verify_token: str) -> None:
        """The owner enters the webhook at Meta, which checks that the address answers for it."""
        challenge = str(1_158_201_444)
        query = {"hub.mode": "subscribe", "hub.verify_token": verify_token, "hub.challenge": challenge}
        async with aiohttp.ClientSession() as session, session.get(url, params=query) as answer:
            text = await answer.text()
        if answer.status != 200 or text != challenge:
            raise AssertionError(f"the webhook did not return the challenge: {answer.status} {text[:200]!r}")
        self.webhook.url = url

    # What people do

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        files: Sequence[Attachment] = (),
        reply_to: str | None = None,
    ) -> InboundEvent:
        """A person writes to the business; each file is a message, the first with the text."""
        contents: list[dict[str, Any]] = []
        for number, file in enumerate(files):
            contents.append(self._describe_media(file, text if number == 0 else ""))
        if not files:
            contents.append({"type": "text", "text": {"body": text}})
        events = [self._receive(person, content, reply_to) for content in contents]
        return events[0]

    async def press(self, person: Person, delivery: Delivery, label: str) -> InboundEvent:
        """A person presses a button or chooses a row of a list below a message."""
        button = delivery.button(label)
        kind = "list_reply" if delivery.extra["interactive"] == "list" else "button_reply"
        reply = {"id": button.value, "title": button.label}
        content = {"type": "interactive", "interactive": {"type": kind, kind: reply}}
        return self._receive(person, content, delivery.id)

    async def read(self, delivery: Delivery) -> None:
        """The person has read a message."""
        self._tell_status(delivery.id, delivery.chat, "read", delivery.extra["callback_data"])

    def redeliver(self, *events: InboundEvent) -> None:
        """The webhook gets these again, all in one request."""
        changes = [self._changes[event.id] for event in events]
        self._push("again-" + "-".join(event.id for event in events), changes)

    # What businesses call

    def routes(self) -> Iterable[web.RouteDef]:
        version = "/v{version:[0-9]+\\.[0-9]+}"
        return [
            web.post(f"{version}/{{phone}}/messages", self._post_message),
            web.post(f"{version}/{{phone}}/media", self._upload, name="upload_media"),
            web.get(f"{version}/{{node}}", self._get_node, name="get_node"),
            web.delete(f"{version}/{{node}}", self._delete_media, name="delete_media"),
            web.get("/whatsapp_business/attachments/{key}", self._download, name="download"),
        ]

    def name_call(self, request: web.Request) -> str:
        if request.path.endswith("/messages"):
            return "send_message"
        return super().name_call(request)

    def render_refusal(self, refusal: Refusal) -> web.Response:
        error: dict[str, Any] = {
            "message": refusal.message,
            "type": "OAuthException",
            "code": refusal.details.get("code", 1),
            "fbtrace_id": "AFakeTrace",
        }
        if details := refusal.details.get("details"):
            error["error_data"] = {"messaging_product": "whatsapp", "details": details}
        return answer_json({"error": error}, refusal.status)

    def render_rate_limit(self, fault: RateLimited) -> web.Response:
        # The Cloud API does not say how long to wait.
        return self.render_refusal(graph_error(429, 130429, "Rate limit hit", "Message failed to send"))

    async def _close(self) -> None:
        await super()._close()
        await self.webhook.close()

    def _sign(self, body: bytes, number: int, wrong: bool) -> dict[str, str]:
        secret = "not the secret" if wrong else self.app_secret
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return {"X-Hub-Signature-256": f"sha256={digest}"}

    def _check_token(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            raise Refusal(401, "Invalid OAuth access token - Cannot parse access token", code=190)

    def _check_phone(self, request: web.Request) -> None:
        self._check_token(request)
        phone = request.match_info["phone"]
        if phone != self.phone_id:
            message = f"Unsupported post request. Object with ID '{phone}' does not exist"
            raise Refusal(400, message, code=100)

    async def _post_message(self, request: web.Request) -> web.Response:
        self._check_phone(request)
        parameters = await read_parameters(request)
        if parameters.text("messaging_product") != "whatsapp":
            raise graph_error(400, 100, "The parameter messaging_product is required.")
        if "status" in parameters:
            return self._mark_read(parameters)
        return self._send(parameters)

    def _mark_read(self, parameters: CallParameters) -> web.Response:
        message_id, status = parameters.text("message_id"), parameters.text("status")
        typing = parameters.structure("typing_indicator")
        parameters.check_read("mark_read")
        person = self._received.get(message_id)
        if status != "read" or person is None:
            raise graph_error(400, 131009, "Parameter value is not valid", "Message ID does not exist")
        self.transcript.add_act(Act("read", person, self.clock.now(), {"message_id": message_id}))
        if typing is not None:
            self.transcript.add_act(Act("typing", person, self.clock.now()))
        return answer_json({"success": True})

    def _send(self, parameters: CallParameters) -> web.Response:
        number, scoped = parameters.text("to").lstrip("+"), parameters.text("recipient")
        to = number or scoped
        if parameters.text("recipient_type", "individual") != "individual":
            raise NotImplementedByFake("messages to groups")
        if not number.isdigit() and not scoped:
            raise graph_error(
                400, 131009, "Parameter value is not valid", "Recipient phone number is not valid"
            )
        interactive = parameters.structure("interactive", {}).get("type")
        draft = read_draft(parameters, self._media, self.templates)
        reply_to = parameters.structure("context", {}).get("message_id")
        callback_data = parameters.get("biz_opaque_callback_data")
        parameters.check_read("send_message")
        message_id = self._mint()
        answer = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": to, "wa_id": number} if number else {"input": to, "user_id": scoped}],
            "messages": [{"id": message_id}],
        }
        person = self._people.get(to)
        to = to if person is None else self.address(person)
        refusal = self._why_undeliverable(to, draft.template)
        if refusal is not None:
            # Accepted all the same: that it could not be delivered is told by webhook.
            self._tell_status(message_id, to, "failed", callback_data, refusal)
            return answer_json(answer)
        self.transcript.add(
            Delivery(
                id=message_id,
                chat=to,
                text=draft.text,
                at=self.clock.now(),
                reply_to=reply_to,
                buttons=draft.buttons,
                attachments=draft.attachments,
                extra={
                    "template": draft.template,
                    "interactive": interactive,
                    "callback_data": callback_data,
                },
            )
        )
        for status in ("sent", "delivered"):
            self._tell_status(message_id, to, status, callback_data)
        return answer_json(answer)

    def _why_undeliverable(self, to: str, template: str | None) -> dict[str, Any] | None:
        if template is None and self.clock.now() - self._wrote_at.get(to, 0) > WINDOW:
            code, title = 131047, "Re-engagement message"
            details = "More than 24 hours have passed since the customer last replied to this number"
        elif to not in self._people:
            code, title, details = 131026, "Message undeliverable", "Message Undeliverable."
        else:
            return None
        return {"code": code, "title": title, "message": title, "error_data": {"details": details}}

    async def _upload(self, request: web.Request) -> web.Response:
        self._check_phone(request)
        parameters = await read_parameters(request)
        parameters.ignore("messaging_product", "type")
        parameters.check_read("upload_media")
        upload = parameters.files.get("file")
        if upload is None:
            raise graph_error(400, 100, "The parameter file is required.")
        return answer_json({"id": self._media.add(upload).id})

    async def _get_node(self, request: web.Request) -> web.Response:
        self._check_token(request)
        node = request.match_info["node"]
        if node == self.phone_id:
            return answer_json(self._describe_phone(request.query.get("fields", "")))
        stored = self._media.find(node)
        described = {
            "messaging_product": "whatsapp",
            "url": f"{self.url}/whatsapp_business/attachments/{self._media.open_url(stored)}",
            "mime_type": stored.attachment.media_type,
            "sha256": stored.sha256,
            "file_size": len(stored.attachment.content),
            "id": stored.id,
        }
        return answer_json(described)

    def _describe_phone(self, fields: str) -> dict[str, Any]:
        known = {
            "verified_name": "The Office",
            "display_phone_number": f"+{self.phone_number}",
            "quality_rating": "GREEN",
        }
        wanted = fields.split(",") if fields else list(known)
        if unknown := sorted(set(wanted) - set(known) - {"id"}):
            raise NotImplementedByFake(f"the fields {', '.join(unknown)} of a phone number")
        return {"id": self.phone_id} | {field: known[field] for field in wanted if field != "id"}

    async def _delete_media(self, request: web.Request) -> web.Response:
        self._check_token(request)
        self._media.delete(request.match_info["node"])
        return answer_json({"success": True})

    async def _download(self, request: web.Request) -> web.Response:
        self._check_token(request)
        stored = self._media.at_url(request.match_info["key"])
        if stored is None:
            raise Refusal(404, "URL signature expired", code=100)
        self.transcript.add_act(Act("download", "", self.clock.now(), {"name": stored.attachment.name}))
        return web.Response(body=stored.attachment.content, content_type=stored.attachment.media_type)

    def _describe_media(self, file: Attachment, caption: str) -> dict[str, Any]:
        stored = self._media.add(file)
        kind = file.media_type.split("/", maxsplit=1)[0]
        kind = kind if kind in ("image", "audio", "video") else "document"
        content: dict[str, Any] = {"id": stored.id, "mime_type": file.media_type, "sha256": stored.sha256}
        if kind == "document":
            content["filename"] = file.name
        if kind == "audio":
            content["voice"] = file.media_type.startswith("audio/ogg")
        if caption:
            content["caption"] = caption
        return {"type": kind, kind: content}

    def _receive(self, person: Person, content: dict[str, Any], reply_to: str | None) -> InboundEvent:
        address = self.address(person)
        self._people |= {person.id: person, self.scoped_id(person): person}
        self._wrote_at[address] = self.clock.now()
        message_id = self._mint()
        self._received[message_id] = address
        message = {
            "from_user_id": self.scoped_id(person),
            "id": message_id,
            "timestamp": str(self.clock.now() // SECOND),
            **content,
        }
        if reply_to is not None:
            message["context"] = {"from": self.phone_number, "id": reply_to}
        if person.username is None:
            message["from"] = person.id
        self._tell(message_id, {"contacts": [self._describe_contact(person)], "messages": [message]})
        return InboundEvent(message_id, address, message_id)

    def _describe_contact(self, person: Person) -> dict[str, Any]:
        profile = {"name": person.name}
        if person.username is not None:
            return {"profile": {**profile, "username": person.username}, "user_id": self.scoped_id(person)}
        return {"profile": profile, "wa_id": person.id, "user_id": self.scoped_id(person)}

    def _tell_status(
        self, message_id: str, to: str, status: str, callback_data: Any, error: dict[str, Any] | None = None
    ) -> None:
        told: dict[str, Any] = {
            "id": message_id,
            "status": status,
            "timestamp": str(self.clock.now() // SECOND),
            "recipient_id" if to.isdigit() else "recipient_user_id": to,
        }
        if error is not None:
            told["errors"] = [error]
        if callback_data is not None:
            told["biz_opaque_callback_data"] = callback_data
        person = self._people.get(to)
        contacts = [] if person is None else [self._describe_contact(person)]
        self._tell(f"{message_id}-{status}", {"contacts": contacts, "statuses": [told]})

    def _tell(self, event_id: str, value: dict[str, Any]) -> None:
        metadata = {"display_phone_number": self.phone_number, "phone_number_id": self.phone_id}
        change = {
            "value": {"messaging_product": "whatsapp", "metadata": metadata, **value},
            "field": "messages",
        }
        self._changes[event_id] = change
        self._push(event_id, [change])

    def _push(self, event_id: str, changes: list[dict[str, Any]]) -> None:
        body = {"object": "whatsapp_business_account", "entry": [{"id": BUSINESS_ID, "changes": changes}]}
        self.webhook.push(PushedEvent(event_id, json.dumps(body).encode()))

    def _mint(self) -> str:
        self._count += 1
        return f"wamid.HBgNfake{self._count:08d}"
