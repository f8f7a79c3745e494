"""Reads what Discord tells, by its gateway or its history: messages, pressed buttons and slash commands."""

from typing import Any

from postroom.channels.model import Envelope, ReceivedFile, ReceivedMessage

COMMAND, COMPONENT = 2, 3
_KINDS_OF_MESSAGE = (0, 19)


def make_envelope(kind: str, data: dict[str, Any]) -> Envelope | None:
    match kind:
        case "MESSAGE_CREATE":
            return Envelope(data["id"], {"kind": kind, "data": _without_rest(data)})
        case "INTERACTION_CREATE" if data.get("type") in (COMMAND, COMPONENT):
            return Envelope(data["id"], {"kind": kind, "data": data})
    return None


def _without_rest(message: dict[str, Any]) -> dict[str, Any]:
    """What an answer quotes can be as long as the message itself; only who wrote it matters."""
    quoted = message.get("referenced_message") or {}
    return {**message, "referenced_message": {"author": quoted.get("author")}}


def read_event(envelope: Envelope, bot: str) -> ReceivedMessage | None:
    data = envelope.raw["data"]
    if envelope.raw["kind"] == "INTERACTION_CREATE":
        return _read_interaction(data)
    author = data["author"]
    if author.get("bot") or author["id"] == bot or data.get("type", 0) not in _KINDS_OF_MESSAGE:
        return None
    text, files = data.get("content") or "", data.get("attachments") or ()
    if not text and not files:
        return None
    quoted = (data.get("referenced_message") or {}).get("author") or {}
    mentioned = any(user["id"] == bot for user in data.get("mentions", ())) or quoted.get("id") == bot
    for mention in (f"<@{bot}>", f"<@!{bot}>"):
        text = text.replace(mention, "", 1)
    return ReceivedMessage(
        message_id=data["id"],
        chat=data["channel_id"],
        sender_id=author["id"],
        sender=author.get("global_name") or author["username"],
        text=text.strip(),
        files=tuple(_read_file(file) for file in files),
        addressed="guild_id" not in data or mentioned,
    )


def _read_interaction(data: dict[str, Any]) -> ReceivedMessage:
    user = data.get("user") or data["member"]["user"]
    pressed, text = None, ""
    if data["type"] == COMPONENT:
        pressed = str(data["data"]["custom_id"])
    else:
        words = [str(option.get("value", "")) for option in data["data"].get("options", ())]
        text = " ".join([f"/{data['data']['name']}", *words])
    return ReceivedMessage(
        message_id=f"interaction-{data['id']}",
        chat=data["channel_id"],
        sender_id=user["id"],
        sender=user.get("global_name") or user["username"],
        text=text,
        pressed=pressed,
        answers=(data.get("message") or {}).get("id") or "",
    )


def _read_file(file: dict[str, Any]) -> ReceivedFile:
    return ReceivedFile(handle=file["url"], name=file["filename"], size=file.get("size"))
