"""pywa and plain requests against the fake WhatsApp: sending, media, templates, and webhooks that insist."""

import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from aiohttp import web
from pywa import utils
from pywa.errors import (
    ExpiredAccessToken,
    InvalidParameter,
    RateLimitHit,
    TemplateNotExists,
    TemplateParamCountMismatch,
    WhatsAppError,
)
from pywa_async.client import WhatsApp
from pywa_async.types.callback import Button, CallbackButton, Section, SectionList, SectionRow
from pywa_async.types.message import Message
from pywa_async.types.message_status import MessageStatus

from postroom.testing.platforms.base import FakePlatformFailure, Person
from postroom.testing.platforms.faults import (
    ConnectionDropped,
    DeliveredTwice,
    RateLimited,
    ServerFailed,
    SignedWrongly,
)
from postroom.testing.platforms.transcript import Attachment
from postroom.testing.platforms.whatsapp import FakeWhatsApp
from postroom.testing.platforms.whatsapp.messages import MessageTemplate
from tests.testing.webhook_receiver import WebhookReceiver

ANN = Person("491701234567", "Ann Archer")
BOB = Person("491707654321", "Bob")
CLEO = Person("491700000003", "Cleo", "cleo.c")


@asynccontextmanager
async def connect(fake: FakeWhatsApp, token: str | None = None) -> AsyncIterator[WhatsApp]:
    async with httpx.AsyncClient() as session:
        client = WhatsApp(phone_id=fake.phone_id, token=token or fake.token, session=session)
        # pywa has no setting for this.
        session.base_url = fake.api_url
        yield client


@pytest.fixture
async def fake() -> AsyncIterator[FakeWhatsApp]:
    async with FakeWhatsApp() as fake:
        yield fake


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with WebhookReceiver() as receiver:
        yield receiver


@pytest.fixture
async def business(fake: FakeWhatsApp) -> AsyncIterator[WhatsApp]:
    async with connect(fake) as client:
        yield client


async def subscribe(fake: FakeWhatsApp, receiver: WebhookReceiver) -> None:
    receiver.answer = web.Response(text="1158201444")
    await fake.subscribe(receiver.url, "verify")
    receiver.answer = None
    receiver.requests.clear()


def messages_of(receiver: WebhookReceiver) -> list[dict[str, Any]]:
    values = [
        change["value"]
        for request in receiver.requests
        for entry in request.json()["entry"]
        for change in entry["changes"]
    ]
    return [message for value in values for message in value.get("messages", [])]


async def test_pywa_sends_texts_replies_and_buttons(fake: FakeWhatsApp, business: WhatsApp) -> None:
    event = await fake.write(ANN, "hello")
    sent = await business.send_message(ANN.id, "hello *Ann*", reply_to_message_id=event.message_id)
    delivery = fake.transcript.exactly_one("hello *Ann*", chat=ANN.id)
    assert (delivery.id, delivery.reply_to) == (sent.id, event.message_id)
    await business.send_message(
        ANN.id, "Deploy?", buttons=[Button("Yes", "review:yes"), Button("No", "review:no")]
    )
    assert [button.label for button in fake.transcript.exactly_one("Deploy?").buttons] == ["Yes", "No"]
    rows = [SectionRow(title=f"row {n}", callback_data=str(n)) for n in range(5)]
    await business.send_message(ANN.id, "Which?", buttons=SectionList("Choose", [Section("all", rows)]))
    assert len(fake.transcript.exactly_one("Which?").buttons) == 5
    await business.mark_message_as_read(event.message_id)
    await business.indicate_typing(event.message_id)
    assert [act.kind for act in fake.transcript.acts] == ["read", "read", "typing"]


async def test_people_with_a_username_are_known_by_another_id_than_their_number(
    fake: FakeWhatsApp, business: WhatsApp, receiver: WebhookReceiver
) -> None:
    await subscribe(fake, receiver)
    await fake.write(CLEO, "hello")
    await fake.webhook.drain()
    message = Message.from_update(business, receiver.requests[0].json())
    assert (message.from_user.wa_id, message.from_user.username) == (None, "cleo.c")
    assert CLEO.id not in receiver.requests[0].body.decode()
    await business.send_message(message.from_user.bsuid, "hello Cleo")
    fake.transcript.exactly_one("hello Cleo", chat=fake.address(CLEO))


