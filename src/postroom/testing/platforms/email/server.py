"""A mail provider with one account, and the people who write to it."""

import email
import email.policy
from collections.abc import Sequence
from datetime import UTC, datetime
from email.message import EmailMessage, Message
from email.utils import format_datetime, formataddr

from aiosmtpd.smtp import Envelope

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import FakePlatform, InboundEvent, Person
from postroom.testing.platforms.email.imap import ImapServer
from postroom.testing.platforms.email.mailbox import Mailbox
from postroom.testing.platforms.email.smtp import SmtpServer
from postroom.testing.platforms.transcript import Attachment, Delivery

ADDRESS = "office@example.org"
PASSWORD = "mail-password"


class FakeMail(FakePlatform):
    """IMAP at `imap_port`, SMTP at `smtp_port`, both without encryption; the account is `address`.

    A person's id is their address. The chat of a delivery is its recipient, its id the Message-ID.
    """

    name = "mail"

    def __init__(
        self, *, address: str = ADDRESS, password: str = PASSWORD, clock: HeldClock | None = None
    ) -> None:
        super().__init__(clock=clock)
        self.address = address
        self.password = password
        self.mailbox = Mailbox()
        self._imap = ImapServer(self.mailbox, self.faults, address, password, self.record_failure)
        self._smtp = SmtpServer(self.faults, address, password, self._take)
        self._smtp_port = 0
        self._count = 0

    @property
    def imap_port(self) -> int:
        return self.port

    @property
    def smtp_port(self) -> int:
        return self._smtp_port

    async def _open(self, port: int) -> int:
        self._smtp_port = await self._smtp.open(self._smtp_port)
        return await self._imap.server.open(port)

    async def _close(self) -> None:
        await self._smtp.close()
        await self._imap.server.close()

    async def write(
        self,
        person: Person,
        text: str = "",
        *,
        subject: str = "A question",
        files: Sequence[Attachment] = (),
        reply_to: str | None = None,
        html: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> InboundEvent:
        """A person sends a mail to the account; `reply_to` is the Message-ID they answer."""
        self._count += 1
        message = EmailMessage(policy=email.policy.SMTP)
        message["From"] = formataddr((person.name, person.id))
        message["To"] = self.address
        message["Subject"] = subject
        message["Date"] = format_datetime(datetime.fromtimestamp(self.clock.now() / SECOND, UTC))
        message["Message-ID"] = f"<mail-{self._count}@people.example>"
        if reply_to is not None:
            message["In-Reply-To"] = message["References"] = reply_to
        for name, value in (headers or {}).items():
            message[name] = value
        message.set_content(text)
        if html is not None:
            message.add_alternative(html, subtype="html")
        for file in files:
            kind, _, subtype = file.media_type.partition("/")
            message.add_attachment(file.content, maintype=kind, subtype=subtype, filename=file.name)
        return self.deliver(bytes(message), person)

    def deliver(self, raw: bytes, person: Person) -> InboundEvent:
        """A mail as it is on the wire: for those that no decent program would send."""
        stored = self.mailbox.add(raw)
        message_id = email.message_from_bytes(raw).get("Message-ID", "")
        return InboundEvent(str(stored.uid), person.id, message_id)

    def redeliver(self, event: InboundEvent) -> None:
        """The same mail arrives a second time, under another number."""
        raw = next(mail.raw for mail in self.mailbox.mails if event.message_id.encode() in mail.raw)
        self.mailbox.add(raw)

    def refuse(self, address: str) -> None:
        """There is no such mailbox: mail to it is refused for good."""
        self._smtp.unknown.add(address)

    def drop_connections(self) -> None:
        self._imap.server.drop_connections()

    def _take(self, envelope: Envelope) -> None:
        content = envelope.content
        assert isinstance(content, bytes)
        message = email.message_from_bytes(content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        body = message.get_body(("plain", "html"))
        attachments = tuple(
            Attachment(part.get_filename() or "", _read_content(part), part.get_content_type())
            for part in message.iter_attachments()
        )
        for recipient in envelope.rcpt_tos:
            self.transcript.add(
                Delivery(
                    id=message.get("Message-ID", ""),
                    chat=recipient,
                    text="" if body is None else body.get_content().rstrip("\r\n"),
                    at=self.clock.now(),
                    reply_to=message.get("In-Reply-To"),
                    attachments=attachments,
                    extra={name.lower(): str(value) for name, value in message.items()},
                )
            )


def _read_content(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""
