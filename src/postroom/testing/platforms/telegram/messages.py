"""What a bot sends: checked as Telegram checks it, written to the transcript, answered with the message."""

from typing import Any

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.http import CallParameters, NotImplementedByFake, Refusal
from postroom.testing.platforms.telegram.chats import FileStore, StoredFile, TelegramChat, render_file
from postroom.testing.platforms.telegram.markup import read_formatted, utf16_length
from postroom.testing.platforms.transcript import Act, Delivery, OfferedButton, Transcript

TEXT_LIMIT = 4096
CAPTION_LIMIT = 1024
BUTTON_DATA_BYTES = 64
UPLOAD_BYTES = 50 * 1024 * 1024
PHOTO_BYTES = 10 * 1024 * 1024
ALBUM = range(2, 11)


class BotMessages:
    def __init__(
        self,
        clock: HeldClock,
        transcript: Transcript,
        chats: dict[int, TelegramChat],
        files: FileStore,
        bot: dict[str, Any],
    ) -> None:
        self._clock = clock
        self._transcript = transcript
        self._chats = chats
        self._files = files
        self._bot = bot
        # Messages as they are on the wire, of people and of the bot: what replies, edits and buttons refer
        # to.
        self.stored: dict[tuple[int, int], dict[str, Any]] = {}

    def send_message(self, parameters: CallParameters) -> dict[str, Any]:
        chat = self.find_chat(parameters)
        text, entities = read_formatted(parameters, "text", "entities")
        if not text:
            raise Refusal(400, "Bad Request: message text is empty")
        if utf16_length(text) > TEXT_LIMIT:
            raise Refusal(400, "Bad Request: message is too long")
        content: dict[str, Any] = {"text": text}
        if entities:
            content["entities"] = entities
        return self._deliver(chat, parameters, content, text, entities, [])

    def send_file(self, kind: str, parameters: CallParameters) -> dict[str, Any]:
        chat = self.find_chat(parameters)
        stored = self._read_file(kind, parameters.get(kind), parameters)
        # What describes the file (its length, who plays) is shown with it and changes nothing else.
        parameters.ignore(
            "duration", "performer", "title", "width", "height", "disable_content_type_detection"
        )
        parameters.ignore("supports_streaming")
        caption, entities = self._read_caption(parameters)
        content: dict[str, Any] = {kind: render_file(kind, stored)}
        if caption:
            content |= {"caption": caption, "caption_entities": entities}
        return self._deliver(chat, parameters, content, caption, entities, [stored])

    def send_album(self, parameters: CallParameters) -> list[dict[str, Any]]:
        chat = self.find_chat(parameters)
        items = parameters.structure("media", [])
        if len(items) not in ALBUM:
            raise Refusal(400, "Bad Request: wrong number of messages in the media group; expected 2 to 10")
        prepared = []
        for item in items:
            entry = CallParameters(item, parameters.files)
            kind = entry.text("type")
            stored = self._read_file(kind, entry.get("media"), parameters)
            entry.ignore("disable_content_type_detection", "width", "height", "duration")
            caption, entities = self._read_caption(entry)
            entry.check_read("sendMediaGroup")
            prepared.append((kind, stored, caption, entities))
        group = f"album-{chat.id}-{chat.last_message + 1}"
        placement = self._read_placement(chat, parameters)
        parameters.check_read("sendMediaGroup")
        sent = []
        for kind, stored, caption, entities in prepared:
            content: dict[str, Any] = {kind: render_file(kind, stored), "media_group_id": group}
            if caption:
                content |= {"caption": caption, "caption_entities": entities}
            sent.append(self._write(chat, placement, content, caption, entities, [stored]))
        return sent

    def edit_text(self, parameters: CallParameters) -> dict[str, Any]:
        _, message, delivery = self._find_own(parameters, "edit")
        text, entities = read_formatted(parameters, "text", "entities")
        keyboard = self._read_keyboard(parameters)
        parameters.ignore("link_preview_options")
        if "text" not in message:
            raise Refusal(400, "Bad Request: there is no text in the message to edit")
        if not text:
            raise Refusal(400, "Bad Request: message text is empty")
        if utf16_length(text) > TEXT_LIMIT:
            raise Refusal(400, "Bad Request: MESSAGE_TOO_LONG")
        if (text, entities, keyboard) == (
            message["text"],
            message.get("entities", []),
            _keyboard_of(message),
        ):
            raise _not_modified()
        parameters.check_read("editMessageText")
        delivery.edits.append(delivery.text)
        delivery.text, delivery.markup = text, entities or None
        message |= {"text": text, "entities": entities, "edit_date": self._clock.now() // SECOND}
        self._set_keyboard(message, delivery, keyboard)
        return message

    def edit_keyboard(self, parameters: CallParameters) -> dict[str, Any]:
        _, message, delivery = self._find_own(parameters, "edit")
        keyboard = self._read_keyboard(parameters)
        if keyboard == _keyboard_of(message):
            raise _not_modified()
        parameters.check_read("editMessageReplyMarkup")
        self._set_keyboard(message, delivery, keyboard)
        return message

    def delete(self, parameters: CallParameters) -> bool:
        chat, message, delivery = self._find_own(parameters, "delete")
        parameters.check_read("deleteMessage")
        delivery.deleted = True
        del self.stored[chat.id, message["message_id"]]
        self._transcript.note_change()
        return True

    def send_action(self, parameters: CallParameters) -> bool:
        chat = self.find_chat(parameters)
        action = parameters.text("action")
        thread = parameters.get("message_thread_id")
        self._transcript.add_act(
            Act("typing", str(chat.id), self._clock.now(), {"action": action, "thread": thread})
        )
        return True

    def react(self, parameters: CallParameters) -> bool:
        chat = self.find_chat(parameters)
        message_id = parameters.number("message_id")
        if (chat.id, message_id) not in self.stored:
            raise Refusal(400, "Bad Request: message to react not found")
        reaction = parameters.structure("reaction", [])
        parameters.ignore("is_big")
        data = {"message_id": str(message_id), "emoji": [entry.get("emoji") for entry in reaction]}
        self._transcript.add_act(Act("reaction", str(chat.id), self._clock.now(), data))
        return True

    def find_chat(self, parameters: CallParameters) -> TelegramChat:
        given = parameters.text("chat_id")
        chat = next((c for c in self._chats.values() if given in (str(c.id), f"@{c.username}")), None)
        if chat is None:
            raise Refusal(400, "Bad Request: chat not found")
        if chat.migrated_to is not None:
            raise Refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                parameters={"migrate_to_chat_id": chat.migrated_to},
            )
        if chat.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        return chat

    def _deliver(
        self,
        chat: TelegramChat,
        parameters: CallParameters,
        content: dict[str, Any],
        text: str,
        entities: list[dict[str, Any]],
        files: list[StoredFile],
    ) -> dict[str, Any]:
        placement = self._read_placement(chat, parameters)
        # Nothing is shown to anybody before the whole call is understood.
        parameters.check_read("this message")
        return self._write(chat, placement, content, text, entities, files)

    def _read_placement(self, chat: TelegramChat, parameters: CallParameters) -> dict[str, Any]:
        """Where the message stands and what hangs on it: topic, reply, keyboard."""
        placement: dict[str, Any] = {}
        thread = parameters.get("message_thread_id")
        if thread is not None:
            if int(thread) not in chat.topics:
                raise Refusal(400, "Bad Request: message thread not found")
            placement |= {"message_thread_id": int(thread), "is_topic_message": True}
        reply = parameters.structure("reply_parameters") or {}
        if "reply_to_message_id" in parameters:
            reply = {"message_id": parameters.number("reply_to_message_id")}
        if reply:
            original = self.stored.get((chat.id, int(reply["message_id"])))
            if original is not None:
                placement["reply_to_message"] = {k: v for k, v in original.items() if k != "reply_to_message"}
            elif not reply.get("allow_sending_without_reply"):
                raise Refusal(400, "Bad Request: message to be replied not found")
        if keyboard := self._read_keyboard(parameters):
            placement["reply_markup"] = {"inline_keyboard": keyboard}
        placement["_silent"] = parameters.flag("disable_notification")
        parameters.ignore("link_preview_options")
        return placement

    def _write(
        self,
        chat: TelegramChat,
        placement: dict[str, Any],
        content: dict[str, Any],
        text: str,
        entities: list[dict[str, Any]],
        files: list[StoredFile],
    ) -> dict[str, Any]:
        message_id = chat.next_message_id()
        now = self._clock.now()
        wire = {key: value for key, value in placement.items() if not key.startswith("_")}
        message = {
            "message_id": message_id,
            "from": self._bot,
            "chat": chat.render(),
            "date": now // SECOND,
            **wire,
            **content,
        }
        self.stored[chat.id, message_id] = message
        thread = wire.get("message_thread_id")
        reply = wire.get("reply_to_message")
        self._transcript.add(
            Delivery(
                id=str(message_id),
                chat=str(chat.id),
                text=text,
                at=now,
                thread=None if thread is None else str(thread),
                reply_to=None if reply is None else str(reply["message_id"]),
                markup=entities or None,
                buttons=_list_buttons(_keyboard_of(message)),
                attachments=tuple(stored.attachment for stored in files),
                extra={"silent": placement["_silent"]},
            )
        )
        return message

    def _find_own(
        self, parameters: CallParameters, verb: str
    ) -> tuple[TelegramChat, dict[str, Any], Delivery]:
        chat = self.find_chat(parameters)
        message_id = parameters.number("message_id")
        message = self.stored.get((chat.id, message_id))
        if message is None:
            raise Refusal(400, f"Bad Request: message to {verb} not found")
        delivery = self._transcript.find(str(chat.id), str(message_id))
        if delivery is None:
            raise Refusal(400, f"Bad Request: message can't be {verb.rstrip('e')}ed")
        return chat, message, delivery

    def _read_caption(self, parameters: CallParameters) -> tuple[str, list[dict[str, Any]]]:
        caption, entities = read_formatted(parameters, "caption", "caption_entities")
        if utf16_length(caption) > CAPTION_LIMIT:
            raise Refusal(400, "Bad Request: message caption is too long")
        parameters.ignore("show_caption_above_media")
        return caption, entities

    def _read_file(self, kind: str, given: Any, parameters: CallParameters) -> StoredFile:
        name = (
            given.removeprefix("attach://")
            if isinstance(given, str) and given.startswith("attach://")
            else kind
        )
        upload = parameters.files.get(name)
        if upload is not None:
            if len(upload.content) > (PHOTO_BYTES if kind == "photo" else UPLOAD_BYTES):
                raise Refusal(413, "Request Entity Too Large")
            if not upload.content:
                raise Refusal(400, "Bad Request: file must be non-empty")
            return self._files.add(upload)
        if stored := self._files.get(str(given)):
            return stored
        if isinstance(given, str) and given.startswith(("http://", "https://")):
            raise NotImplementedByFake("files by URL")
        raise Refusal(400, "Bad Request: wrong file identifier/HTTP URL specified")

    def _read_keyboard(self, parameters: CallParameters) -> list[list[dict[str, Any]]]:
        markup = parameters.structure("reply_markup") or {}
        if set(markup) - {"inline_keyboard"}:
            raise NotImplementedByFake(f"keyboards of the kind {', '.join(sorted(markup))}")
        keyboard = markup.get("inline_keyboard", [])
        for button in (button for row in keyboard for button in row):
            if set(button) - {"text", "callback_data", "url"}:
                raise NotImplementedByFake(f"buttons with {', '.join(sorted(button))}")
            if not button.get("text"):
                raise Refusal(400, "Bad Request: text buttons are unallowed in the inline keyboard")
            data = button.get("callback_data")
            if data is not None and not 1 <= len(data.encode()) <= BUTTON_DATA_BYTES:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
        return keyboard

    def _set_keyboard(
        self, message: dict[str, Any], delivery: Delivery, keyboard: list[list[dict[str, Any]]]
    ) -> None:
        """An edit without a keyboard takes the old one away."""
        message.pop("reply_markup", None)
        if keyboard:
            message["reply_markup"] = {"inline_keyboard": keyboard}
        delivery.buttons = _list_buttons(keyboard)
        self._transcript.note_change()


def _keyboard_of(message: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return message.get("reply_markup", {}).get("inline_keyboard", [])


def _list_buttons(keyboard: list[list[dict[str, Any]]]) -> tuple[OfferedButton, ...]:
    return tuple(
        OfferedButton(button["text"], button.get("callback_data") or button.get("url", ""))
        for row in keyboard
        for button in row
    )


def _not_modified() -> Refusal:
    same = "specified new message content and reply markup are exactly the same as a current content"
    return Refusal(400, f"Bad Request: message is not modified: {same} and reply markup of the message")
