"""What platforms push to a real server: only what they signed is looked at; anything else leaves no trace."""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from postroom.channels.webhook.channel import sign
from postroom.clock import SystemClock
from postroom.testing import FakeSlack, FakeTelegram, FakeWebhook, FakeWhatsApp, HeldClock, Person
from tests.app.house_process import HouseProcess
from tests.channels.chat_platforms import PLATFORMS

EVE = {
    "telegram": Person("1009", "Eve"),
    "whatsapp": Person("491700009", "Eve"),
    "slack-requests": Person("U1009", "Eve"),
    "webhook": Person("eve", "Eve"),
}
OLD_S = 600


@dataclass
class Pusher:
    """A body as the platform pushes it, and how it is signed: with which secret, at which second."""

    fake: Any
    body: bytes
    sign: Callable[[str, int], dict[str, str]]
    secret: str
    is_timed: bool


async def push_telegram(fake: FakeTelegram) -> Pusher:
    event = await fake.write(EVE["telegram"], "let me in")
    body = json.dumps(fake._sent_updates[event.id]).encode()
    return Pusher(
        fake, body, lambda secret, now: {"X-Telegram-Bot-Api-Secret-Token": secret}, "s3cret", False
    )


async def push_whatsapp(fake: FakeWhatsApp) -> Pusher:
    event = await fake.write(EVE["whatsapp"], "let me in")
    body = json.dumps({"object": "x", "entry": [{"id": "1", "changes": [fake._changes[event.id]]}]}).encode()

    def sign_body(secret: str, now: int) -> dict[str, str]:
        digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        return {"X-Hub-Signature-256": f"sha256={digest}"}

    return Pusher(fake, body, sign_body, fake.app_secret, False)


async def push_slack(fake: FakeSlack) -> Pusher:
    event = await fake.write(EVE["slack-requests"], "let me in")
    body = json.dumps(fake._events[event.id]).encode()

    def sign_body(secret: str, now: int) -> dict[str, str]:
        digest = hmac.new(secret.encode(), f"v0:{now}:".encode() + body, hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": str(now), "X-Slack-Signature": f"v0={digest}"}

    return Pusher(fake, body, sign_body, fake.signing_secret, True)


async def push_webhook(fake: FakeWebhook) -> Pusher:
    event = await fake.write(EVE["webhook"], "let me in")
    body = json.dumps(fake._events[event.id]).encode()

    def sign_body(secret: str, now: int) -> dict[str, str]:
        return {"X-Postroom-Signature": sign(secret, body, now)}

    return Pusher(fake, body, sign_body, fake.secret, True)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "telegram": push_telegram,
    "whatsapp": push_whatsapp,
    "slack-requests": push_slack,
    "webhook": push_webhook,
}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[HouseProcess, dict[str, Any]]]:
    async with AsyncExitStack() as stack:
        fakes: dict[str, Any] = {}
        channels: dict[str, Any] = {"enabled": list(MAKERS)}
        for name in MAKERS:
            platform = PLATFORMS[name]
            fakes[name] = await stack.enter_async_context(platform.make(HeldClock(SystemClock().now())))
            channels[name] = platform.options(fakes[name])
        channels["telegram"] |= {"webhook_url": "http://127.0.0.1:9/hook", "webhook_secret": "s3cret"}
        house = HouseProcess(tmp_path, channels=channels)
        stack.callback(house.end)
        await asyncio.to_thread(house.start)
        yield house, fakes


async def test_only_what_the_platform_signed_is_looked_at(
    served: tuple[HouseProcess, dict[str, Any]], tmp_path: Path
) -> None:
    house, fakes = served
    now = int(time.time())
    async with httpx2.AsyncClient(base_url=house.url, headers=house.headers, timeout=60) as http:
        await wait_until_receiving(http)
        # From now on we are the one who pushes.
        fakes["telegram"].webhook.url = None
        pushers = {name: await make(fakes[name]) for name, make in MAKERS.items()}

        async def push(name: str, headers: dict[str, str]) -> int:
            # Whoever pushes has no token of the office.
            given = {"Content-Type": "application/json", "Authorization": "", **headers}
            return (await http.post(f"/hooks/{name}", content=pushers[name].body, headers=given)).status_code

        for name, pusher in pushers.items():
            assert await push(name, {}) == 401, name
            assert await push(name, pusher.sign("not the secret", now)) == 401, name
            if pusher.is_timed:
                assert await push(name, pusher.sign(pusher.secret, now - OLD_S)) == 401, name
        assert (await http.get("/api/pairing")).json() == {"pending": [], "approved": []}
        assert all(pusher.fake.transcript.deliveries == [] for pusher in pushers.values())

        for name, pusher in pushers.items():
            for _ in range(2):
                assert await push(name, pusher.sign(pusher.secret, now)) == 200, name
            await pusher.fake.transcript.wait_for("pairing code")
        pending = (await http.get("/api/pairing")).json()["pending"]
        assert sorted(each["channel"] for each in pending) == sorted(pushers)
        told = [each["message"] for each in (await http.get("/api/responses")).json()]
        assert len(told) == len(pushers)
        assert all("pairing code" in each for each in told)
        assert await push_to_nobody(http) == 404
    await asyncio.to_thread(house.cli, "stop")
    assert all(len(pusher.fake.transcript.select("pairing code")) == 1 for pusher in pushers.values())
    stored = b"".join(path.read_bytes() for path in (house.home.path).glob("postroom.db*"))
    assert b"let me in" not in stored


async def push_to_nobody(http: httpx2.AsyncClient) -> int:
    return (await http.post("/hooks/nobody", content=b"{}")).status_code


async def wait_until_receiving(http: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(60):
        while True:
            channels = (await http.get("/api/status")).json()["channels"]
            if all(channels.get(name, {}).get("receiving") for name in MAKERS):
                return
            await asyncio.sleep(0.05)
