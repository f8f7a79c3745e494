"""kill -9 in the middle of traffic: what was acknowledged is there, and a listener has no gap."""

import asyncio
import json
import random
from typing import Any

import httpx2
import pytest

from tests.app.house_process import HouseProcess


class Traffic:
    """A client that posts without pause, and one that listens; both know only what they were told."""

    def __init__(self, house: HouseProcess) -> None:
        self.house = house
        self.acknowledged: list[str] = []
        self.tried = 0
        self.heard: list[tuple[str, str, str]] = []
        self.last_id = ""

    async def post(self, url: str) -> None:
        async with httpx2.AsyncClient(base_url=url, headers=self.house.headers, timeout=60) as http:
            while True:
                message_id = f"m{self.tried}"
                self.tried += 1
                body = {"message": f"@coder {message_id}", "channel": "web", "messageId": message_id}
                try:
                    answer = await http.post("/api/message", json=body)
                except httpx2.TransportError:
                    return
                assert answer.status_code == 200, answer.text
                self.acknowledged.append(message_id)

    async def listen(self, url: str) -> None:
        headers = {**self.house.headers, **({"last-event-id": self.last_id} if self.last_id else {})}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
            try:
                async with http.stream("GET", "/api/events/stream") as response:
                    async for event in httpx2.EventSource(response):
                        self.last_id = event.id
                        data: dict[str, Any] = json.loads(event.data)
                        if event.event != "connected":
                            self.heard.append((event.id, event.event, data.get("messageId", "")))
            except httpx2.TransportError:
                return

    def incoming(self) -> list[str]:
        return [message_id for _, name, message_id in self.heard if name == "message:incoming"]


async def test_a_client_has_no_gap_over_two_kills(house: HouseProcess) -> None:
    await asyncio.to_thread(house.start)
    traffic = Traffic(house)
    for _ in range(2):
        url = house.url
        tasks = [asyncio.create_task(traffic.listen(url)), asyncio.create_task(traffic.post(url))]
        wanted = len(traffic.acknowledged) + 40
        async with asyncio.timeout(120):
            while len(traffic.acknowledged) < wanted or not traffic.heard:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await asyncio.to_thread(house.kill)
        await asyncio.gather(*tasks)
        await asyncio.to_thread(house.start)
    listening = asyncio.create_task(traffic.listen(house.url))
    missing = set(traffic.acknowledged)
    for _ in range(1200):
        missing = set(traffic.acknowledged) - set(traffic.incoming())
        if not missing or listening.done():
            break
        await asyncio.sleep(0.05)
    assert not missing, f"{sorted(missing)} of {len(traffic.acknowledged)} never came; last {traffic.last_id}"
    async with httpx2.AsyncClient(base_url=house.url, headers=house.headers, timeout=60) as http:
        for message_id in traffic.acknowledged:
            body = {"message": "@coder again", "channel": "web", "messageId": message_id}
            assert (await http.post("/api/message", json=body)).status_code == 409, message_id
        async with asyncio.timeout(120):
            while True:
                counted = (await http.get("/api/queue/status")).json()
                if counted["incoming"] + counted["processing"] + counted["queued"] == 0:
                    break
                await asyncio.sleep(0.1)
        assert counted["dead"] == 0
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    ids = [seen for seen, _, _ in traffic.heard]
    assert len(ids) == len(set(ids)), "an event was told twice"
    order = [tuple(map(int, seen.split("."))) for seen in ids]
    assert order == sorted(order)
    incoming = traffic.incoming()
    assert len(incoming) == len(set(incoming))
    # Only what was in the air at a kill may have come without having been acknowledged.
    assert len(set(incoming) - set(traffic.acknowledged)) <= 2


@pytest.mark.slow
async def test_clients_that_repeat_what_was_not_acknowledged_send_everything_exactly_once(
    house: HouseProcess,
) -> None:
    """Six kills at moments nobody chose; three clients post, two listen, one of them only for some events."""
    wanted = [f"p{client}-{number}" for client in range(3) for number in range(60)]
    left = {client: [each for each in wanted if each.startswith(f"p{client}-")] for client in range(3)}
    heard: dict[str, list[tuple[str, str, str]]] = {"": [], "message:incoming": []}
    last = dict.fromkeys(heard, "")
    chance = random.Random(4)

    async def post(url: str, client: int) -> None:
        async with httpx2.AsyncClient(base_url=url, headers=house.headers, timeout=60) as http:
            while left[client]:
                message_id = left[client][0]
                body = {"message": f"@coder {message_id}", "channel": "web", "messageId": message_id}
                try:
                    answer = await http.post("/api/message", json=body)
                except httpx2.TransportError:
                    return
                assert answer.status_code in (200, 409), answer.text
                left[client].pop(0)

    async def listen(url: str, kind: str) -> None:
        headers = {**house.headers, **({"last-event-id": last[kind]} if last[kind] else {})}
        params = {"type": kind} if kind else {"since": "0"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as http:
            try:
                async with http.stream("GET", "/api/events/stream", params=params) as response:
                    async for event in httpx2.EventSource(response):
                        last[kind] = event.id
                        if event.event != "connected":
                            message_id = json.loads(event.data).get("messageId", "")
                            heard[kind].append((event.id, event.event, message_id))
            except httpx2.TransportError:
                return

    def incoming(kind: str) -> list[str]:
        return [message_id for _, name, message_id in heard[kind] if name == "message:incoming"]

    for _ in range(6):
        await asyncio.to_thread(house.start)
        tasks = [asyncio.create_task(listen(house.url, kind)) for kind in heard]
        async with asyncio.timeout(120):
            while not all(last.values()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        tasks += [asyncio.create_task(post(house.url, client)) for client in left]
        await asyncio.sleep(chance.uniform(0.05, 0.6))
        await asyncio.to_thread(house.kill)
        await asyncio.gather(*tasks)
    await asyncio.to_thread(house.start)
    listening = [asyncio.create_task(listen(house.url, kind)) for kind in heard]
    await asyncio.gather(*(post(house.url, client) for client in left))
    for kind, events in heard.items():
        for _ in range(1200):
            if set(incoming(kind)) == set(wanted):
                break
            await asyncio.sleep(0.05)
        assert sorted(incoming(kind)) == sorted(wanted), f"listener {kind!r}"
        ids = [tuple(map(int, each.split("."))) for each, _, _ in events]
        assert ids == sorted(set(ids)), f"listener {kind!r}"
    for task in listening:
        task.cancel()
    await asyncio.gather(*listening, return_exceptions=True)
