"""Slack's Web API, the events it sends by socket or signed request, and what people do on Slack."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

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
from postroom.testing.platforms.slack.messages import SlackMessages, slack_error
from postroom.testing.platforms.slack.socket_mode import SocketMode
from postroom.testing.platforms.transcript import Act, Attachment, Delivery
from postroom.testing.platforms.webhook_sender import PushedEvent, WebhookSender

BOT_TOKEN = "xoxb-fake-slack-token"
APP_TOKEN = "xapp-fake-slack-token"
TEAM, APP, BOT, BOT_USER = "T0001", "A0001", "B0001", "U0BOT"
FORM = "application/x-www-form-urlencoded"


class FakeSlack(HttpPlatform):
    """Base URL for slack_sdk: `slack.api_url`. Calls are named as in the Web API: `chat.postMessage`.

    Events go by socket until a request URL is subscribed; from then on by signed HTTP requests.
    """

    name = "Slack"

    def __init__(
        self,
        *,
        bot_token: str = BOT_TOKEN,
        app_token: str = APP_TOKEN,
        signing_secret: str = "signing-secret",
        clock: HeldClock | None = None,
    ) -> None:
        super().__init__(clock=clock)
        self.bot_token = bot_token
        self.app_token = app_token
        self.signing_secret = signing_secret
        bot = {"user": BOT_USER, "bot_id": BOT, "app_id": APP, "team": TEAM}
        self.socket = SocketMode(self.clock, self.faults, self._take_answer)
        self.webhook = WebhookSender(
            self.clock, self.faults, self._sign, delays=(0, 60, 300), answer_within=3, in_order=False,
            inspect=lambda attempt: self._take_http_answer(attempt.event_id, attempt.answer),
        )  # fmt: skip
        self._messages = SlackMessages(self.clock, self.transcript, bot)
        self._people: dict[str, Person] = {}
        # Channels by id: the person of a direct conversation, or none.
        self._channels: dict[str, Person | None] = {}
        self._files: dict[str, Attachment] = {}
        self._uploads: dict[str, str] = {}
        self._events: dict[str, dict[str, Any]] = {}
        self._responses: dict[str, tuple[str, str | None]] = {}
        self._calls = self._list_calls()

    @property
    def api_url(self) -> str:
        return f"{self.url}/api/"

    async def subscribe(self, url: str) -> None:
        """The owner enters the request URL; Slack checks that it answers its challenge."""
        body = json.dumps({"type": "url_verification", "token": "x", "challenge": "3eZbrw1aB"}).encode()
        headers = {"Content-Type": "application/json"} | self._sign(body, 1, False)
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, headers=headers) as answer,
        ):
            text = await answer.text()
        if answer.status != 200 or "3eZbrw1aB" not in text:
            raise AssertionError(
                f"the request URL did not return the challenge: {answer.status} {text[:200]!r}"
            )
        self.webhook.url = url

    # What people do

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        chat: str | None = None,
        thread: str | None = None,
        files: Sequence[Attachment] = (),
    ) -> InboundEvent:
        """A person writes to the app, or into a channel; a mention there is told twice, as Slack does."""
        self._people[person.id] = person
        channel = self._open_direct(person) if chat is None else chat
        message: dict[str, Any] = {"user": person.id, "text": text, "team": TEAM}
        if thread is not None:
            message["thread_ts"] = thread
        if files:
            message |= {"subtype": "file_share", "files": [self._store(file) for file in files]}
        message = self._messages.add(channel, message)
        event = self._tell_message(channel, message)
        if chat is not None and f"<@{BOT_USER}>" in text:
            self._tell({**message, "type": "app_mention", "channel": channel})
        return InboundEvent(event, channel, message["ts"])

    async def edit(self, person: Person, event: InboundEvent, text: str) -> InboundEvent:
        message = self._messages.find(event.chat, event.message_id)
        assert message is not None
        message["text"] = text
        changed = {"type": "message", "subtype": "message_changed", "message": message, "hidden": True}
        return InboundEvent(
            self._tell({**changed, "channel": event.chat, "ts": event.message_id}),
            event.chat,
            event.message_id,
        )

    async def press(self, person: Person, delivery: Delivery, label: str) -> InboundEvent:
        """A person presses a button below a message of the app."""
        message = self._messages.find(delivery.chat, delivery.id)
        assert message is not None
        value = delivery.button(label).value
        action = next(
            {**element, "block_id": block.get("block_id", "b1"), "action_ts": message["ts"]}
            for block in message["blocks"]
            if block["type"] == "actions"
            for element in block["elements"]
            if element.get("value", "") == value
        )
        payload = {
            "type": "block_actions",
            "user": {"id": person.id, "name": person.username or person.name, "team_id": TEAM},
            "api_app_id": APP,
            "token": "x",
            "team": {"id": TEAM, "domain": "office"},
            "container": {"type": "message", "message_ts": message["ts"], "channel_id": delivery.chat},
            "channel": {"id": delivery.chat, "name": "directmessage"},
            "message": message,
            "actions": [action],
            "trigger_id": f"trigger-{len(self._events)}",
            "response_url": self._open_response(delivery.chat, message["ts"]),
        }
        return self._interact("interactive", payload, delivery.chat, message["ts"])

    async def command(
        self, person: Person, command: str, text: str = "", *, chat: str | None = None
    ) -> InboundEvent:
        """A person uses a slash command, `/agent`."""
        self._people[person.id] = person
        channel = self._open_direct(person) if chat is None else chat
        payload = {
            "token": "x",
            "team_id": TEAM,
            "channel_id": channel,
            "channel_name": "directmessage",
            "user_id": person.id,
            "user_name": person.username or person.name,
            "command": command,
            "text": text,
            "api_app_id": APP,
            "response_url": self._open_response(channel, None),
            "trigger_id": f"trigger-{len(self._events)}",
        }
        return self._interact("slash_commands", payload, channel, "")

    def add_channel(self, *members: Person) -> str:
        """A channel that the app is in."""
        self._people |= {member.id: member for member in members}
        channel = f"C{len(self._channels):04d}"
        self._channels[channel] = None
        return channel

    def redeliver(self, event: InboundEvent) -> None:
        """Slack sends an event again that was acknowledged."""
        self._send_event(event.id, self._events[event.id])

    # What apps call

    def routes(self) -> Iterable[web.RouteDef]:
        return [
            web.route("*", "/api/{method}", self._call),
            web.get("/link", self.socket.serve, name="socket"),
            web.post("/upload/{file}", self._upload, name="upload"),
            web.get("/files/{file}", self._download, name="download"),
            web.post("/response/{response}", self._respond, name="response_url"),
        ]

    def name_call(self, request: web.Request) -> str:
        return request.match_info.get("method") or super().name_call(request)

    def render_refusal(self, refusal: Refusal) -> web.Response:
        return answer_json({"ok": False, "error": refusal.message, **refusal.details}, refusal.status)

    def render_rate_limit(self, fault: RateLimited) -> web.Response:
        headers = {"Retry-After": str(round(fault.retry_after))}
        return answer_json({"ok": False, "error": "ratelimited"}, 429, headers)

    async def _close(self) -> None:
        await super()._close()
        await self.webhook.close()
        await self.socket.close()

    def _list_calls(self) -> dict[str, Callable[[CallParameters], dict[str, Any]]]:
        return {
            "auth.test": self._test_auth,
            "apps.connections.open": lambda parameters: {"url": f"ws://127.0.0.1:{self.port}/link"},
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "conversations.open": self._open_conversation,
            "conversations.info": lambda parameters: {"channel": self._describe(self._channel(parameters))},
            "conversations.history": lambda p: self._messages.history(self._channel(p), p),
            "conversations.replies": lambda p: self._messages.history(self._channel(p), p, p.text("ts")),
            "users.info": self._get_user,
            "reactions.add": self._react,
            "assistant.threads.setStatus": self._set_status,
            "files.getUploadURLExternal": self._open_upload,
            "files.completeUploadExternal": self._complete_upload,
        }

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        call = self._calls.get(method)
        if call is None:
            raise NotImplementedByFake(method)
        parameters = await read_parameters(request)
        given = parameters.text("token") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not given:
            raise slack_error("not_authed")
        if given != (self.app_token if method == "apps.connections.open" else self.bot_token):
            raise slack_error("invalid_auth")
        # There is one team only.
        parameters.ignore("team_id")
        answer = call(parameters)
        parameters.check_read(method)
        headers = {"X-OAuth-Scopes": "chat:write,im:history,app_mentions:read,files:write,files:read"}
        return answer_json({"ok": True, **answer}, headers=headers)

    def _test_auth(self, parameters: CallParameters) -> dict[str, Any]:
        names = {"url": "https://office.slack.com/", "team": "Office", "user": "office"}
        return {**names, "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT, "is_enterprise_install": False}

    def _post(self, parameters: CallParameters) -> dict[str, Any]:
        channel = self._channel(parameters)
        message = self._messages.post(channel, parameters)
        parameters.check_read("chat.postMessage")
        self._tell_message(channel, message)
        return {"channel": channel, "ts": message["ts"], "message": message}

    def _update(self, parameters: CallParameters) -> dict[str, Any]:
        channel, ts = self._channel(parameters), parameters.text("ts")
        message = self._messages.update(channel, ts, parameters)
        return {"channel": channel, "ts": ts, "text": message["text"], "message": message}

    def _delete(self, parameters: CallParameters) -> dict[str, Any]:
        channel, ts = self._channel(parameters), parameters.text("ts")
        self._messages.delete(channel, ts)
        return {"channel": channel, "ts": ts}

    def _channel(self, parameters: CallParameters) -> str:
        channel = parameters.text("channel")
        if channel in self._people:
            return self._open_direct(self._people[channel])
        if channel not in self._channels:
            raise slack_error("channel_not_found")
        return channel

    def _open_conversation(self, parameters: CallParameters) -> dict[str, Any]:
        person = self._people.get(parameters.text("users"))
        parameters.ignore("return_im")
        if person is None:
            raise slack_error("user_not_found")
        return {"channel": {"id": self._open_direct(person)}}

    def _get_user(self, parameters: CallParameters) -> dict[str, Any]:
        person = self._people.get(parameters.text("user"))
        if person is None:
            raise slack_error("user_not_found")
        profile = {"real_name": person.name, "display_name": person.username or ""}
        described = {"id": person.id, "name": person.username or person.name, "is_bot": False}
        return {"user": {**described, "real_name": person.name, "profile": profile}}

    def _react(self, parameters: CallParameters) -> dict[str, Any]:
        channel, ts = self._channel(parameters), parameters.text("timestamp")
        if self._messages.find(channel, ts) is None:
            raise slack_error("message_not_found")
        data = {"message_id": ts, "emoji": [parameters.text("name")]}
        self.transcript.add_act(Act("reaction", channel, self.clock.now(), data))
        return {}

    def _set_status(self, parameters: CallParameters) -> dict[str, Any]:
        channel = parameters.text("channel_id")
        data = {"thread": parameters.text("thread_ts"), "text": parameters.text("status")}
        self.transcript.add_act(Act("typing", channel, self.clock.now(), data))
        return {}

    def _open_upload(self, parameters: CallParameters) -> dict[str, Any]:
        name, length = parameters.text("filename"), parameters.number("length")
        parameters.ignore("alt_txt", "snippet_type")
        if length < 1:
            raise slack_error("invalid_arguments")
        file_id = f"F{len(self._uploads) + len(self._files):04d}"
        self._uploads[file_id] = name
        return {"upload_url": f"{self.url}/upload/{file_id}", "file_id": file_id}

    async def _upload(self, request: web.Request) -> web.Response:
        name = self._uploads.get(request.match_info["file"])
        if name is None:
            raise Refusal(404, "file_not_found")
        if request.content_type == "multipart/form-data":
            upload = next(iter((await read_parameters(request)).files.values()))
            content = upload.content
        else:
            content = await request.read()
        self._files[request.match_info["file"]] = Attachment(name, content)
        return web.Response(text="OK - 1")

    def _complete_upload(self, parameters: CallParameters) -> dict[str, Any]:
        entries = parameters.structure("files", [])
        attachments = []
        for entry in entries:
            attachment = self._files.get(entry["id"])
            if attachment is None:
                raise slack_error("file_not_found")
            attachments.append(Attachment(entry.get("title") or attachment.name, attachment.content))
        channel = parameters.text("channel_id")
        if channel not in self._channels:
            raise slack_error("channel_not_found")
        values = {"text": parameters.text("initial_comment"), "thread_ts": parameters.get("thread_ts")}
        parameters.ignore("channels")
        message = self._messages.post(channel, CallParameters(values), tuple(attachments))
        self._tell_message(channel, message)
        return {"files": [{"id": entry["id"], "title": entry.get("title")} for entry in entries]}

    async def _download(self, request: web.Request) -> web.Response:
        attachment = self._files.get(request.match_info["file"])
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}" or attachment is None:
            # Slack shows whoever is not signed in its login page, with status 200.
            return web.Response(text="<!DOCTYPE html><html>Sign in</html>", content_type="text/html")
        self.transcript.add_act(Act("download", "", self.clock.now(), {"name": attachment.name}))
        return web.Response(body=attachment.content, content_type=attachment.media_type)

    async def _respond(self, request: web.Request) -> web.Response:
        opened = self._responses.get(request.match_info["response"])
        parameters = await read_parameters(request)
        if opened is None:
            raise Refusal(404, "used_url")
        channel, ts = opened
        ephemeral = parameters.text("response_type", "ephemeral") == "ephemeral"
        content: dict[str, Any] = {"text": parameters.text("text")}
        if blocks := parameters.structure("blocks", []):
            content["blocks"] = blocks
        if parameters.flag("delete_original") and ts is not None:
            self._messages.delete(channel, ts)
        elif parameters.flag("replace_original") and ts is not None:
            self._messages.change(channel, self._messages.get_own(channel, ts), content)
        else:
            self._show_answer(channel, content, ephemeral)
        parameters.check_read("response_url")
        return web.Response(text="ok")

    # What Slack tells the app

    def _tell_message(self, channel: str, message: dict[str, Any]) -> str:
        kind = "channel" if self._channels.get(channel) is None else "im"
        return self._tell({**message, "channel": channel, "channel_type": kind, "event_ts": message["ts"]})

    def _tell(self, event: dict[str, Any]) -> str:
        event_id = f"Ev{len(self._events):06d}"
        payload = {
            "token": "x",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": event,
            "type": "event_callback",
            "event_id": event_id,
            "event_time": self.clock.now() // SECOND,
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
        }
        # As it is now: later edits do not change what was told.
        self._events[event_id] = json.loads(json.dumps(payload))
        self._send_event(event_id, self._events[event_id])
        return event_id

    def _send_event(self, event_id: str, payload: dict[str, Any]) -> None:
        if self.webhook.url is None:
            self.socket.push(event_id, "events_api", payload)
        else:
            self.webhook.push(PushedEvent(event_id, json.dumps(payload).encode()))

    def _interact(self, kind: str, payload: dict[str, Any], channel: str, message_id: str) -> InboundEvent:
        event_id = f"In{len(self._events):06d}"
        self._events[event_id] = payload
        if self.webhook.url is None:
            self.socket.push(event_id, kind, payload, repeated=False)
        else:
            fields = payload if kind == "slash_commands" else {"payload": json.dumps(payload)}
            body = urlencode(fields).encode()
            self.webhook.push(PushedEvent(event_id, body, FORM, repeated=False))
        return InboundEvent(event_id, channel, message_id)

    def _take_http_answer(self, event_id: str, answer: bytes) -> None:
        if answer.startswith(b"{"):
            self._take_answer(event_id, json.loads(answer))

    def _take_answer(self, event_id: str, answer: dict[str, Any]) -> None:
        """What came with an acknowledgement: a command may be answered by it."""
        payload = self._events.get(event_id, {})
        if answer.get("text") and "command" in payload:
            ephemeral = answer.get("response_type", "ephemeral") == "ephemeral"
            self._show_answer(payload["channel_id"], {"text": answer["text"]}, ephemeral)

    def _show_answer(self, channel: str, content: dict[str, Any], ephemeral: bool) -> None:
        message = self._messages.add(channel, {"user": BOT_USER, "bot_id": BOT, **content})
        self._messages.show(channel, message, ephemeral=ephemeral)

    def _open_response(self, channel: str, ts: str | None) -> str:
        key = str(len(self._responses))
        self._responses[key] = (channel, ts)
        return f"{self.url}/response/{key}"

    def _open_direct(self, person: Person) -> str:
        self._channels.setdefault(f"D{person.id}", person)
        return f"D{person.id}"

    def _describe(self, channel: str) -> dict[str, Any]:
        person = self._channels[channel]
        if person is not None:
            return {"id": channel, "is_im": True, "user": person.id}
        return {"id": channel, "is_channel": True, "is_im": False, "name": "general", "is_member": True}

    def _store(self, file: Attachment) -> dict[str, Any]:
        file_id = f"F{len(self._uploads) + len(self._files):04d}"
        self._files[file_id] = file
        url = f"{self.url}/files/{file_id}"
        described = {"id": file_id, "name": file.name, "mimetype": file.media_type, "size": len(file.content)}
        return {**described, "mode": "hosted", "url_private": url, "url_private_download": url}

    def _sign(self, body: bytes, number: int, wrong: bool) -> dict[str, str]:
        timestamp = str(self.clock.now() // SECOND)
        secret = "not the secret" if wrong else self.signing_secret
        signed = hmac.new(secret.encode(), f"v0:{timestamp}:".encode() + body, hashlib.sha256).hexdigest()
        headers = {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={signed}"}
        if number > 1:
            headers |= {"X-Slack-Retry-Num": str(number - 1), "X-Slack-Retry-Reason": "http_error"}
        return headers
