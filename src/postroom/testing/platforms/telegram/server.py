"""The Bot API server: calls by name, and what people do on Telegram."""

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from aiohttp import web

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import InboundEvent, Person
from postroom.testing.platforms.faults import RateLimited, ServerFailed
from postroom.testing.platforms.http import (
    CallParameters,
    HttpPlatform,
    NotImplementedByFake,
    Refusal,
    answer_json,
    read_parameters,
)
from postroom.testing.platforms.telegram.chats import (
    FileStore,
    TelegramChat,
    choose_kind,
    render_file,
    render_person,
)
from postroom.testing.platforms.telegram.markup import find_marks
from postroom.testing.platforms.telegram.messages import BotMessages
from postroom.testing.platforms.telegram.updates import PendingUpdates
from postroom.testing.platforms.transcript import Act, Attachment, Delivery
from postroom.testing.platforms.webhook_sender import WebhookAttempt, WebhookSender

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
DOWNLOAD_BYTES = 20 * 1024 * 1024
NO_GIFTS = dict.fromkeys(
    ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"), False
)
# How long a pressed button may wait for its answer. Telegram does not publish its own figure.
PRESS_ANSWERABLE = 15 * 60 * SECOND


class FakeTelegram(HttpPlatform):
    """aiogram: `AiohttpSession(api=TelegramAPIServer.from_base(telegram.url))`. Calls are named as in the Bot
    API.
    """

    name = "Telegram"

    def __init__(
        self, *, token: str = TOKEN, username: str = "office_bot", clock: HeldClock | None = None
    ) -> None:
        super().__init__(clock=clock)
        self.token = token
        self.bot = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": "Office",
            "username": username,
        }
        # Commands of the bot's menu, by scope.
        self.commands: dict[str, list[dict[str, str]]] = {}
        self._chats: dict[int, TelegramChat] = {}
        self._files = FileStore()
        self._updates = PendingUpdates(self.clock, self.faults, self._inspect_webhook_answer)
        self._messages = BotMessages(self.clock, self.transcript, self._chats, self._files, self.bot)
        self._presses: dict[str, int] = {}
        self._sent_updates: dict[str, dict[str, Any]] = {}
        self._calls = self._list_calls()

    @property
    def webhook(self) -> WebhookSender:
        return self._updates.webhook

    @property
    def unconfirmed(self) -> list[int]:
        """The ids of updates that no poller has moved beyond and no webhook has accepted."""
        return self._updates.unconfirmed

    # What people do

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        chat: str | None = None,
        thread: str | None = None,
        files: Sequence[Attachment] = (),
        reply_to: str | None = None,
    ) -> InboundEvent:
        """A person writes to the bot, or into a group; several files come as messages of one album."""
        place = self._open_chat(person, chat)
        contents: list[dict[str, Any]] = [{"text": text}] if not files else []
        for file in files:
            kind = choose_kind(file)
            contents.append({kind: render_file(kind, self._files.add(file))})
        if files and text:
            contents[0]["caption"] = text
        if len(files) > 1:
            album = f"album-{place.id}-{place.last_message + 1}"
            contents = [{**content, "media_group_id": album} for content in contents]
        events = [self._receive(person, place, content, thread, reply_to) for content in contents]
        return events[0]

    async def edit(self, person: Person, event: InboundEvent, text: str) -> InboundEvent:
        """A person changes what they wrote."""
        message = self._messages.stored[int(event.chat), int(event.message_id)]
        message["caption" if "caption" in message else "text"] = text
        message["edit_date"] = self.clock.now() // SECOND
        return self._announce("edited_message", dict(message), event.chat, event.message_id)

    async def press(self, person: Person, delivery: Delivery, label: str) -> InboundEvent:
        """A person presses a button below a message of the bot."""
        press_id = str(4_382_000_000 + len(self._presses))
        self._presses[press_id] = self.clock.now()
        query = {
            "id": press_id,
            "from": render_person(person),
            "message": self._messages.stored[int(delivery.chat), int(delivery.id)],
            "chat_instance": f"instance-{delivery.chat}",
            "data": delivery.button(label).value,
        }
        return self._announce("callback_query", query, delivery.chat, delivery.id)

    def redeliver(self, event: InboundEvent) -> None:
        """Telegram sends this update again, although it was confirmed."""
        self._updates.put(self._sent_updates[event.id])

    def add_group(self, title: str, *, forum: bool = False) -> str:
        """A group that the bot is a member of; it sees everything written there."""
        chat_id = -1_001_000_000_000 - len(self._chats)
        self._chats[chat_id] = TelegramChat(chat_id, "supergroup", title, forum=forum)
        return str(chat_id)

    def add_topic(self, chat: str, name: str) -> str:
        place = self._chats[int(chat)]
        topic = place.next_message_id()
        place.topics[topic] = name
        return str(topic)

    def upgrade_group(self, chat: str) -> str:
        """The group becomes a supergroup with another id; sending to the old one says where it went."""
        moved = self.add_group(self._chats[int(chat)].title)
        self._chats[int(chat)].migrated_to = int(moved)
        return moved

    def block(self, person: Person) -> None:
        """The person blocks the bot."""
        self._chats[int(person.id)].blocked = True

    def unblock(self, person: Person) -> None:
        self._chats[int(person.id)].blocked = False

    # What bots call

    def routes(self) -> Iterable[web.RouteDef]:
        return [
            web.route("*", "/bot{token}/{method}", self._call),
            web.get("/file/bot{token}/{path:.+}", self._download, name="download"),
        ]

    def name_call(self, request: web.Request) -> str:
        return request.match_info.get("method") or super().name_call(request)

    def render_refusal(self, refusal: Refusal) -> web.Response:
        answer = {
            "ok": False,
            "error_code": refusal.status,
            "description": refusal.message,
            **refusal.details,
        }
        return answer_json(answer, status=refusal.status)

    def render_rate_limit(self, fault: RateLimited) -> web.Response:
        seconds = round(fault.retry_after)
        return self.render_refusal(
            Refusal(429, f"Too Many Requests: retry after {seconds}", parameters={"retry_after": seconds})
        )

    def render_server_failure(self, fault: ServerFailed) -> web.Response:
        if fault.status == 500:
            return self.render_refusal(Refusal(500, "Internal Server Error"))
        return super().render_server_failure(fault)

    async def _close(self) -> None:
        await super()._close()
        await self._updates.webhook.close()

    def _list_calls(self) -> dict[str, Callable[[CallParameters], Any]]:
        messages, updates = self._messages, self._updates
        calls: dict[str, Callable[[CallParameters], Any]] = {
            "getMe": self._get_me,
            "getUpdates": updates.get_updates,
            "setWebhook": updates.set_webhook,
            "deleteWebhook": updates.set_webhook,
            "getWebhookInfo": lambda parameters: updates.describe_webhook(),
            "sendMessage": messages.send_message,
            "sendMediaGroup": messages.send_album,
            "sendChatAction": messages.send_action,
            "editMessageText": messages.edit_text,
            "editMessageReplyMarkup": messages.edit_keyboard,
            "deleteMessage": messages.delete,
            "setMessageReaction": messages.react,
            "answerCallbackQuery": self._answer_press,
            "setMyCommands": self._set_commands,
            "getMyCommands": self._get_commands,
            "getChat": self._get_chat,
            "getFile": self._get_file,
        }
        for kind in ("photo", "document", "audio", "voice", "video"):
            calls[f"send{kind.title()}"] = lambda parameters, kind=kind: messages.send_file(kind, parameters)
        return calls

    async def _call(self, request: web.Request) -> web.Response:
        if request.match_info["token"] != self.token:
            raise Refusal(401, "Unauthorized")
        name = request.match_info["method"]
        call = self._calls.get(name)
        if call is None:
            raise NotImplementedByFake(name)
        parameters = await read_parameters(request)
        result = call(parameters)
        if isinstance(result, Awaitable):
            result = await result
        parameters.check_read(name)
        return answer_json({"ok": True, "result": result})

    async def _download(self, request: web.Request) -> web.Response:
        stored = self._files.at(request.match_info["path"])
        if request.match_info["token"] != self.token or stored is None:
            raise Refusal(404, "Not Found")
        self.transcript.add_act(Act("download", "", self.clock.now(), {"name": stored.attachment.name}))
        return web.Response(body=stored.attachment.content, content_type="application/octet-stream")

    def _get_me(self, parameters: CallParameters) -> dict[str, Any]:
        return {
            **self.bot, "can_join_groups": True, "can_read_all_group_messages": True,
            "supports_inline_queries": False, }  # fmt: skip

    def _get_chat(self, parameters: CallParameters) -> dict[str, Any]:
        chat = self._messages.find_chat(parameters).render()
        # Fields that Telegram sends with every full description of a chat.
        return {**chat, "accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": NO_GIFTS}

    def _get_file(self, parameters: CallParameters) -> dict[str, Any]:
        stored = self._files.get(parameters.text("file_id").removesuffix("-small"))
        if stored is None:
            raise Refusal(400, "Bad Request: invalid file_id")
        if stored.size > DOWNLOAD_BYTES:
            raise Refusal(400, "Bad Request: file is too big")
        return {**stored.render(), "file_path": stored.path}

    def _answer_press(self, parameters: CallParameters) -> bool:
        pressed = self._presses.get(parameters.text("callback_query_id"))
        if pressed is None or self.clock.now() - pressed > PRESS_ANSWERABLE:
            raise Refusal(
                400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
            )
        data = {"text": parameters.text("text"), "alert": parameters.flag("show_alert")}
        parameters.ignore("cache_time")
        self.transcript.add_act(Act("button answer", "", self.clock.now(), data))
        return True

    def _set_commands(self, parameters: CallParameters) -> bool:
        commands = parameters.structure("commands", [])
        scope = parameters.structure("scope") or {"type": "default"}
        if any(not command.get("description") for command in commands):
            raise Refusal(400, "Bad Request: command description is empty")
        self.commands[scope["type"]] = commands
        return True

    def _get_commands(self, parameters: CallParameters) -> list[dict[str, str]]:
        scope = parameters.structure("scope") or {"type": "default"}
        return self.commands.get(scope["type"], [])

    def _open_chat(self, person: Person, chat: str | None) -> TelegramChat:
        if chat is not None:
            return self._chats[int(chat)]
        private = self._chats.setdefault(
            int(person.id), TelegramChat(int(person.id), "private", person.name, person.username)
        )
        private.blocked = False
        return private

    def _receive(
        self,
        person: Person,
        chat: TelegramChat,
        content: dict[str, Any],
        thread: str | None,
        reply_to: str | None,
    ) -> InboundEvent:
        message_id = chat.next_message_id()
        message: dict[str, Any] = {
            "message_id": message_id,
            "from": render_person(person),
            "chat": chat.render(),
            "date": self.clock.now() // SECOND,
            **content,
        }
        for field, marks in (("text", "entities"), ("caption", "caption_entities")):
            if found := find_marks(message.get(field, "")):
                message[marks] = found
        if thread is not None:
            message |= {"message_thread_id": int(thread), "is_topic_message": True}
        if reply_to is not None:
            message["reply_to_message"] = self._messages.stored[chat.id, int(reply_to)]
        self._messages.stored[chat.id, message_id] = message
        return self._announce("message", message, str(chat.id), str(message_id))

    def _announce(self, kind: str, content: dict[str, Any], chat: str, message_id: str) -> InboundEvent:
        # A copy: what was sent does not change when the message is edited later.
        content = json.loads(json.dumps(content))
        update_id = self._updates.add(kind, content)
        self._sent_updates[str(update_id)] = {"update_id": update_id, kind: content}
        return InboundEvent(str(update_id), chat, message_id)

    def _inspect_webhook_answer(self, attempt: WebhookAttempt) -> None:
        if attempt.accepted and b'"method"' in attempt.answer:
            self.record_failure("does not implement calls in the answer to a webhook; send them to the API")
