"""matrix-nio against the fake homeserver: syncing with gaps, sending by transaction, files, and faults."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from nio import (
    AsyncClient,
    AsyncClientConfig,
    DiskDownloadResponse,
    DownloadError,
    DownloadResponse,
    InviteMemberEvent,
    JoinResponse,
    LoginError,
    LoginResponse,
    MemoryDownloadResponse,
    MessageDirection,
    RoomMessagesResponse,
    RoomSendError,
    RoomSendResponse,
    SyncError,
    SyncResponse,
    UploadResponse,
)

from postroom.testing.platforms.base import FakePlatformFailure, Person
from postroom.testing.platforms.faults import ConnectionDropped, RateLimited, ServerFailed
from postroom.testing.platforms.matrix import FakeMatrix
from postroom.testing.platforms.transcript import Attachment

ANN = Person("@ann:fake", "Ann")


@pytest.fixture
async def matrix() -> AsyncIterator[FakeMatrix]:
    async with FakeMatrix() as fake:
        yield fake


@asynccontextmanager
async def connect(matrix: FakeMatrix, token: str | None = None) -> AsyncIterator[AsyncClient]:
    # The library retries by itself and waits in real time; a channel decides that for itself.
    config = AsyncClientConfig(max_limit_exceeded=0, max_timeouts=0)
    client = AsyncClient(matrix.url, matrix.bot, config=config)
    client.restore_login(matrix.bot, "FAKEDEVICE", token or matrix.token)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def client(matrix: FakeMatrix) -> AsyncIterator[AsyncClient]:
    async with connect(matrix) as client:
        yield client


async def sync(client: AsyncClient, **options: Any) -> SyncResponse:
    answer = await client.sync(**options)
    assert isinstance(answer, SyncResponse), answer
    return answer


def bodies(answer: SyncResponse) -> list[str]:
    events = [event for room in answer.rooms.join.values() for event in room.timeline.events]
    return [event.source["content"]["body"] for event in events if "body" in event.source["content"]]


async def send(
    client: AsyncClient, room: str, body: str, transaction: str = "t1", **content: Any
) -> RoomSendResponse | RoomSendError:
    message = {"msgtype": "m.text", "body": body, **content}
    return await client.room_send(room, "m.room.message", message, tx_id=transaction)


async def test_an_invitation_is_accepted_and_shows_what_was_written_before(
    matrix: FakeMatrix, client: AsyncClient
) -> None:
    event = await matrix.write(ANN, "hello")
    first = await sync(client)
    assert isinstance(first.rooms.invite[event.chat].invite_state[-1], InviteMemberEvent)
    assert bodies(first) == []
    assert isinstance(await client.join(event.chat), JoinResponse)
    second = await sync(client)
    assert bodies(second) == ["hello"]
    assert bodies(await sync(client)) == []


async def test_a_sync_waits_for_news_or_for_the_held_clock(matrix: FakeMatrix, client: AsyncClient) -> None:
    room = matrix.add_room(ANN)
    await sync(client)
    waiting = asyncio.create_task(sync(client, timeout=30_000))
    await matrix.clock.wait_for_sleepers()
    matrix.clock.advance(30)
    assert bodies(await waiting) == []
    waiting = asyncio.create_task(sync(client, timeout=30_000))
    await matrix.clock.wait_for_sleepers()
    await matrix.write(ANN, "news", chat=room)
    assert bodies(await waiting) == ["news"]


async def test_an_old_token_repeats_and_a_long_absence_leaves_a_gap_to_fetch(
    matrix: FakeMatrix, client: AsyncClient
) -> None:
    room = matrix.add_room(ANN)
    start = (await sync(client)).next_batch
    for number in range(25):
        await matrix.write(ANN, f"message {number}", chat=room)
    answer = await sync(client, since=start)
    timeline = answer.rooms.join[room].timeline
    assert timeline.limited
    assert bodies(answer) == [f"message {number}" for number in range(15, 25)]
    page = await client.room_messages(
        room, timeline.prev_batch or "", end=start, direction=MessageDirection.back, limit=100
    )
    assert isinstance(page, RoomMessagesResponse)
    missed = [event.source["content"]["body"] for event in reversed(page.chunk)]
    assert missed == [f"message {number}" for number in range(15)]
    again = await sync(client, since=start, sync_filter={"room": {"timeline": {"limit": 50}}})
    assert len(bodies(again)) == 25


async def test_a_repeated_transaction_sends_nothing_twice(matrix: FakeMatrix, client: AsyncClient) -> None:
    room = matrix.add_room(ANN)
    # aiohttp itself repeats a PUT once.
    matrix.faults.plan("send", ConnectionDropped("after"), ConnectionDropped("during"))
    with pytest.raises(aiohttp.ClientError):
        await send(client, room, "once")
    answer = await send(client, room, "once")
    assert isinstance(answer, RoomSendResponse)
    assert matrix.transcript.exactly_one("once").id == answer.event_id
    await send(client, room, "once", "t2")
    assert len(matrix.transcript.deliveries) == 2
    own = [e for e in (await sync(client)).rooms.join[room].timeline.events if e.sender == matrix.bot]
    assert own[-1].source["unsigned"]["transaction_id"] == "t2"


async def test_replies_edits_reactions_and_typing(matrix: FakeMatrix, client: AsyncClient) -> None:
    room = matrix.add_room(ANN)
    asked = await matrix.write(ANN, "status?", chat=room)
    relation = {"m.in_reply_to": {"event_id": asked.message_id}}
    sent = await send(client, room, "working", "a", **{"m.relates_to": relation})
    assert isinstance(sent, RoomSendResponse)
    change = {
        "m.new_content": {"msgtype": "m.text", "body": "done", "formatted_body": "<b>done</b>"},
        "m.relates_to": {"rel_type": "m.replace", "event_id": sent.event_id},
    }
    await send(client, room, "* done", "b", **change)
    delivery = matrix.transcript.exactly_one("done")
    assert (delivery.edits, delivery.markup, delivery.reply_to) == (
        ["working"],
        "<b>done</b>",
        asked.message_id,
    )
    await client.room_typing(room)
    await client.room_read_markers(room, asked.message_id, asked.message_id)
    assert [act.kind for act in matrix.transcript.acts] == ["typing", "read"]
    await matrix.react(ANN, delivery, "👍")
    await matrix.edit(ANN, asked, "status, please?")
    told = (await sync(client)).rooms.join[room].timeline.events
    assert told[-2].source["content"]["m.relates_to"]["key"] == "👍"
    assert told[-1].source["content"]["m.new_content"]["body"] == "status, please?"
    await client.room_redact(room, delivery.id)
    assert matrix.transcript.texts() == []


async def test_files_go_both_ways(matrix: FakeMatrix, client: AsyncClient) -> None:
    room = matrix.add_room(ANN)
    await matrix.write(ANN, chat=room, files=[Attachment("plan.pdf", b"%PDF", "application/pdf")])
    event = (await sync(client)).rooms.join[room].timeline.events[-1].source
    downloaded = await client.download(event["content"]["url"])
    assert isinstance(downloaded, (DownloadResponse, MemoryDownloadResponse))
    assert not isinstance(downloaded, DiskDownloadResponse)
    assert downloaded.body == b"%PDF"
    uploaded, _ = await client.upload(
        lambda *_: io.BytesIO(b"out"), content_type="text/plain", filename="report.txt", filesize=3
    )
    assert isinstance(uploaded, UploadResponse)
    content = {"msgtype": "m.file", "body": "report.txt", "url": uploaded.content_uri}
    await client.room_send(room, "m.room.message", content, tx_id="f")
    assert [(a.name, a.content) for a in matrix.transcript.deliveries[0].attachments] == [
        ("report.txt", b"out")
    ]
    assert isinstance(await client.download("mxc://fake/none"), DownloadError)


async def test_limits_logins_and_faults_are_those_of_matrix(matrix: FakeMatrix, client: AsyncClient) -> None:
    room = matrix.add_room(ANN)
    answer = await send(client, room, "x" * 70_000)
    assert isinstance(answer, RoomSendError)
    assert answer.status_code == "M_TOO_LARGE"
    matrix.faults.plan("send", RateLimited(2.5), ServerFailed(502))
    limited = await send(client, room, "x")
    assert isinstance(limited, RoomSendError)
    assert (limited.status_code, limited.retry_after_ms) == ("M_LIMIT_EXCEEDED", 2500)
    assert isinstance(await send(client, room, "x"), RoomSendError)
    assert matrix.transcript.deliveries == []
    async with connect(matrix, "wrong") as stranger:
        refused = await stranger.sync()
        assert isinstance(refused, SyncError)
        assert refused.status_code == "M_UNKNOWN_TOKEN"
        assert isinstance(await stranger.login("wrong"), LoginError)
        assert isinstance(await stranger.login(matrix.password), LoginResponse)


async def use_what_is_missing() -> None:
    async with FakeMatrix() as matrix, connect(matrix) as client:
        room = matrix.add_room(ANN)
        await client.joined_rooms()
        await client.room_send(room, "m.poll.start", {}, tx_id="p")


async def test_what_is_not_implemented_is_refused_and_raised() -> None:
    with pytest.raises(FakePlatformFailure) as caught:
        await use_what_is_missing()
    assert "joined_rooms" in str(caught.value)
    assert "m.poll.start" in str(caught.value)
