"""One app on Slack, through slack_sdk. An event is acknowledged when it is stored, and not before.

Slack repeats what nobody acknowledged for some minutes only, so after each connection what was missed since
the last stored message of each chat is fetched.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar
from urllib.parse import parse_qs

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore, Sink, WebhookAnswer, WebhookRequest
from postroom.channels.errors import (
    ChannelMisconfigured,
    FileUnavailable,
    MaybeSent,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage
from postroom.channels.slack.events import EVENTS, find_user, make_envelope, read_event
from postroom.channels.slack.markup import CAPABILITIES, render

API = "https://slack.com/api/"
REQUEST_S = 30
PAUSE_S = 5.0
MOST_NAMES = 5000
MOST_CHATS = 2000
PAGE = 200
# Of threads that began so long before what was last stored, answers that were missed are looked for.
THREAD_S = 7 * 24 * 3600.0
_TOKEN_ERRORS = frozenset(
    {"invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"}
)
_CHAT_GONE = frozenset({"channel_not_found", "not_in_channel", "is_archived", "missing_scope"})
_SLACK_FAILED = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})


class SlackChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        token, self._app_token = options.get("bot_token"), options.get("app_token")
        secret = options.get("signing_secret")
        if not token or not (self._app_token or secret):
            reason = (
                "it needs bot_token (xoxb-…), and app_token (xapp-…) for socket mode or signing_secret for"
                " requests. See: postroom channel setup slack"
            )
            raise ChannelMisconfigured(channel=name, reason=reason)
        base = str(options.get("base_url") or API).rstrip("/") + "/"
        # Nothing is repeated behind our back: what may have been sent is for the delivery plan to know.
        self._web = AsyncWebClient(token=str(token), base_url=base, timeout=REQUEST_S, retry_handlers=[])
        self._verifier = SignatureVerifier(str(secret)) if secret else None
        self._bot = ""
        self._names: dict[str, str] = {}
        # The last message of each chat that is stored.
        self._last: dict[str, str] = {}
        # What was missed comes before what is new.
        self._order = asyncio.Lock()

    async def open(self) -> None:
        try:
            me = await self._web.auth_test()
        except SlackApiError as error:
            if error.response.get("error") not in _TOKEN_ERRORS:
                raise
            reason = f"Slack refuses its bot token ({error.response['error']}). Install the app anew."
            raise ChannelMisconfigured(channel=self._name, reason=reason) from None
        self._bot = str(me["user_id"])

    async def receive(self, store: EnvelopeStore) -> None:
        self._last = {**await store.read_cursor(), **self._last}
        if not self._app_token:
            await self._catch_up(store)
            await asyncio.Event().wait()
        client = SocketModeClient(app_token=str(self._app_token), web_client=self._web)
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def take(client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
            try:
                await self._store(request.type, request.payload, store)
                await client.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
            except Exception as error:
                # Not acknowledged, so Slack tells it again.
                if not failed.done():
                    failed.set_exception(error)

        async def greet(client: AsyncBaseSocketModeClient, message: dict[str, Any], raw: str | None) -> None:
            if message.get("type") == "hello":
                try:
                    await self._catch_up(store)
                except Exception as error:
                    if not failed.done():
                        failed.set_exception(error)

        client.message_listeners.append(greet)
        client.socket_mode_request_listeners.append(take)
        try:
            await client.connect()
            await failed
        except SlackApiError as error:
            if error.response.get("error") not in _TOKEN_ERRORS:
                raise
            reason = f"Slack refuses its app token ({error.response['error']}). It begins with xapp-."
            raise ChannelMisconfigured(channel=self._name, reason=reason) from None
        finally:
            await client.close()

    async def accept_webhook(self, request: WebhookRequest, store: EnvelopeStore) -> WebhookAnswer:
        if self._verifier is None or not self._verifier.is_valid_request(request.body, dict(request.headers)):
            return WebhookAnswer(401)
        try:
            kind, payload = _read_request(request)
        except (ValueError, KeyError, TypeError):
            return WebhookAnswer(400)
        if payload.get("type") == "url_verification":
            return WebhookAnswer(200, str(payload.get("challenge", "")))
        await self._store(kind, payload, store)
        return WebhookAnswer(200)

    async def _store(self, kind: str, payload: dict[str, Any], store: EnvelopeStore) -> None:
        envelope = make_envelope(kind, payload)
        if envelope is None or read_event(envelope, self._bot) is None:
            return
        async with self._order:
            await self._store_named(envelope, store)

    async def _store_named(self, envelope: Envelope, store: EnvelopeStore) -> None:
        name = await self._find_name(find_user(envelope))
        event = envelope.raw["event"]
        if envelope.raw["kind"] == EVENTS:
            before = self._last.pop(event["channel"], "0")
            self._last[event["channel"]] = max(before, event["ts"], key=float)
            if len(self._last) > MOST_CHATS:
                del self._last[next(iter(self._last))]
        await store([Envelope(envelope.event_id, {**envelope.raw, "name": name})], self._last)

    async def _catch_up(self, store: EnvelopeStore) -> None:
        """What was written into known chats and their threads while nobody listened."""
        async with self._order:
            for chat, last in list(self._last.items()):
                await self._fetch_missed(chat, last, store)

    async def _fetch_missed(self, chat: str, last: str, store: EnvelopeStore) -> None:
        begun = f"{max(0.0, float(last) - THREAD_S):.6f}"
        try:
            found = await self._list_messages(self._web.conversations_history, channel=chat, oldest=begun)
            missed = {each["ts"]: each for each in found if float(each["ts"]) > float(last)}
            for thread in found:
                # A chat's history has the first message of a thread only, and when it was last answered.
                if float(thread.get("latest_reply") or 0) > float(last):
                    replies = await self._list_messages(
                        self._web.conversations_replies, channel=chat, ts=thread["ts"], oldest=last
                    )
                    missed |= {each["ts"]: each for each in replies if float(each["ts"]) > float(last)}
        except SlackApiError as error:
            if error.response.get("error") not in _CHAT_GONE:
                raise
            self._last.pop(chat, None)
            return
        for message in sorted(missed.values(), key=lambda each: float(each["ts"])):
            event = {**message, "type": "message", "channel": chat}
            envelope = Envelope(f"{chat}-{message['ts']}", {"kind": EVENTS, "event": event})
            if read_event(envelope, self._bot) is not None:
                await self._store_named(envelope, store)

    async def _list_messages(
        self, call: Callable[..., Awaitable[AsyncSlackResponse]], **request: str
    ) -> list[dict[str, Any]]:
        """Page by page, as fast as Slack allows."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while cursor != "":
            try:
                page = await call(**request, limit=PAGE, cursor=cursor)
            except SlackApiError as error:
                problem = _explain(error)
                if not isinstance(problem, RetryAfter):
                    raise
                await asyncio.sleep(problem.seconds)
                continue
            found += page.get("messages") or []
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
        return found

    async def _find_name(self, user: str | None) -> str | None:
        """Events name people by id only. To know no name holds up no message."""
        if user and user not in self._names:
            try:
                found: dict[str, Any] = (await self._web.users_info(user=user)).get("user") or {}
            except (SlackClientError, aiohttp.ClientError, TimeoutError):
                return None
            if len(self._names) >= MOST_NAMES:
                self._names.clear()
            self._names[user] = found.get("real_name") or found.get("name") or user
        return self._names.get(user or "")

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        return read_event(envelope, self._bot)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        try:
            if file is not None:
                return await self._send_file(address, piece, file)
            text = render(piece.text)
            sent = await self._web.chat_postMessage(
                channel=address.chat,
                text=text,
                blocks=_describe_buttons(text, piece),
                thread_ts=address.thread,
                metadata={"event_type": "postroom_piece", "event_payload": {"key": key}},
                unfurl_links=False,
            )
            return str(sent["ts"])
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            raise _explain(error) from error

    async def _send_file(self, address: Address, piece: Piece, file: BinaryIO) -> str:
        chat = address.chat
        if chat.startswith("U"):
            opened: dict[str, Any] = (await self._web.conversations_open(users=chat)).get("channel") or {}
            chat = str(opened["id"])
        content = await asyncio.to_thread(file.read)
        sent = await self._web.files_upload_v2(
            channel=chat, content=content, filename=Path(piece.path or "file").name, thread_ts=address.thread
        )
        files: list[dict[str, Any]] = sent.get("files") or [{}]
        return str(files[0].get("id", ""))

    async def edit(self, address: Address, platform_id: str, piece: Piece) -> None:
        try:
            await self._web.chat_update(channel=address.chat, ts=platform_id, text=render(piece.text))
        except (SlackClientError, aiohttp.ClientError, TimeoutError) as error:
            raise _explain(error) from error

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        headers = {"Authorization": f"Bearer {self._web.token}"}
        timeout = aiohttp.ClientTimeout(total=None, connect=REQUEST_S, sock_read=REQUEST_S)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(file.handle, headers=headers, raise_for_status=True) as answer,
            ):
                async for chunk in answer.content.iter_chunked(65536):
                    target.write(chunk)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise FileUnavailable(name=file.name, reason=f"Slack did not send it ({error}).") from None


