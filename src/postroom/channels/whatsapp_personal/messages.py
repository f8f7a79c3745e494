"""What neonize tells of a message, as JSON: people by their numbers, files by what fetches them."""

import base64
from typing import Any

from neonize.proto.Neonize_pb2 import JID
from neonize.proto.Neonize_pb2 import Message as MessageEvent
from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import Message
from neonize.utils.jid import Jid2String, JIDToNonAD, build_jid

HIDDEN = "lid"
FILES = ("imageMessage", "videoMessage", "audioMessage", "documentMessage", "stickerMessage")
# A message may lie in another one: one that vanishes, that is seen once, a document with a caption.
WRAPPERS = ("ephemeralMessage", "viewOnceMessage", "viewOnceMessageV2", "documentWithCaptionMessage")


def describe_message(event: MessageEvent) -> dict[str, Any] | None:
    """None for what is not in a chat of people, and for what has neither words nor a file."""
    source, message = event.Info.MessageSource, _unwrap(event.Message)
    if source.Chat.Server in ("broadcast", "newsletter") or event.IsEdit:
        return None
    kind = next((kind for kind in (*FILES, "extendedTextMessage") if message.HasField(kind)), None)
    content = None if kind is None else getattr(message, kind)
    text = message.conversation or getattr(content, "text", "") or getattr(content, "caption", "")
    if not text and kind not in FILES:
        return None
    context = getattr(content, "contextInfo", None)
    sender = JIDToNonAD(source.Sender)
    described: dict[str, Any] = {
        "id": event.Info.ID,
        "chat": Jid2String(JIDToNonAD(source.Chat)),
        "group": source.IsGroup,
        "from_me": source.IsFromMe,
        "sender": _find_number(sender, source.SenderAlt),
        "sender_jid": Jid2String(sender),
        "name": event.Info.Pushname,
        "sent_at": event.Info.Timestamp,
        "text": text,
        "mentions": [] if context is None else [_user(jid) for jid in context.mentionedJID],
    }
    if context is not None and context.stanzaID:
        described["quoted"] = {"id": context.stanzaID, "sender": _user(context.participant)}
    if kind in FILES:
        described["file"] = _describe_file(kind, content, event.Info.ID)
    return described


def read_jid(chat: str) -> JID:
    user, _, server = chat.partition("@")
    return build_jid(user, server or "s.whatsapp.net")


def _unwrap(message: Message) -> Message:
    for wrapper in WRAPPERS:
        if message.HasField(wrapper):
            return _unwrap(getattr(message, wrapper).message)
    return message


def _describe_file(kind: str, content: Any, message_id: str) -> dict[str, Any]:
    ending = content.mimetype.partition(";")[0].rpartition("/")[2] or "bin"
    alone = Message(**{kind: content})
    return {
        "name": getattr(content, "fileName", "") or f"{kind.removesuffix('Message')}_{message_id}.{ending}",
        "size": content.fileLength or None,
        "handle": base64.b64encode(alone.SerializeToString()).decode(),
    }


def _find_number(sender: JID, other: JID) -> str:
    """Groups may hide numbers; then WhatsApp tells the number beside."""
    return other.User if sender.Server == HIDDEN and other.User else sender.User


def _user(jid: str) -> str:
    return jid.partition("@")[0].partition(":")[0]
