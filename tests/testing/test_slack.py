"""slack_sdk and Bolt against the fake Slack: socket mode, signed events, messages, files and buttons."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import Clock, SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from postroom.clock import SECOND
from postroom.testing.platforms.base import FakePlatformFailure, Person
from postroom.testing.platforms.faults import ConnectionDropped, DeliveredTwice, RateLimited, SignedWrongly
from postroom.testing.platforms.slack import FakeSlack
from postroom.testing.platforms.transcript import GIVE_UP_SECONDS, Attachment
from tests.testing.webhook_receiver import WebhookReceiver

ANN = Person("U0001", "Ann Archer", "ann")


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as fake:
        yield fake


def connect(slack: FakeSlack, token: str | None = None) -> AsyncWebClient:
    # The library's own retries would send a message twice when only the answer was lost.
    return AsyncWebClient(token=token or slack.bot_token, base_url=slack.api_url, retry_handlers=[])


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    return connect(slack)


class Recorder:
    """A Bolt app that remembers what it was told and acknowledges it."""

    def __init__(self, slack: FakeSlack) -> None:
        self.app = AsyncApp(client=connect(slack), token=slack.bot_token, ignoring_self_events_enabled=False)
        self.told: asyncio.Queue[Any] = asyncio.Queue()
        self.app.event("message")(self._note_event)
        self.app.event("app_mention")(self._note_event)
        self.app.action("review")(self._note_action)
        self.app.command("/agent")(self._note_command)

    async def next(self) -> Any:
        async with asyncio.timeout(GIVE_UP_SECONDS):
            return await self.told.get()

    async def _note_event(self, event: dict[str, Any]) -> None:
        self.told.put_nowait(event)

    async def _note_action(self, ack: Any, action: dict[str, Any], respond: Any) -> None:
        await ack()
        await respond(text=f"chose {action['value']}", replace_original=True)
        self.told.put_nowait(action)

    async def _note_command(self, ack: Any, command: dict[str, Any]) -> None:
        await ack(f"with {command['text']}")
        self.told.put_nowait(command)


@asynccontextmanager
async def run_app(slack: FakeSlack) -> AsyncIterator[Recorder]:
    recorder = Recorder(slack)
    handler = AsyncSocketModeHandler(recorder.app, slack.app_token, ping_interval=1)
    await handler.connect_async()
    await slack.socket.wait_until_connected()
    try:
        yield recorder
    finally:
        await handler.close_async()


def read(response: AsyncSlackResponse) -> dict[str, Any]:
    assert isinstance(response.data, dict)
    return response.data


def blocks(*labels: str) -> list[dict[str, Any]]:
    buttons = [
        {
            "type": "button",
            "action_id": "review",
            "text": {"type": "plain_text", "text": label},
            "value": label,
        }
        for label in labels
    ]
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "*Deploy?*"}}
    return [section, {"type": "actions", "elements": buttons}]


async def test_bolt_hears_messages_by_socket_and_posts(slack: FakeSlack, client: AsyncWebClient) -> None:
    async with run_app(slack) as app:
        event = await slack.write(ANN, "hello")
        told = await app.next()
        assert (told["text"], told["channel"], told["ts"]) == ("hello", event.chat, event.message_id)
        posted = read(
            await client.chat_postMessage(channel=event.chat, text="hello *Ann*", thread_ts=told["ts"])
        )
        delivery = slack.transcript.exactly_one("hello *Ann*", chat=event.chat)
        assert (delivery.id, delivery.thread) == (posted["ts"], event.message_id)
        own = await app.next()
        assert own["bot_id"]
        await slack.socket.wait_for_acknowledgements(2)


async def test_a_mention_in_a_channel_is_told_twice_with_one_timestamp(slack: FakeSlack) -> None:
    async with run_app(slack) as app:
        channel = slack.add_channel(ANN)
        await slack.write(ANN, "<@U0BOT> status?", chat=channel)
        told = [await app.next(), await app.next()]
        assert {event["type"] for event in told} == {"message", "app_mention"}
        assert len({event["ts"] for event in told}) == 1


async def test_buttons_commands_and_edits(slack: FakeSlack, client: AsyncWebClient) -> None:
    async with run_app(slack) as app:
        chat = read(await client.conversations_open(users=known(slack, ANN)))["channel"]["id"]
        await client.chat_postMessage(channel=chat, text="Deploy?", blocks=blocks("Yes", "No"))
        delivery = slack.transcript.exactly_one("Deploy?")
        await slack.press(ANN, delivery, "Yes")
        await slack.transcript.wait_until(lambda: delivery.text == "chose Yes")
        assert (delivery.buttons, delivery.edits) == ((), ["Deploy?"])
        await slack.command(ANN, "/agent", "coder")
        answers = await slack.transcript.wait_for("with coder")
        assert answers[0].extra["ephemeral"]
        sent = read(await client.chat_postMessage(channel=chat, text="working"))
        await client.chat_update(channel=chat, ts=sent["ts"], text="done")
        assert slack.transcript.exactly_one("done").edits == ["working"]
        await client.chat_delete(channel=chat, ts=sent["ts"])
        assert not slack.transcript.select("done")
        assert app.told


def known(slack: FakeSlack, person: Person) -> str:
    slack.add_channel(person)
    return person.id


async def test_files_go_both_ways(slack: FakeSlack, client: AsyncWebClient) -> None:
    async with run_app(slack) as app:
        event = await slack.write(ANN, "see", files=[Attachment("plan.pdf", b"%PDF", "application/pdf")])
        file = (await app.next())["files"][0]
        async with aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {slack.bot_token}"}
            async with session.get(file["url_private"], headers=headers) as answer:
                assert await answer.read() == b"%PDF"
            async with session.get(file["url_private"]) as page:
                assert (page.status, page.content_type) == (200, "text/html")
        await client.files_upload_v2(
            channel=event.chat, content=b"out", filename="report.txt", initial_comment="here"
        )
        delivery = slack.transcript.exactly_one("here")
        assert [(a.name, a.content) for a in delivery.attachments] == [("report.txt", b"out")]


async def test_history_shows_what_was_missed_and_what_an_app_marked(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    channel = slack.add_channel(ANN)
    first = await slack.write(ANN, "one", chat=channel)
    await slack.write(ANN, "two", chat=channel)
    mark = {"event_type": "postroom", "event_payload": {"piece": "r1/2"}}
    await client.chat_postMessage(channel=channel, text="three", metadata=mark)
    await slack.write(ANN, "in the thread", chat=channel, thread=first.message_id)
    page = read(
        await client.conversations_history(
            channel=channel, oldest=first.message_id, include_all_metadata=True, limit=1
        )
    )
    assert [m["text"] for m in page["messages"]] == ["three"]
    assert page["messages"][0]["metadata"] == mark
    rest = read(
        await client.conversations_history(
            channel=channel, oldest=first.message_id, cursor=page["response_metadata"]["next_cursor"]
        )
    )
    assert [m["text"] for m in rest["messages"]] == ["two"]
    thread = read(await client.conversations_replies(channel=channel, ts=first.message_id))
    assert [m["text"] for m in thread["messages"]] == ["one", "in the thread"]


async def test_an_event_not_acknowledged_is_sent_again_three_times(slack: FakeSlack) -> None:
    attempts: list[dict[str, Any]] = []
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{slack.url}/link") as socket:
        await slack.socket.wait_until_connected()
        assert (await socket.receive_json())["type"] == "hello"
        await slack.write(ANN, "hello")
        for wait in (3, 63, 303, 0):
            attempts.append(await socket.receive_json())
            slack.clock.advance(wait)
        await slack.clock.wait_for_sleepers()
        slack.clock.advance(3)
        await slack.socket.drain()
        assert len(slack.socket.given_up) == 1
    assert [attempt.get("retry_attempt", 0) for attempt in attempts] == [0, 1, 2, 3]
    assert len({attempt["envelope_id"] for attempt in attempts}) == 1


async def test_sockets_break_are_renewed_and_repeat(slack: FakeSlack) -> None:
    async with run_app(slack) as app:
        slack.faults.plan("socket", DeliveredTwice())
        await slack.write(ANN, "twice")
        assert [(await app.next())["text"] for _ in range(2)] == ["twice", "twice"]
        await slack.socket.ask_to_reconnect()
        await slack.socket.wait_until_connected()
        await slack.write(ANN, "after")
        assert (await app.next())["text"] == "after"


async def test_signed_requests_pass_slacks_own_check(slack: FakeSlack, client: AsyncWebClient) -> None:
    async with WebhookReceiver() as receiver:
        receiver.answer = web.Response(text="3eZbrw1aB")
        await slack.subscribe(receiver.url)
        receiver.answer = None
        receiver.requests.clear()
        receiver.statuses = [500]
        await slack.write(ANN, "hello")
        await slack.webhook.drain()
        slack.faults.plan("webhook", SignedWrongly())
        await slack.write(ANN, "forged")
        await slack.webhook.drain()
        clock = Clock()
        clock.now = lambda: slack.clock.now() / SECOND
        verifier = SignatureVerifier(slack.signing_secret, clock)
        valid = [verifier.is_valid_request(r.body, dict(r.headers)) for r in receiver.requests]
        assert valid == [True, True, False]
        assert receiver.requests[1].headers["X-Slack-Retry-Num"] == "1"
        assert receiver.requests[0].json()["event_id"] == receiver.requests[1].json()["event_id"]


async def test_errors_and_limits_are_slacks(slack: FakeSlack, client: AsyncWebClient) -> None:
    channel = slack.add_channel(ANN)
    theirs = await slack.write(ANN, "mine", chat=channel)
    for call, error in (
        (client.chat_postMessage(channel="C9999", text="x"), "channel_not_found"),
        (client.chat_postMessage(channel=channel, text="x" * 40_001), "msg_too_long"),
        (client.chat_update(channel=channel, ts="1.1", text="x"), "message_not_found"),
        (client.chat_update(channel=channel, ts=theirs.message_id, text="x"), "cant_update_message"),
        (client.chat_postMessage(channel=channel, text="x", blocks=blocks("y" * 76)), "invalid_blocks"),
        (connect(slack, "xoxb-wrong").auth_test(), "invalid_auth"),
    ):
        with pytest.raises(SlackApiError) as caught:
            await call
        assert caught.value.response["error"] == error
    assert slack.transcript.deliveries == []


async def test_faults_reach_the_client(slack: FakeSlack, client: AsyncWebClient) -> None:
    channel = slack.add_channel(ANN)
    slack.faults.plan("chat.postMessage", RateLimited(30), ConnectionDropped("after"))
    with pytest.raises(SlackApiError) as limited:
        await client.chat_postMessage(channel=channel, text="one")
    assert limited.value.response.headers["Retry-After"] == "30"
    with pytest.raises(aiohttp.ClientError):
        await client.chat_postMessage(channel=channel, text="one")
    assert slack.transcript.texts() == ["one"]


async def use_what_is_missing() -> None:
    async with FakeSlack() as slack:
        client = connect(slack)
        channel = slack.add_channel(ANN)
        video = [{"type": "video", "title": {"type": "plain_text", "text": "x"}, "video_url": "x"}]
        for call in (client.users_list(), client.chat_postMessage(channel=channel, text="x", blocks=video)):
            with pytest.raises(SlackApiError, match="does not implement"):
                await call


async def test_what_is_not_implemented_is_refused_and_raised() -> None:
    with pytest.raises(FakePlatformFailure) as caught:
        await use_what_is_missing()
    assert "users.list" in str(caught.value)
    assert "blocks of type video" in str(caught.value)
