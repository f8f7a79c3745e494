"""Reads Telegram's updates as they came, field by field: what Telegram adds to them next year is no error."""

from typing import Any

import msgspec

from postroom.channels.model import Envelope, ReceivedFile, ReceivedMessage

# What is asked for; everything else Telegram could tell is not needed.
KINDS = ("message", "callback_query")
_FILES = ("animation", "document", "audio", "voice", "video", "video_note", "sticker")
_ENDINGS = {"voice": "ogg", "video_note": "mp4", "video": "mp4", "audio": "mp3", "animation": "mp4"}


class BotIdentity(msgspec.Struct, frozen=True):
    id: int
    username: str


def read_update(envelope: Envelope, bot: BotIdentity) -> ReceivedMessage | None:
    update = envelope.raw
    if "callback_query" in update:
        return _read_press(update["callback_query"])
    message = update.get("message")
    if message is None or "from" not in message or message["from"].get("is_bot"):
        return None
    text, files = _read_text(message), _read_files(message)
    if not text and not files:
        return None
    in_group = message["chat"]["type"] != "private"
    return ReceivedMessage(
        message_id=str(message["message_id"]),
        chat=str(message["chat"]["id"]),
        thread=str(message["message_thread_id"]) if message.get("is_topic_message") else None,
        sender_id=str(message["from"]["id"]),
        sender=_name(message["from"]),
        text=_without_mention(text, bot) if in_group else text,
        files=tuple(files),
        addressed=not in_group or _is_meant(message, text, bot),
    )


def _read_press(query: dict[str, Any]) -> ReceivedMessage | None:
    message = query.get("message")
    if message is None or query.get("data") is None:
        return None
    return ReceivedMessage(
        message_id=f"press-{query['id']}",
        chat=str(message["chat"]["id"]),
        thread=str(message["message_thread_id"]) if message.get("is_topic_message") else None,
        sender_id=str(query["from"]["id"]),
        sender=_name(query["from"]),
        pressed=query["data"],
        press_handle=query["id"],
        answers=str(message["message_id"]),
    )


def _read_text(message: dict[str, Any]) -> str:
    text = message.get("text") or message.get("caption") or ""
    if not text and "sticker" in message:
        return f"[Sticker: {message['sticker'].get('emoji', '')}]"
    return text


def _read_files(message: dict[str, Any]) -> list[ReceivedFile]:
    number = message["message_id"]
    found: list[ReceivedFile] = []
    if photos := message.get("photo"):
        largest = max(photos, key=lambda photo: photo.get("width", 0) * photo.get("height", 0))
        found.append(_file(largest, f"photo_{number}.jpg"))
    for kind in _FILES:
        if (file := message.get(kind)) is not None:
            ending = _sticker_ending(file) if kind == "sticker" else _ENDINGS.get(kind, "bin")
            found.append(_file(file, file.get("file_name") or f"{kind}_{number}.{ending}"))
            # A message has one; an animation comes as a document too.
            break
    return found


def _sticker_ending(sticker: dict[str, Any]) -> str:
    if sticker.get("is_animated"):
        return "tgs"
    return "webm" if sticker.get("is_video") else "webp"


def _file(file: dict[str, Any], name: str) -> ReceivedFile:
    return ReceivedFile(handle=file["file_id"], name=name, size=file.get("file_size"))


def _is_meant(message: dict[str, Any], text: str, bot: BotIdentity) -> bool:
    """In a group: by name, by an answer to the bot's own message, or by a command that names no other bot."""
    if message.get("reply_to_message", {}).get("from", {}).get("id") == bot.id:
        return True
    if text.startswith("/"):
        _, at, name = text.split(maxsplit=1)[0].partition("@")
        return not at or name.lower() == bot.username.lower()
    return f"@{bot.username}".lower() in text.lower()


def _without_mention(text: str, bot: BotIdentity) -> str:
    """The bot's own name is how it was called, and no agent's."""
    mention = f"@{bot.username}".lower()
    place = text.lower().find(mention)
    if place < 0:
        return text
    before, after = text[:place], text[place + len(mention) :]
    return f"{before.rstrip()} {after.lstrip(' ,:')}".strip() if before.strip() else after.lstrip(" ,:")


def _name(person: dict[str, Any]) -> str:
    return " ".join(filter(None, [person.get("first_name"), person.get("last_name")])) or "Unknown"
