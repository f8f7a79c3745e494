"""When the house closes, those who wait are told that there is nothing, and streams end whole."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import uvicorn

from tests.api.house import TOKEN, House, opened

PLACE = "/v1/scopes/default"


async def follow(http: httpx2.AsyncClient, path: str, begun: asyncio.Event) -> httpx2.Response:
    async with http.stream("GET", path) as answer:
        async for _ in answer.aiter_raw():
            begun.set()
        return answer


async def waiters(house: House, count: int) -> None:
    """Until so many wait for parts of streams."""
    async with asyncio.timeout(60):
        while len(house.room._core.wakeups._commits) < count:  # noqa: ASYNC110 - it has no event to wait for
            await asyncio.sleep(0.01)


async def test_who_waits_for_a_message_gets_an_empty_list(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=120) as http:
        async with opened(tmp_path, works=False) as house:
            await house.http.post(f"{PLACE}/queues", json={"slug": "jobs"})
            path = f"{house.url}{PLACE}/queues/jobs/claim"
            waiting = asyncio.create_task(http.post(path, json={"wait_s": 60}))
            async with asyncio.timeout(60):
                while not house.room._core.wakeups._lines:  # noqa: ASYNC110 - it has no event to wait for
                    await asyncio.sleep(0.01)
        answer = await waiting
    assert (answer.status_code, answer.json()["data"]) == (200, [])
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_streams_end_whole(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}, timeout=120) as http:
        async with opened(tmp_path, works=False) as house:
            made = (await house.http.post(f"{PLACE}/streams", json={})).json()["data"]["id"]
            part = {"sequence": 0, "data": "x"}
            await house.http.post(f"{PLACE}/streams/{made}/chunks", json=part)
            place, begun = f"{house.url}{PLACE}/streams/{made}", asyncio.Event()
            following = asyncio.create_task(follow(http, place + "/follow", begun))
            await begun.wait()
            waiting = asyncio.create_task(http.get(place + "/chunks?after=0&wait_s=60"))
            await waiters(house, 2)
        assert (await following).status_code == 200
        answer = await waiting
    assert (answer.status_code, answer.json()["data"]) == (200, [])
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


async def test_no_connection_outlives_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes while it ends is not among those it says goodbye to; here it sees none at all."""
    end = uvicorn.Server.shutdown

    async def overlooking(server: uvicorn.Server, sockets: Any = None) -> None:
        there = set(server.server_state.connections)
        server.server_state.connections.clear()
        await end(server, sockets)
        server.server_state.connections.update(there)

    monkeypatch.setattr(uvicorn.Server, "shutdown", overlooking)
    monkeypatch.setattr("postroom.app.http_server.KEEP_ALIVE_S", 3600)
    async with opened(tmp_path, works=False) as house:
        place = urlsplit(house.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await reader.readuntil(b"\r\n\r\n")
    try:
        async with asyncio.timeout(30):
            await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    assert reader.at_eof()
