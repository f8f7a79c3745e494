"""Reads what the Cloud API pushes: messages one by one, each with who wrote it."""

from collections.abc import Iterator
from typing import Any

from postroom.channels.model import Envelope, ReceivedFile, ReceivedMessage

_MEDIA = {"image": "jpg", "audio": "ogg", "video": "mp4", "document": "bin", "sticker": "webp"}


def list_changes(pushed: dict[str, Any], phone: str) -> Iterator[dict[str, Any]]:
    """The changes of our own phone number; one app may have several."""
    for entry in pushed.get("entry", ()):
        for change in entry.get("changes", ()):
            value = change.get("value") or {}
            if value.get("metadata", {}).get("phone_number_id") == phone:
                yield value


def list_envelopes(value: dict[str, Any]) -> Iterator[Envelope]:
    names = {
        contact.get(key): (contact.get("profile") or {}).get("name")
        for contact in value.get("contacts", ())
        for key in ("wa_id", "user_id")
    }
    for message in value.get("messages", ()):
        name = names.get(message.get("from")) or names.get(message.get("from_user_id"))
        yield Envelope(message["id"], {"message": message, "name": name})


def find_sender(message: dict[str, Any]) -> str:
    """Their number; of people who go by a name, the id they have for this business."""
    return message.get("from") or message["from_user_id"]


def read_message(envelope: Envelope) -> ReceivedMessage | None:
    message = envelope.raw["message"]
    sender = find_sender(message)
    kind = message.get("type")
    content = message.get(kind) or {}
    text, pressed, files = "", None, ()
    match kind:
        case "text":
            text = content.get("body", "")
        case "interactive":
            pressed = (content.get("button_reply") or content.get("list_reply") or {}).get("id")
        case "button":
            text = content.get("text", "")
        case _ if kind in _MEDIA:
            text = content.get("caption") or ("[Sticker]" if kind == "sticker" else "")
            name = content.get("filename") or f"{kind}_{message['id'][-8:]}.{_MEDIA[kind]}"
            files = (ReceivedFile(handle=content["id"], name=name),)
    if not text and not files and pressed is None:
        return None
    return ReceivedMessage(
        message_id=message["id"],
        chat=sender,
        sender_id=sender,
        sender=envelope.raw.get("name") or sender,
        text=text,
        files=files,
        pressed=pressed,
    )
