"""Messages under redelivery, failures of the platform and kill -9: each is handled once and answered once.

What nobody can know (a reply that was under way when the process died) is marked, and not repeated.
"""

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.channels.delivery_plan import DELIVERY
from postroom.clock import SystemClock
from postroom.testing import ConnectionDropped, HeldClock, RateLimited, ServerFailed
from tests.acceptance.office import until
from tests.channels.chat_platforms import PLATFORMS, ChatPlatform

SEED = 15
FAULTS = [RateLimited(retry_after=1), ServerFailed(), ConnectionDropped("before"), ConnectionDropped("after")]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class SoakProcess:
    def __init__(self, folder: Path, platform: ChatPlatform, options: dict[str, Any], port: int) -> None:
        self._status = folder / "status.json"
        self._config = folder / "config.json"
        people = [(person.id, person.name) for person in platform.people]
        given = {"platform": platform.name, "options": options, "port": port, "people": people}
        self._config.write_text(json.dumps({**given, "folder": str(folder), "status": str(self._status)}))
        self._log = folder / "child.log"
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self._spawn()
        await until(self._is_up, within=120)

    def _spawn(self) -> None:
        self._status.unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.channels.soak_child", str(self._config)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-3000:]
        return self._status.exists()

    async def wait_until_over(self, handled: int) -> None:
        """Until so many messages came to the office, and nothing is open any more."""

        def is_over() -> bool:
            if not self._is_up():
                return False
            found = json.loads(self._status.read_text())
            return found["handled"] >= handled and not found["open"]

        await until(is_over, within=900)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()


async def soak(folder: Path, platform: ChatPlatform, messages: int, kills: int) -> dict[str, Any]:
    chance = random.Random(SEED)
    begun = time.monotonic()
    async with platform.make(HeldClock(SystemClock().now())) as fake:
        ticking = asyncio.create_task(tick(fake))
        port = free_port()
        process = SoakProcess(folder, platform, platform.options(fake), port)
        try:
            await process.start()
            if platform.hook is not None:
                await platform.hook(fake, f"http://127.0.0.1:{port}/hook")
            # The first message of each chat is told without trouble: from then on its place is kept.
            await greet(fake, platform)
            fake.faults.at_random(0.05, FAULTS, call=platform.sends, seed=SEED)
            await write_all(fake, platform, process, messages, kills, chance)
            # Signal forgets what it has told: a kill at that moment loses one message.
            lost = kills if platform.name == "signal" else 0
            await process.wait_until_over(messages + len(platform.people) - lost)
        finally:
            process.kill()
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)
            fake.faults.stop()
        found = await judge(folder, fake)
        return {**found, "kills": kills, "seconds": round(time.monotonic() - begun)}


async def write_all(
    fake: Any, platform: ChatPlatform, process: SoakProcess, messages: int, kills: int, chance: random.Random
) -> None:
    after = sorted(chance.sample(range(1, messages), kills))
    for number in range(messages):
        event = await platform.write(fake, chance.choice(platform.people), f"m{number}")
        if hasattr(fake, "redeliver") and chance.random() < 0.3:
            again = fake.redeliver(event)
            if asyncio.iscoroutine(again):
                await again
        await asyncio.sleep(chance.random() * 0.05)
        if after and number >= after[0]:
            after.pop(0)
            process.kill()
            await process.start()


async def tick(fake: Any) -> None:
    """The platform's time goes on with ours."""
    while True:
        await asyncio.sleep(0.1)
        fake.clock.set(SystemClock().now())


async def greet(fake: Any, platform: ChatPlatform) -> None:
    for number, person in enumerate(platform.people):
        await platform.write(fake, person, f"first{number}")
        await fake.transcript.wait_for(f"echo: first{number}.")


async def judge(folder: Path, fake: Any) -> dict[str, Any]:
    async with postroom.open(f"sqlite:///{folder / 'room.db'}", durability="relaxed") as room:
        handled = await count_handled(room)
        open_plans = await room.documents(DELIVERY, limit=1000)
    answers = Counter(
        text.partition("echo: ")[2].partition(".")[0] for text in fake.transcript.texts() if "echo: m" in text
    )
    return {
        "handled": len(handled),
        "handled twice": sum(count > 1 for count in handled.values()),
        "answered": len(answers),
        "answered twice": sum(count > 1 for count in answers.values()),
        "unanswered": len(handled) - len(answers),
        "ambiguous": sum("ambiguous" in str(plan.data) for plan in open_plans),
        "faults": len(fake.faults.happened),
    }


async def count_handled(room: postroom.Room) -> Counter[str]:
    found: Counter[str] = Counter()
    cursor = None
    while True:
        page = await room.messages(scope="office", message_type="office.mail", cursor=cursor, limit=500)
        found.update(m.body["text"] for m in page.messages if m.body["text"].startswith("m"))
        cursor = page.next_cursor
        if cursor is None:
            return found


def check(found: dict[str, Any], platform: ChatPlatform, messages: int) -> None:
    print(platform.name, json.dumps(found))
    lost = found["kills"] if platform.name == "signal" else 0
    assert messages - lost <= found["handled"] <= messages
    assert found["handled twice"] == found["answered twice"] == 0
    # What was not seen to arrive is marked.
    assert found["unanswered"] <= found["ambiguous"]


async def test_each_message_is_handled_and_answered_once_through_kills_and_failures(tmp_path: Path) -> None:
    platform = PLATFORMS["telegram"]
    check(await soak(tmp_path, platform, 12, 1), platform, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PLATFORMS if name != "telegram"])
async def test_each_message_of_every_platform_is_handled_and_answered_once(name: str, tmp_path: Path) -> None:
    platform = PLATFORMS[name]
    messages, kills = int(os.environ.get("SOAK_MESSAGES", "40")), int(os.environ.get("SOAK_KILLS", "2"))
    check(await soak(tmp_path, platform, messages, kills), platform, messages)
