"""One bot on Telegram, through aiogram. It never moves beyond an update that is not stored."""

import asyncio
import hmac
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
from aiogram.exceptions import (
    TelegramAPIError,
    TelegramBadRequest,
    TelegramConflictError,
    TelegramUnauthorizedError,
)
from aiogram.methods import TelegramMethod
from aiogram.types import (
    BotCommand,
    BufferedInputFile,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    MessageEntity,
    ReplyParameters,
)
from aiohttp import ClientError

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore, Sink, WebhookAnswer, WebhookRequest
from postroom.channels.errors import ChannelMisconfigured, FileUnavailable
from postroom.channels.model import Address, Choice, Envelope, Piece, ReceivedFile, ReceivedMessage
from postroom.channels.telegram.markup import CAPABILITIES, render_entities
from postroom.channels.telegram.problems import explain
from postroom.channels.telegram.updates import KINDS, BotIdentity, read_update
from postroom.services.chat_commands import MENU

log = logging.getLogger("postroom.channels")

POLL_S = 50
REQUEST_S = 30
PHOTO_BYTES = 10 * 1024 * 1024
SECRET_HEADER = "x-telegram-bot-api-secret-token"
PHOTOS = frozenset({".jpg", ".jpeg", ".png", ".gif", ".webp"})
SOUNDS = frozenset({".mp3", ".ogg", ".wav", ".m4a"})
VIDEOS = frozenset({".mp4", ".avi", ".mov", ".webm"})
PLACEHOLDER = "your_token_here"


class GetRawUpdates(TelegramMethod[list[dict[str, Any]]]):
    """Updates as Telegram sent them: one that aiogram could not read must not hold up the others."""

    __returning__ = list[dict[str, Any]]
    __api_method__ = "getUpdates"

    offset: int | None = None
    timeout: int = POLL_S
    allowed_updates: tuple[str, ...] = KINDS


class TelegramChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        token = str(options.get("bot_token") or "")
        if ":" not in token or token == PLACEHOLDER:
            reason = "it has no bot token. Get one from @BotFather, then: postroom channel setup telegram"
            raise ChannelMisconfigured(channel=name, reason=reason)
        base = options.get("base_url")
        api = TelegramAPIServer.from_base(str(base)) if base else PRODUCTION
        self._bot = Bot(token, session=AiohttpSession(api=api, timeout=REQUEST_S))
        self._webhook_url = options.get("webhook_url")
        self._webhook_secret = str(options.get("webhook_secret") or "")
        if self._webhook_url and not self._webhook_secret:
            reason = "a webhook needs a secret, or anybody could write in anybody's name. Set webhook_secret."
            raise ChannelMisconfigured(channel=name, reason=reason)
        self._identity = BotIdentity(int(token.partition(":")[0]), "")

    async def open(self) -> None:
        try:
            me = await self._bot.get_me()
        except TelegramUnauthorizedError:
            reason = "Telegram does not know its token. Ask @BotFather for the right one."
            raise ChannelMisconfigured(channel=self._name, reason=reason) from None
        self._identity = BotIdentity(me.id, me.username or "")
        try:
            await self._bot.set_my_commands(
                [BotCommand(command=name, description=text) for name, text in MENU.items()]
            )
        except TelegramAPIError as error:
            log.warning("%s: the commands are not in Telegram's menu: %s", self._name, error)

    async def close(self) -> None:
        await self._bot.session.close()

    async def receive(self, store: EnvelopeStore) -> None:
        if self._webhook_url:
            await self._bot.set_webhook(
                str(self._webhook_url), secret_token=self._webhook_secret, allowed_updates=list(KINDS)
            )
            await asyncio.Event().wait()
        await self._bot.delete_webhook()
        # Whatever is unconfirmed comes first; what of it was stored before is known by its id.
        offset: int | None = None
        while True:
            updates = await self._poll(offset)
            if updates:
                await store([Envelope(str(update["update_id"]), update) for update in updates])
                offset = max(update["update_id"] for update in updates) + 1

    async def _poll(self, offset: int | None) -> list[dict[str, Any]]:
        try:
            return await self._bot(GetRawUpdates(offset=offset), request_timeout=POLL_S + REQUEST_S)
        except TelegramConflictError:
            reason = (
                "another program receives for the same bot. Telegram allows one: stop the other,"
                " or give this office a bot of its own."
            )
            raise ChannelMisconfigured(channel=self._name, reason=reason) from None

    async def accept_webhook(self, request: WebhookRequest, store: EnvelopeStore) -> WebhookAnswer:
        given = request.headers.get(SECRET_HEADER, "")
        if not self._webhook_secret or not hmac.compare_digest(given.encode(), self._webhook_secret.encode()):
            return WebhookAnswer(401)
        try:
            update = json.loads(request.body)
            envelope = Envelope(str(update["update_id"]), update)
        except (ValueError, KeyError, TypeError):
            return WebhookAnswer(400)
        await store([envelope])
        return WebhookAnswer(200)

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        return read_update(envelope, self._identity)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        try:
            sent = await (
                self._send_text(address, piece) if file is None else self._send_file(address, piece, file)
            )
        except Exception as error:
            raise explain(error) from error
        return str(sent.message_id)

    async def _send_text(self, address: Address, piece: Piece) -> Message:
        return await self._bot.send_message(
            address.chat,
            piece.text.text,
            entities=[MessageEntity(**entity) for entity in render_entities(piece.text)],
            reply_markup=_keyboard(piece.choices),
            **_place(address),
        )

    async def _send_file(self, address: Address, piece: Piece, file: BinaryIO) -> Message:
        name = Path(piece.path or "").name
        content = await asyncio.to_thread(file.read)
        upload, place = BufferedInputFile(content, name), _place(address)
        ending = Path(name).suffix.lower()
        try:
            if ending in PHOTOS and len(content) <= PHOTO_BYTES:
                return await self._bot.send_photo(address.chat, upload, **place)
            if ending in SOUNDS:
                return await self._bot.send_audio(address.chat, upload, **place)
            if ending in VIDEOS:
                return await self._bot.send_video(address.chat, upload, **place)
        except TelegramBadRequest as refusal:
            # A picture that Telegram cannot show is still a file that it can deliver.
            if not _is_about_the_file(refusal):
                raise
        return await self._bot.send_document(address.chat, upload, **place)

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        try:
            found = await self._bot.get_file(file.handle)
            url = self._bot.session.api.file_url(self._bot.token, found.file_path or "")
            async for chunk in self._bot.session.stream_content(url):
                target.write(chunk)
        except TelegramBadRequest as refusal:
            raise FileUnavailable(name=file.name, reason=refusal.message) from None
        except (TimeoutError, TelegramAPIError, ClientError, OSError) as error:
            raise FileUnavailable(name=file.name, reason=f"Telegram did not send it ({error}).") from None

    async def edit(self, address: Address, platform_id: str, piece: Piece) -> None:
        entities = [MessageEntity(**entity) for entity in render_entities(piece.text)]
        try:
            await self._bot.edit_message_text(
                piece.text.text, chat_id=address.chat, message_id=int(platform_id), entities=entities
            )
        except Exception as error:
            raise explain(error) from error

    async def show_typing(self, address: Address) -> None:
        thread = int(address.thread) if address.thread else None
        await self._bot.send_chat_action(address.chat, "typing", message_thread_id=thread)

    async def confirm_press(self, handle: str) -> None:
        try:
            await self._bot.answer_callback_query(handle)
        except TelegramAPIError:
            return


def _place(address: Address) -> dict[str, Any]:
    place: dict[str, Any] = {}
    if address.thread is not None:
        place["message_thread_id"] = int(address.thread)
    if address.reply_to is not None:
        # What was asked may have been deleted meanwhile; the answer is sent all the same.
        place["reply_parameters"] = ReplyParameters(
            message_id=int(address.reply_to), allow_sending_without_reply=True
        )
    return place


def _keyboard(choices: tuple[Choice, ...]) -> InlineKeyboardMarkup | None:
    if not choices:
        return None
    buttons = [InlineKeyboardButton(text=choice.label, callback_data=choice.value) for choice in choices]
    # Two beside each other can be read on a phone.
    rows = [buttons[start : start + 2] for start in range(0, len(buttons), 2)]
    return InlineKeyboardMarkup(inline_keyboard=rows)


def _is_about_the_file(refusal: TelegramBadRequest) -> bool:
    return any(word in refusal.message for word in ("PHOTO", "IMAGE", "photo", "video", "audio", "file"))