def _read_request(request: WebhookRequest) -> tuple[str, dict[str, Any]]:
    if request.headers.get("content-type", "").startswith("application/json"):
        return "events_api", json.loads(request.body)
    form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
    return ("interactive", json.loads(form["payload"])) if "payload" in form else ("slash_commands", form)


def _describe_buttons(text: str, piece: Piece) -> list[dict[str, Any]] | None:
    if not piece.choices:
        return None
    buttons = [
        {
            "type": "button",
            "action_id": f"choice_{number}",
            "text": {"type": "plain_text", "text": choice.label},
            "value": choice.value,
        }
        for number, choice in enumerate(piece.choices)
    ]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    return [section, {"type": "actions", "elements": buttons}]


def _explain(error: Exception) -> SendProblem:
    if isinstance(error, SlackApiError):
        name, status = str(error.response.get("error") or ""), error.response.status_code
        if name == "ratelimited" or status == 429:
            wait = (error.response.headers or {}).get("Retry-After", PAUSE_S)
            return RetryAfter("Slack asks to wait.", float(wait), whole_channel=True)
        if status >= 500 or name in _SLACK_FAILED:
            return NotSent(f"Slack failed ({name or status}).")
        if name in _TOKEN_ERRORS:
            return NotSent(f"Slack refuses the bot token ({name}).")
        return Undeliverable(f"Slack refused it: {name or status}.")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return NotSent("Slack could not be reached.")
    if isinstance(error, SlackClientError):
        # An error page: Slack did nothing.
        return NotSent(f"Slack failed: {error}")
    return MaybeSent("The connection to Slack broke before it answered.")
