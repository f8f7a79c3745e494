"""Reads what Slack tells: messages, pressed buttons and slash commands, by socket or by request."""

import html
import re
from typing import Any

from postroom.channels.model import Envelope, ReceivedFile, ReceivedMessage

EVENTS = "events_api"
_SUBTYPES = (None, "file_share", "thread_broadcast", "me_message")
_LINK = re.compile(r"<([^<>@#!|][^<>|]*)(?:\|([^<>]*))?>")


def make_envelope(kind: str, payload: dict[str, Any]) -> Envelope | None:
    """One that tells of a message, a press or a command; None for anything else."""
    match kind:
        case "events_api" if payload.get("event", {}).get("type") in ("message", "app_mention"):
            return Envelope(str(payload["event_id"]), {"kind": kind, "event": payload["event"]})
        case "interactive" if payload.get("type") == "block_actions" and payload.get("actions"):
            kept = ("user", "channel", "container", "message", "actions")
            press = {name: payload.get(name) for name in kept}
            return Envelope(f"press-{payload['trigger_id']}", {"kind": kind, "event": press})
        case "slash_commands":
            return Envelope(f"command-{payload['trigger_id']}", {"kind": kind, "event": payload})
    return None


def find_user(envelope: Envelope) -> str | None:
    event = envelope.raw["event"]
    return event.get("user_id") or (
        event["user"]["id"] if isinstance(event.get("user"), dict) else event.get("user")
    )


def read_event(envelope: Envelope, bot: str) -> ReceivedMessage | None:
    event, name = envelope.raw["event"], envelope.raw.get("name")
    match envelope.raw["kind"]:
        case "interactive":
            return _read_press(envelope, event, name)
        case "slash_commands":
            return ReceivedMessage(
                message_id=envelope.event_id,
                chat=event["channel_id"],
                sender_id=event["user_id"],
                sender=name or event.get("user_name") or event["user_id"],
                text=f"{event['command']} {event.get('text', '')}".strip(),
                answers="",
            )
    if event.get("bot_id") or event.get("subtype") not in _SUBTYPES or not event.get("user"):
        return None
    text, files = event.get("text") or "", event.get("files") or ()
    if event["user"] == bot or not (text or files):
        return None
    direct = event["channel"].startswith("D")
    mention = f"<@{bot}>"
    return ReceivedMessage(
        message_id=event["ts"],
        chat=event["channel"],
        # In a channel the answer begins a thread, or goes on in it.
        thread=event.get("thread_ts") or (None if direct else event["ts"]),
        sender_id=event["user"],
        sender=name or event["user"],
        text=_read_text(text.replace(mention, "", 1)),
        files=tuple(_read_file(file) for file in files),
        addressed=direct or mention in text,
    )


def _read_press(envelope: Envelope, event: dict[str, Any], name: str | None) -> ReceivedMessage:
    message = event.get("message") or {}
    return ReceivedMessage(
        message_id=envelope.event_id,
        chat=event["channel"]["id"],
        thread=message.get("thread_ts"),
        sender_id=event["user"]["id"],
        sender=name or event["user"].get("name") or event["user"]["id"],
        pressed=str(event["actions"][0].get("value", "")),
        answers=message.get("ts"),
    )


def _read_text(text: str) -> str:
    """As the person wrote it: links are their addresses, and nothing is escaped."""
    return html.unescape(_LINK.sub(lambda match: match[1], text)).strip()


def _read_file(file: dict[str, Any]) -> ReceivedFile:
    handle = file.get("url_private_download") or file.get("url_private") or ""
    return ReceivedFile(handle=handle, name=file.get("name") or file["id"], size=file.get("size"))