async def test_limits_are_whatsapps(fake: FakeWhatsApp, business: WhatsApp) -> None:
    await fake.write(ANN, "hi")
    await business.send_message(ANN.id, "x" * 4096)
    with pytest.raises(WhatsAppError, match="4096"):
        await business.send_message(ANN.id, "x" * 4097)
    with pytest.raises(InvalidParameter):
        await business.send_message(ANN.id, "?", buttons=[Button(f"b{n}", f"id{n}") for n in range(4)])
    with pytest.raises(WhatsAppError, match="20"):
        await business.send_message(ANN.id, "?", buttons=[Button("a title that is too long", "id")])
    async with connect(fake, "wrong") as stranger:
        with pytest.raises(ExpiredAccessToken):
            await stranger.send_message(ANN.id, "hi")
    assert len(fake.transcript.deliveries) == 1


async def test_media_go_both_ways(fake: FakeWhatsApp, business: WhatsApp, receiver: WebhookReceiver) -> None:
    await subscribe(fake, receiver)
    plan = Attachment("plan.pdf", b"%PDF", "application/pdf")
    voice = Attachment("voice.ogg", b"sound", "audio/ogg; codecs=opus")
    await fake.write(ANN, "see", files=[plan, voice])
    await fake.webhook.drain()
    document, audio = messages_of(receiver)
    assert (document["document"]["filename"], document["document"]["caption"]) == ("plan.pdf", "see")
    assert audio["audio"]["voice"] is True
    media = await business.get_media_url(document["document"]["id"])
    assert await business.get_media_bytes(url=media.url) == b"%PDF"
    fake.clock.advance(301)
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {fake.token}"}) as client:
        assert (await client.get(media.url)).status_code == 404
    await business.send_document(
        ANN.id, b"report", filename="report.txt", caption="here", mime_type="text/plain"
    )
    sent = fake.transcript.exactly_one("here")
    assert [(a.name, a.content) for a in sent.attachments] == [("report.txt", b"report")]


async def test_after_a_day_only_templates_get_through(
    fake: FakeWhatsApp, business: WhatsApp, receiver: WebhookReceiver
) -> None:
    await subscribe(fake, receiver)
    await fake.write(ANN, "hi")
    fake.clock.advance(24 * 3600 + 1)
    sent = await business.send_message(ANN.id, "too late", tracker="reply-7")
    assert fake.transcript.texts() == []
    await fake.webhook.drain()
    status = receiver.requests[-1].json()["entry"][0]["changes"][0]["value"]["statuses"][0]
    assert (status["id"], status["status"], status["errors"][0]["code"]) == (sent.id, "failed", 131047)
    assert "reply-7" in status["biz_opaque_callback_data"]
    fake.add_template(MessageTemplate("news", "There is news for {{1}}."))
    body: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "to": ANN.id,
        "type": "template",
        "template": {"name": "news", "language": {"code": "en_US"}, "components": []},
    }
    with pytest.raises(TemplateParamCountMismatch):
        await business.api._request("POST", f"/{fake.phone_id}/messages", json=body)
    body["template"]["components"] = [{"type": "body", "parameters": [{"type": "text", "text": "you"}]}]
    await business.api._request("POST", f"/{fake.phone_id}/messages", json=body)
    assert fake.transcript.exactly_one("There is news for you.").extra["template"] == "news"
    body["template"]["name"] = "unknown"
    with pytest.raises(TemplateNotExists):
        await business.api._request("POST", f"/{fake.phone_id}/messages", json=body)


async def test_webhooks_are_signed_and_pywa_reads_them(
    fake: FakeWhatsApp, business: WhatsApp, receiver: WebhookReceiver
) -> None:
    await subscribe(fake, receiver)
    event = await fake.write(ANN, "hello")
    await business.send_message(ANN.id, "Deploy?", buttons=[Button("Yes", "review:yes")], tracker="t1")
    delivery = fake.transcript.exactly_one("Deploy?")
    await fake.read(delivery)
    await fake.press(ANN, delivery, "Yes")
    await fake.webhook.drain()
    for request in receiver.requests:
        expected = hmac.new(b"app-secret", request.body, hashlib.sha256).hexdigest()
        assert request.headers["X-Hub-Signature-256"] == f"sha256={expected}"
        assert utils.webhook_updates_validator(
            "app-secret", request.body, request.headers["X-Hub-Signature-256"]
        )
    bodies = [request.json() for request in receiver.requests]
    bodies.sort(key=lambda body: "statuses" in body["entry"][0]["changes"][0]["value"])
    text, press = (Message.from_update(business, bodies[0]), CallbackButton.from_update(business, bodies[1]))
    assert (text.id, text.text, text.from_user.name) == (event.message_id, "hello", "Ann Archer")
    assert (press.data, press.title) == ("review:yes", "Yes")
    statuses = [MessageStatus.from_update(business, body).status.value for body in bodies[2:]]
    assert sorted(statuses) == ["delivered", "read", "sent"]


