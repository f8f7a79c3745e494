"""Reads events of rooms: texts and files of people."""

from typing import Any

from postroom.channels.model import Envelope, ReceivedFile, ReceivedMessage

_FILES = ("m.file", "m.image", "m.audio", "m.video")


def make_envelope(room: str, members: int, event: dict[str, Any]) -> Envelope:
    return Envelope(event["event_id"], {"room": room, "members": members, "event": event})


def read_event(envelope: Envelope, bot: str) -> ReceivedMessage | None:
    event = envelope.raw["event"]
    content = event.get("content") or {}
    if event.get("type") != "m.room.message" or event.get("sender") == bot:
        return None
    kind, relation = content.get("msgtype"), content.get("m.relates_to") or {}
    if kind not in ("m.text", "m.emote", *_FILES) or relation.get("rel_type") == "m.replace":
        return None
    body, files = str(content.get("body") or ""), ()
    if kind in _FILES:
        name = str(content.get("filename") or body or "file")
        size = (content.get("info") or {}).get("size")
        files = (ReceivedFile(handle=str(content["url"]), name=name, size=size),)
        body = "" if body == name else body
    name = bot[1:].partition(":")[0]
    mentioned = bot in (content.get("m.mentions") or {}).get("user_ids", ()) or _names(body, bot, name)
    direct = envelope.raw["members"] <= 2
    sender = event["sender"]
    return ReceivedMessage(
        message_id=event["event_id"],
        chat=envelope.raw["room"],
        thread=relation.get("event_id") if relation.get("rel_type") == "m.thread" else None,
        sender_id=sender,
        sender=sender[1:].partition(":")[0],
        text=_without_name(body, bot, name) if mentioned else body,
        files=files,
        addressed=direct or mentioned,
    )


def _names(body: str, bot: str, name: str) -> bool:
    return bot in body or body.lower().startswith(
        (f"{name.lower()}:", f"@{name.lower()} ", f"{name.lower()},")
    )


def _without_name(body: str, bot: str, name: str) -> str:
    for mention in (bot, f"@{name}", name):
        if body.lower().startswith(mention.lower()):
            return body[len(mention) :].lstrip(" ,:")
    return body
