"""Reads mails of people. What programs send by themselves (bounces, lists, absences) is left out, and what
somebody may have sent in another's name.
"""

import email
import email.policy
import hashlib
import re
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any

from postroom.channels.model import Envelope, ReceivedFile, ReceivedMessage

_PROGRAMS = ("mailer-daemon@", "postmaster@", "noreply@", "no-reply@")
_QUOTE_HEAD = re.compile(r"^(On .{5,200}wrote:|Am .{5,200}schrieb.{0,200}:|-{2,}\s?Original Message.*)$")
_TAG = re.compile(r"<[^>]+>")
_PASSED = re.compile(r"\bdmarc=pass\b", re.IGNORECASE)


def parse_mail(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def make_envelope(raw: bytes, place: str) -> Envelope:
    """Without the files: `place` says where they are fetched from."""
    mail = parse_mail(raw)
    headers = (
        "from subject message-id in-reply-to references auto-submitted precedence list-id"
        " authentication-results"
    )
    kept: dict[str, Any] = {name: str(mail[name]) for name in headers.split() if mail[name] is not None}
    files = [
        {"name": part.get_filename() or f"part_{number}.bin", "part": number}
        for number, part in enumerate(mail.iter_attachments())
    ]
    event_id = (kept.get("message-id") or "").strip() or hashlib.sha256(raw).hexdigest()
    return Envelope(event_id, {"headers": kept, "text": _read_text(mail), "files": files, "place": place})


def read_mail(envelope: Envelope, own: str, *, verified: bool) -> ReceivedMessage | None:
    """With `verified`, only of senders whom the own provider has checked."""
    raw = envelope.raw
    headers = raw["headers"]
    name, address = parseaddr(headers.get("from", ""))
    address = address.lower()
    if "@" not in address or address == own.lower() or _is_program(headers, address):
        return None
    if verified and not _PASSED.search(headers.get("authentication-results", "")):
        return None
    text = without_quote(raw["text"])
    if not text and not raw["files"]:
        return None
    roots = headers.get("references", "").split() or [headers.get("in-reply-to", "").strip()]
    return ReceivedMessage(
        message_id=envelope.event_id,
        chat=address,
        thread=roots[0] or envelope.event_id,
        title=headers.get("subject") or None,
        sender_id=address,
        sender=name or address,
        text=text,
        files=tuple(
            ReceivedFile(handle=f"{raw['place']}|{file['part']}", name=file["name"]) for file in raw["files"]
        ),
    )


def _is_program(headers: dict[str, str], address: str) -> bool:
    if headers.get("auto-submitted", "no").lower() != "no" or "list-id" in headers:
        return True
    bulk = headers.get("precedence", "").lower() in ("bulk", "junk", "list", "auto_reply")
    return bulk or address.startswith(_PROGRAMS)


def _read_text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain", "html"))
    if body is None:
        return ""
    try:
        text = str(body.get_content())
    except (LookupError, ValueError):
        payload = body.get_payload(decode=True)
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    if body.get_content_subtype() == "html":
        text = _TAG.sub("", re.sub(r"(?i)<br\s*/?>|</p>|</div>", "\n", text))
    return text.replace("\r\n", "\n").strip()


def without_quote(text: str) -> str:
    """What the person wrote, without the mail they answer, which their program put below."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        rest = [each for each in lines[number + 1 :] if each.strip()]
        if _QUOTE_HEAD.match(line.strip()) and all(each.startswith(">") for each in rest):
            lines = lines[:number]
            break
    while lines and (lines[-1].startswith(">") or not lines[-1].strip()):
        lines.pop()
    return "\n".join(lines).strip()
