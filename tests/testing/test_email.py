"""imap_tools, smtplib and aiosmtplib against the fake mail provider."""

import asyncio
import imaplib
import smtplib
from collections.abc import AsyncIterator, Callable
from email.message import EmailMessage
from typing import TypeVar

import aiosmtplib
import pytest
from imap_tools import A, MailBoxUnencrypted
from imap_tools.errors import MailboxLoginError

from postroom.testing.platforms.base import FakePlatformFailure, Person
from postroom.testing.platforms.email import FakeMail
from postroom.testing.platforms.faults import ConnectionDropped, RateLimited, ServerFailed
from postroom.testing.platforms.transcript import Attachment

ANN = Person("ann@example.com", "Ann Archer")
T = TypeVar("T")


@pytest.fixture
async def mail() -> AsyncIterator[FakeMail]:
    async with FakeMail() as fake:
        yield fake


async def with_mailbox(mail: FakeMail, work: Callable[[MailBoxUnencrypted], T]) -> T:
    """imap_tools blocks, so it works in a thread, as it does in a channel."""

    def run() -> T:
        box = MailBoxUnencrypted("127.0.0.1", mail.imap_port)
        try:
            return work(box.login(mail.address, mail.password))
        finally:
            box.client.shutdown()

    return await asyncio.to_thread(run)


def compose(text: str, to: str = ANN.id) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "office@example.org", to, "Re: A question"
    message["Message-ID"] = "<reply-1@office.example>"
    message["In-Reply-To"] = "<mail-1@people.example>"
    message.set_content(text)
    return message


async def send(mail: FakeMail, message: EmailMessage) -> None:
    await aiosmtplib.send(
        message,
        hostname="127.0.0.1",
        port=mail.smtp_port,
        username=mail.address,
        password=mail.password,
        start_tls=False,
    )


async def test_mails_are_fetched_by_uid_and_keep_their_parts(mail: FakeMail) -> None:
    plan = Attachment("plan.pdf", b"%PDF", "application/pdf")
    await mail.write(ANN, "Grüße", subject="Über uns", files=[plan], html="<p>Grüße</p>")
    second = await mail.write(ANN, "again", reply_to="<reply-1@office.example>")
    fetched = await with_mailbox(mail, lambda box: list(box.fetch(mark_seen=False, bulk=True)))
    assert [(m.uid, m.subject, m.from_) for m in fetched] == [
        ("1", "Über uns", ANN.id),
        ("2", "A question", ANN.id),
    ]
    assert fetched[0].text.strip() == "Grüße"
    assert fetched[0].html.strip() == "<p>Grüße</p>"
    assert (fetched[0].attachments[0].filename, fetched[0].attachments[0].payload) == ("plan.pdf", b"%PDF")
    assert fetched[1].headers["message-id"][0] == second.message_id
    assert fetched[1].headers["in-reply-to"][0] == "<reply-1@office.example>"


async def test_what_is_new_is_found_by_uid_and_seen_mails_are_marked(mail: FakeMail) -> None:
    for text in ("one", "two", "three"):
        await mail.write(ANN, text)
    newer = await with_mailbox(mail, lambda box: box.uids(A(uid="2:*")))
    assert newer == ["2", "3"]
    await with_mailbox(mail, lambda box: box.flag(["2"], r"\Seen", True))
    assert await with_mailbox(mail, lambda box: box.uids(A(seen=False))) == ["1", "3"]
    await with_mailbox(mail, lambda box: list(box.fetch(A(uid="1"), mark_seen=True)))
    assert await with_mailbox(mail, lambda box: box.uids(A(seen=False))) == ["3"]


async def test_a_renumbered_mailbox_says_so(mail: FakeMail) -> None:
    await mail.write(ANN, "one")
    mail.mailbox.mails.clear()
    await mail.write(ANN, "two")

    def validity(box: MailBoxUnencrypted) -> bytes:
        return box.client.response("UIDVALIDITY")[1][0]

    before = await with_mailbox(mail, validity)
    mail.mailbox.renumber()
    assert await with_mailbox(mail, validity) != before
    assert await with_mailbox(mail, lambda box: box.uids()) == ["1"]