async def test_a_webhook_that_refuses_is_asked_again_for_seven_days(
    fake: FakeWhatsApp, receiver: WebhookReceiver
) -> None:
    await subscribe(fake, receiver)
    receiver.statuses = [500, 503, 500]
    event = await fake.write(ANN, "hello")
    for attempts in (1, 2, 3):
        await fake.webhook.wait_for_attempts(attempts)
        fake.clock.advance(3600)
    await fake.webhook.drain()
    assert [message["id"] for message in messages_of(receiver)] == [event.message_id] * 4
    receiver.statuses = [500] * 200
    lost = await fake.write(ANN, "lost")
    while not fake.webhook.given_up:
        await fake.webhook.wait_for_attempts(len(fake.webhook.attempts) + 1)
        fake.clock.advance(24 * 3600)
    assert fake.webhook.given_up == [lost.message_id]


async def test_webhooks_may_come_twice_out_of_order_wrongly_signed_and_together(
    fake: FakeWhatsApp, receiver: WebhookReceiver
) -> None:
    await subscribe(fake, receiver)
    fake.webhook.hold()
    events = [await fake.write(ANN, text) for text in ("one", "two", "three")]
    await fake.webhook.release(order=lambda held: held[::-1])
    assert [message["text"]["body"] for message in messages_of(receiver)] == ["three", "two", "one"]
    receiver.requests.clear()
    fake.redeliver(*events)
    await fake.webhook.drain()
    assert len(receiver.requests) == 1
    assert len(messages_of(receiver)) == 3
    receiver.requests.clear()
    fake.faults.plan("webhook", DeliveredTwice(), SignedWrongly())
    await fake.write(BOB, "four")
    await fake.webhook.drain()
    signatures = {request.headers["X-Hub-Signature-256"] for request in receiver.requests}
    assert (len(receiver.requests), len(signatures)) == (2, 2)


async def test_a_webhook_that_keeps_silent_counts_as_refused(
    fake: FakeWhatsApp, receiver: WebhookReceiver
) -> None:
    await subscribe(fake, receiver)
    fake.faults.plan("webhook", ConnectionDropped("after"))
    await fake.write(ANN, "hello")
    await fake.webhook.wait_for_attempts(1)
    fake.clock.advance(2)
    await fake.webhook.drain()
    assert [attempt.status for attempt in fake.webhook.attempts] == [None, 200]
    assert len(receiver.requests) == 2


async def test_faults_reach_the_client(fake: FakeWhatsApp, business: WhatsApp) -> None:
    await fake.write(ANN, "hi")
    fake.faults.plan("send_message", RateLimited(), ServerFailed(503), ConnectionDropped("after"))
    with pytest.raises(RateLimitHit):
        await business.send_message(ANN.id, "one")
    with pytest.raises(WhatsAppError):
        await business.send_message(ANN.id, "one")
    assert fake.transcript.texts() == []
    with pytest.raises(httpx.TransportError):
        await business.send_message(ANN.id, "one")
    assert fake.transcript.texts() == ["one"]


async def test_a_webhook_that_fails_the_challenge_is_not_taken(
    fake: FakeWhatsApp, receiver: WebhookReceiver
) -> None:
    with pytest.raises(AssertionError, match="challenge"):
        await fake.subscribe(receiver.url, "verify")
    assert fake.webhook.url is None


async def use_what_is_missing() -> None:
    async with FakeWhatsApp() as fake, connect(fake) as client:
        await fake.write(ANN, "hi")
        for call in (client.send_location(ANN.id, 1.0, 2.0), client.get_business_profile()):
            with pytest.raises(WhatsAppError, match="does not implement"):
                await call


async def test_what_is_not_implemented_is_refused_and_raised() -> None:
    with pytest.raises(FakePlatformFailure) as caught:
        await use_what_is_missing()
    assert "messages of type location" in str(caught.value)
    assert "whatsapp_business_profile" in str(caught.value)
