"""JSON-RPC as in signal-cli's manual, against the fake daemon: there is no Python library to try."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from postroom.testing.platforms.base import FakePlatformFailure, Person
from postroom.testing.platforms.faults import ConnectionDropped, RateLimited, ServerFailed
from postroom.testing.platforms.signal import FakeSignal
from postroom.testing.platforms.transcript import Attachment

ANN = Person("+15550123", "Ann")


class RpcFailed(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code, self.data = error["code"], error["data"]


class RpcClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._ids = count(1)
        self._notifications: list[dict[str, Any]] = []

    async def call(self, method: str, **params: Any) -> Any:
        number = next(self._ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._writer.write(json.dumps(request).encode() + b"\n")
        while True:
            answer = await self._read()
            if "method" in answer:
                self._notifications.append(answer["params"])
            elif "error" in answer:
                raise RpcFailed(answer["error"])
            else:
                return answer["result"]

    async def next_message(self) -> dict[str, Any]:
        if not self._notifications:
            self._notifications.append((await self._read())["params"])
        return self._notifications.pop(0)["result"]["envelope"]

    async def _read(self) -> dict[str, Any]:
        line = await self._reader.readline()
        if not line:
            raise ConnectionResetError
        return json.loads(line)


@asynccontextmanager
async def connect(signal: FakeSignal) -> AsyncIterator[RpcClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", signal.port)
    try:
        yield RpcClient(reader, writer)
    finally:
        writer.close()


@pytest.fixture
async def signal() -> AsyncIterator[FakeSignal]:
    async with FakeSignal() as fake:
        yield fake


async def test_messages_wait_until_a_client_subscribes_and_are_handed_out_once(signal: FakeSignal) -> None:
    event = await signal.write(ANN, "early")
    async with connect(signal) as client:
        assert await client.call("subscribeReceive") == 0
        envelope = await client.next_message()
        assert (envelope["sourceNumber"], envelope["timestamp"]) == (ANN.id, int(event.message_id))
        await signal.write(ANN, "live")
        assert (await client.next_message())["dataMessage"]["message"] == "live"
    async with connect(signal) as client:
        await client.call("subscribeReceive")
        await signal.write(ANN, "third")
        assert (await client.next_message())["dataMessage"]["message"] == "third"


async def test_the_daemons_default_mode_loses_what_comes_while_nobody_listens() -> None:
    async with FakeSignal(receive_mode="on-start") as signal:
        await signal.write(ANN, "gone")
        assert len(signal.lost) == 1
        async with connect(signal) as client:
            await client.call("version")
            await signal.write(ANN, "here")
            assert (await client.next_message())["dataMessage"]["message"] == "here"


async def test_a_poll_takes_what_waits_or_waits_for_it(signal: FakeSignal) -> None:
    async with connect(signal) as client:
        await signal.write(ANN, "one")
        await signal.write(ANN, "two")
        first = await client.call("receive", timeout=5, maxMessages=1)
        assert [m["envelope"]["dataMessage"]["message"] for m in first] == ["one"]
        assert len(await client.call("receive", timeout=5)) == 1
        waiting = asyncio.create_task(client.call("receive", timeout=5))
        await signal.clock.wait_for_sleepers()
        signal.clock.advance(5)
        assert await waiting == []


async def test_a_connection_may_break_before_or_after_a_message_was_acknowledged(signal: FakeSignal) -> None:
    signal.faults.plan("receive", ConnectionDropped("before"), ConnectionDropped("after"))
    await signal.write(ANN, "kept")
    for _ in range(2):
        async with connect(signal) as client:
            await client.call("subscribeReceive")
            with pytest.raises(ConnectionResetError):
                await client.next_message()
    assert [m["envelope"]["dataMessage"]["message"] for m in signal.lost] == ["kept"]


async def test_sending_quoting_editing_and_deleting(signal: FakeSignal, tmp_path: Path) -> None:
    asked = await signal.write(ANN, "status?")
    (tmp_path / "report.txt").write_bytes(b"out")
    uri = "data:image/png;filename=chart.png;base64," + base64.b64encode(b"png").decode()
    async with connect(signal) as client:
        quote = {"quoteTimestamp": int(asked.message_id), "quoteAuthor": ANN.id, "quoteMessage": "status?"}
        files = [str(tmp_path / "report.txt"), uri]
        sent = await client.call("send", recipient=[ANN.id], message="working", attachments=files, **quote)
        assert sent["results"][0]["type"] == "SUCCESS"
        delivery = signal.transcript.exactly_one("working", chat=ANN.id)
        assert (delivery.id, delivery.reply_to) == (str(sent["timestamp"]), asked.message_id)
        assert [(a.name, a.content) for a in delivery.attachments] == [
            ("report.txt", b"out"),
            ("chart.png", b"png"),
        ]
        await client.call("send", recipient=ANN.id, message="done", editTimestamp=sent["timestamp"])
        assert (delivery.text, delivery.edits) == ("done", ["working"])
        await client.call("sendTyping", recipient=ANN.id)
        await client.call("sendReceipt", recipient=ANN.id, targetTimestamp=int(asked.message_id), type="read")
        await client.call(
            "sendReaction",
            recipient=ANN.id,
            emoji="👀",
            targetAuthor=ANN.id,
            targetTimestamp=int(asked.message_id),
        )
        assert [act.kind for act in signal.transcript.acts] == ["typing", "read", "reaction"]
        await client.call("remoteDelete", recipient=ANN.id, targetTimestamp=sent["timestamp"])
        assert signal.transcript.texts() == []


async def test_files_groups_reactions_and_edits_come_in(signal: FakeSignal) -> None:
    async with connect(signal) as client:
        await client.call("subscribeReceive")
        plan = Attachment("plan.pdf", b"%PDF", "application/pdf")
        event = await signal.write(ANN, "see", group="Z3JvdXA=", files=[plan])
        data = (await client.next_message())["dataMessage"]
        assert data["groupInfo"]["groupId"] == "Z3JvdXA="
        fetched = await client.call("getAttachment", id=data["attachments"][0]["id"], groupId="Z3JvdXA=")
        assert base64.b64decode(fetched["data"]) == b"%PDF"
        await signal.edit(ANN, event, "look")
        edited = (await client.next_message())["editMessage"]
        assert (edited["targetSentTimestamp"], edited["dataMessage"]["message"]) == (
            int(event.message_id),
            "look",
        )
        await client.call("send", groupId="Z3JvdXA=", message="Deploy?")
        await signal.react(ANN, signal.transcript.exactly_one("Deploy?"), "👍")
        assert (await client.next_message())["dataMessage"]["reaction"]["emoji"] == "👍"


async def test_errors_are_the_daemons(signal: FakeSignal) -> None:
    signal.unregistered.add("+15550999")
    signal.faults.plan("send", RateLimited(60), ServerFailed())
    async with connect(signal) as client:
        for recipient, code in ((ANN.id, -5), (ANN.id, -3), ("+15550999", -1)):
            with pytest.raises(RpcFailed) as caught:
                await client.call("send", recipient=recipient, message="x")
            assert caught.value.code == code
        assert caught.value.data["response"]["results"][0]["type"] == "UNREGISTERED_FAILURE"
    assert signal.transcript.deliveries == []
    signal.faults.plan("send", ConnectionDropped("after"))
    async with connect(signal) as client:
        with pytest.raises(ConnectionResetError):
            await client.call("send", recipient=ANN.id, message="x")
    assert signal.transcript.texts() == ["x"]


async def use_what_is_missing() -> None:
    async with FakeSignal() as signal, connect(signal) as client:
        for method, params in (
            ("listGroups", {}),
            ("send", {"recipient": "+1", "message": "x", "sticker": "y"}),
        ):
            with pytest.raises(RpcFailed, match="lacks"):
                await client.call(method, **params)
        assert signal.transcript.deliveries == []


async def test_what_is_not_implemented_is_refused_and_raised() -> None:
    with pytest.raises(FakePlatformFailure) as caught:
        await use_what_is_missing()
    assert "listGroups" in str(caught.value)
    assert "sticker" in str(caught.value)