async def test_idle_hears_of_new_mail(mail: FakeMail) -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch(box: MailBoxUnencrypted) -> list[bytes]:
        box.idle.start()
        loop.call_soon_threadsafe(started.set)
        heard = box.idle.poll(timeout=60)
        box.idle.stop()
        return heard

    watching = asyncio.create_task(with_mailbox(mail, watch))
    await started.wait()
    await mail.write(ANN, "news")
    assert await watching == [b"* 1 EXISTS"]


async def test_the_same_mail_may_arrive_twice(mail: FakeMail) -> None:
    event = await mail.write(ANN, "once")
    mail.redeliver(event)
    fetched = await with_mailbox(mail, lambda box: list(box.fetch()))
    assert [m.uid for m in fetched] == ["1", "2"]
    assert {m.headers["message-id"][0] for m in fetched} == {event.message_id}


async def test_mails_are_sent_with_their_thread_and_files(mail: FakeMail) -> None:
    message = compose("An answer.")
    message.add_attachment(b"out", maintype="text", subtype="csv", filename="report.csv")
    await send(mail, message)
    delivery = mail.transcript.exactly_one("An answer.", chat=ANN.id)
    assert (delivery.id, delivery.reply_to) == ("<reply-1@office.example>", "<mail-1@people.example>")
    assert [(a.name, a.content) for a in delivery.attachments] == [("report.csv", b"out")]
    assert delivery.extra["subject"] == "Re: A question"


async def test_the_standard_library_can_send_too(mail: FakeMail) -> None:
    def run() -> None:
        with smtplib.SMTP("127.0.0.1", mail.smtp_port) as client:
            client.login(mail.address, mail.password)
            client.send_message(compose("hello"))

    await asyncio.to_thread(run)
    mail.transcript.exactly_one("hello")


async def test_wrong_passwords_are_refused(mail: FakeMail) -> None:
    mail.password = "wrong"
    with pytest.raises(MailboxLoginError):
        await with_mailbox(mail, lambda box: box.uids())
    with pytest.raises(aiosmtplib.SMTPAuthenticationError):
        await send(mail, compose("x"))


async def test_refusals_for_now_and_for_good_can_be_told_apart(mail: FakeMail) -> None:
    mail.faults.plan("SMTP DATA", RateLimited(), ServerFailed())
    for code in (450, 451):
        with pytest.raises(aiosmtplib.SMTPDataError) as later:
            await send(mail, compose("x"))
        assert later.value.code == code
    mail.refuse("nobody@example.com")
    with pytest.raises(aiosmtplib.SMTPRecipientsRefused) as never:
        await send(mail, compose("x", "nobody@example.com"))
    assert never.value.recipients[0].code == 550
    assert mail.transcript.deliveries == []


@pytest.mark.parametrize(("when", "done"), [("before", 0), ("after", 1)])
async def test_a_dropped_connection_does_not_tell_whether_the_mail_went(
    mail: FakeMail, when: str, done: int
) -> None:
    mail.faults.plan("SMTP DATA", ConnectionDropped(when))  # pyright: ignore[reportArgumentType]
    with pytest.raises(aiosmtplib.SMTPServerDisconnected):
        await send(mail, compose("x"))
    assert len(mail.transcript.deliveries) == done


async def test_imap_fails_and_drops_in_the_middle(mail: FakeMail) -> None:
    await mail.write(ANN, "one")
    mail.faults.plan("IMAP UID FETCH", ServerFailed(), ConnectionDropped("before"))
    for _ in range(2):
        with pytest.raises((imaplib.IMAP4.error, OSError, Exception), match=r"UNAVAILABLE|EOF|closed|reset"):
            await with_mailbox(mail, lambda box: list(box.fetch()))
    assert len(await with_mailbox(mail, lambda box: list(box.fetch()))) == 1


async def test_a_provider_that_went_away_comes_back_at_the_same_ports(mail: FakeMail) -> None:
    await mail.write(ANN, "one")
    await mail.go_away()
    with pytest.raises(OSError, match="refused"):
        await with_mailbox(mail, lambda box: box.uids())
    await mail.come_back()
    assert await with_mailbox(mail, lambda box: box.uids()) == ["1"]
    await send(mail, compose("back"))


async def use_what_is_missing() -> None:
    async with FakeMail() as mail:
        with pytest.raises(Exception, match="does not implement"):
            await with_mailbox(mail, lambda box: box.uids(A(subject="x")))


async def test_what_is_not_implemented_is_refused_and_raised() -> None:
    with pytest.raises(FakePlatformFailure, match="IMAP SEARCH"):
        await use_what_is_missing()
