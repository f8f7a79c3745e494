"""One mailbox. Mail is taken by uid from where it was read to; an answer is a mail in the same thread."""

import asyncio
import hashlib
import html
import logging
import mimetypes
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar

import aiosmtplib
from imap_tools import MailboxLoginError

from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore, Sink
from postroom.channels.email import CAPABILITIES
from postroom.channels.email.mailbox import ImapMailbox, MailboxPlace
from postroom.channels.email.mails import make_envelope, parse_mail, read_mail
from postroom.channels.errors import (
    ChannelMisconfigured,
    FileUnavailable,
    MaybeSent,
    NotSent,
    RetryAfter,
    SendProblem,
    Undeliverable,
)
from postroom.channels.html_markup import render_html
from postroom.channels.model import Address, Envelope, Piece, ReceivedFile, ReceivedMessage

log = logging.getLogger("postroom.channels")

T = TypeVar("T")
SMTP_S = 60
PAUSE_S = 60.0
SUBJECT = "A message from the office"


class EmailChannel(Channel):
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        needed = ("address", "password", "imap_host", "smtp_host")
        if missing := [field for field in needed if not options.get(field)]:
            reason = f"{', '.join(missing)} not set. See: postroom channel setup email"
            raise ChannelMisconfigured(channel=name, reason=reason)
        self._options = options
        self._address = str(options["address"])
        self._verified = bool(options.get("verify_senders", True))
        self._poll_s = float(options.get("poll_s") or 30)

    async def open(self) -> None:
        box = ImapMailbox(self._options)
        try:
            await self._log_in(box)
        finally:
            box.close()

    async def _log_in(self, box: ImapMailbox) -> MailboxPlace:
        try:
            return await _in_thread(box, box.open)
        except MailboxLoginError as error:
            reason = f"the mailbox refuses its address or password ({error})."
            raise ChannelMisconfigured(channel=self._name, reason=reason) from None

    async def receive(self, store: EnvelopeStore) -> None:
        box = ImapMailbox(self._options)
        try:
            place = await self._log_in(box)
            cursor = await store.read_cursor()
            if not cursor:
                # What lies in the mailbox from before is nobody's question.
                cursor = {"validity": place.validity, "uid": place.next_uid}
                await store([], cursor)
            elif cursor["validity"] != place.validity:
                log.warning("%s: the mailbox was numbered anew and is read from its beginning", self._name)
                cursor = {"validity": place.validity, "uid": 1}
            while True:
                cursor = await self._read_new(box, cursor, store)
                await _in_thread(box, lambda: box.wait(self._poll_s))
        finally:
            box.close()

    async def _read_new(
        self, box: ImapMailbox, cursor: dict[str, Any], store: EnvelopeStore
    ) -> dict[str, Any]:
        next_uid = cursor["uid"]
        for uid in await _in_thread(box, lambda: box.find_new(next_uid)):
            raw = await _in_thread(box, lambda uid=uid: box.fetch(uid))
            cursor = {**cursor, "uid": uid + 1}
            if raw is not None:
                envelope = make_envelope(raw, f"{cursor['validity']}:{uid}")
                if self.read(envelope) is None:
                    log.info("%s: mail %s is not for the office", self._name, envelope.event_id)
                await store([envelope], cursor)
        return cursor

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        return read_mail(envelope, self._address, verified=self._verified)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        mail = EmailMessage()
        domain = self._address.rpartition("@")[2]
        mail["From"], mail["To"] = self._address, address.chat
        subject = " ".join((address.title or SUBJECT).split())
        mail["Subject"] = (
            subject if subject.lower().startswith("re:") or not address.title else f"Re: {subject}"
        )
        mail["Message-ID"] = f"<{hashlib.sha256(key.encode()).hexdigest()[:32]}@{domain}>"
        answered = address.reply_to or address.thread
        if answered:
            mail["In-Reply-To"] = answered
            mail["References"] = " ".join(dict.fromkeys(filter(None, [address.thread, answered])))
        mail["Auto-Submitted"] = "auto-replied"
        if file is None:
            mail.set_content(piece.text.plain())
            if piece.text.spans:
                mail.add_alternative(f"<html><body>{render_html(piece.text)}</body></html>", subtype="html")
        else:
            name = Path(piece.path or "file").name
            kind, _, subtype = (mimetypes.guess_type(name)[0] or "application/octet-stream").partition("/")
            mail.set_content(f"{html.unescape(name)} is attached.")
            content = await asyncio.to_thread(file.read)
            mail.add_attachment(content, maintype=kind, subtype=subtype, filename=name)
        await self._post(mail)
        return str(mail["Message-ID"])

    async def _post(self, mail: EmailMessage) -> None:
        options = self._options
        security = options.get("security", "tls")
        smtp = aiosmtplib.SMTP(
            hostname=str(options["smtp_host"]),
            port=int(options.get("smtp_port") or (465 if security == "tls" else 587)),
            username=self._address,
            password=str(options["password"]),
            use_tls=security == "tls",
            start_tls=security == "starttls",
            timeout=SMTP_S,
        )
        try:
            await smtp.connect()
        except (aiosmtplib.SMTPException, OSError) as error:
            smtp.close()
            raise NotSent(f"The mail server does not let us in: {error}.") from error
        try:
            await smtp.send_message(mail)
        except (aiosmtplib.SMTPException, OSError) as error:
            raise _explain(error) from error
        finally:
            smtp.close()

    async def fetch_file(self, file: ReceivedFile, target: Sink) -> None:
        place, _, part = file.handle.partition("|")
        validity, _, uid = place.partition(":")
        box = ImapMailbox(self._options)

        def fetch() -> bytes | None:
            if box.open().validity != int(validity):
                return None
            return box.fetch(int(uid))

        try:
            raw = await _in_thread(box, fetch)
        except Exception as error:
            raise FileUnavailable(name=file.name, reason=f"the mailbox did not send it ({error}).") from None
        finally:
            box.close()
        if raw is None:
            raise FileUnavailable(name=file.name, reason="the mail is not in the mailbox any more.")
        found = list(parse_mail(raw).iter_attachments())[int(part)].get_payload(decode=True)
        target.write(found if isinstance(found, bytes) else b"")


async def _in_thread(box: ImapMailbox, work: Callable[[], T]) -> T:
    """When it is cancelled, the connection is closed, so that the thread ends too."""
    try:
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        box.close()
        raise


def _explain(error: Exception) -> SendProblem:
    match error:
        case aiosmtplib.SMTPRecipientsRefused():
            codes = [refused.code for refused in error.recipients]
            if all(code < 500 for code in codes):
                return RetryAfter("The mail server asks to wait.", PAUSE_S)
            return Undeliverable(f"The mail server refused the recipient: {error.recipients[0].message}.")
        case aiosmtplib.SMTPResponseException() if 400 <= error.code < 500:
            return RetryAfter(f"The mail server asks to wait: {error.message}.", PAUSE_S)
        case aiosmtplib.SMTPResponseException():
            return Undeliverable(f"The mail server refused it: {error.message}.")
        case _:
            return MaybeSent("The connection to the mail server broke before it answered.")
