"""Messages under redelivery, failures of the platform and kill -9: how often each was handled and answered.

python -m tests.channels.soak --platform telegram --messages 1000 --kills 20 --seed 15
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

import postroom
from postroom.channels.delivery_plan import DELIVERY, DeliveryPlan, PieceState
from postroom.clock import SystemClock
from postroom.testing import ConnectionDropped, HeldClock, RateLimited, ServerFailed
from tests.acceptance.office import until
from tests.channels.chat_platforms import PLATFORMS, ChatPlatform, wait_until_connected

FAULTS = [RateLimited(retry_after=1), ServerFailed(), ConnectionDropped("before"), ConnectionDropped("after")]
FAILING = 0.05
REPEATED = 0.3
ANSWER = re.compile(r"echo: (m\d+)\.")
# So long a process lives between two kills at most, besides the time it takes to begin.
LIFE_S = 3.0


@dataclass(frozen=True)
class SoakReport:
    """`missing`: the messages whose answer nobody saw. `marked`: those with an ambiguous answer."""

    messages: int
    kills: int
    repeated: int
    faults: int
    handled: Counter[str]
    answered: Counter[str]
    marked: frozenset[str]
    dead: int
    seconds: int

    @property
    def missing(self) -> frozenset[str]:
        return frozenset(self.handled) - frozenset(self.answered)

    def check(self, lost: int = 0) -> None:
        """`lost`: so many the platform itself may lose."""
        assert self.messages - lost <= len(self.handled) <= self.messages, self.summary()
        assert set(self.handled.values()) == {1}, _several(self.handled)
        assert set(self.answered.values()) == {1}, _several(self.answered)
        assert self.missing <= self.marked, sorted(self.missing - self.marked)
        assert not self.dead, self.summary()

    def summary(self) -> dict[str, int]:
        return {
            "messages": self.messages,
            "told again": self.repeated,
            "failures": self.faults,
            "kills": self.kills,
            "handled": len(self.handled),
            "handled twice": len(_several(self.handled)),
            "answered": len(self.answered),
            "answered twice": len(_several(self.answered)),
            "marked as maybe missing": len(self.marked),
            "of these missing": len(self.marked & self.missing),
            "missing and not marked": len(self.missing - self.marked),
            "dead letters": self.dead,
            "seconds": self.seconds,
        }


def _several(counts: Counter[str]) -> list[str]:
    return [each for each, count in counts.items() if count > 1]


def find_free_port() -> int:
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

    async def wait_until_over(self, handled: int, within: float) -> None:
        """Until so many messages came to the office, and nothing is open any more."""

        def is_over() -> bool:
            if not self._is_up():
                return False
            found = json.loads(self._status.read_text())
            return found["handled"] >= handled and not found["open"]

        await until(is_over, within=within)

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()


class Soak:
    def __init__(self, folder: Path, platform: ChatPlatform, messages: int, kills: int, seed: int) -> None:
        self._folder = folder
        self._platform = platform
        self._messages = messages
        self._kills = kills
        self._seed = seed
        self._repeated = 0

    async def run(self) -> SoakReport:
        begun = time.monotonic()
        async with self._platform.make(HeldClock(SystemClock().now())) as fake:
            ticking = asyncio.create_task(_tick(fake))
            port = find_free_port()
            process = SoakProcess(self._folder, self._platform, self._platform.options(fake), port)
            try:
                await process.start()
                if self._platform.hook is not None:
                    await self._platform.hook(fake, f"http://127.0.0.1:{port}/hook")
                await wait_until_connected(self._platform, fake)
                await self._greet(fake)
                fake.faults.at_random(FAILING, FAULTS, call=self._platform.sends, seed=self._seed)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._write(fake))
                    group.create_task(self._kill(fake, process))
                handled = self._messages + len(self._platform.people) - self.may_be_lost
                await process.wait_until_over(handled, within=120 + self._messages)
            finally:
                process.kill()
                ticking.cancel()
                await asyncio.gather(ticking, return_exceptions=True)
                fake.faults.stop()
            return await self._judge(fake, round(time.monotonic() - begun))

    @property
    def may_be_lost(self) -> int:
        """What these forget as soon as it is told: a kill at that moment loses one message."""
        return self._kills if self._platform.name in ("signal", "whatsapp_personal") else 0

    async def _greet(self, fake: Any) -> None:
        """The first message of each chat is told without trouble: from then on its place is kept."""
        for number, person in enumerate(self._platform.people):
            await self._platform.write(fake, person, f"first{number}")
            await fake.transcript.wait_for(f"echo: first{number}.")

    async def _write(self, fake: Any) -> None:
        chance = random.Random(self._seed)
        for number in range(self._messages):
            event = await self._platform.write(fake, chance.choice(self._platform.people), f"m{number}")
            if hasattr(fake, "redeliver") and chance.random() < REPEATED:
                self._repeated += 1
                again = fake.redeliver(event)
                if asyncio.iscoroutine(again):
                    await again
            # Over the whole life of the soak, also while nobody is there to take it.
            await asyncio.sleep(chance.random() * 2 * self._kills * (LIFE_S / 2 + 1) / self._messages)

    async def _kill(self, fake: Any, process: SoakProcess) -> None:
        """At any time; and while an answer is under way, before the platform has it and after."""
        chance = random.Random(self._seed + 1)
        for _ in range(self._kills):
            await asyncio.sleep(chance.random() * LIFE_S)
            moment = chance.choice([None, "before", "after"])
            held = None if moment is None else fake.faults.hold(self._platform.sends, moment)
            if held is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(held.reached.wait(), LIFE_S)
            process.kill()
            if held is not None:
                held.release()
            await process.start()

    async def _judge(self, fake: Any, seconds: int) -> SoakReport:
        async with postroom.open(f"sqlite:///{self._folder / 'room.db'}", durability="relaxed") as room:
            handled = await _count_handled(room)
            marked = await _find_marked(room)
            dead = sum(each.dead for each in (await room.scope_counts("office")).values())
        answers = (ANSWER.search(text) for text in fake.transcript.texts())
        return SoakReport(
            messages=self._messages,
            kills=self._kills,
            repeated=self._repeated,
            faults=len(fake.faults.happened),
            handled=handled,
            answered=Counter(found[1] for found in answers if found is not None),
            marked=marked,
            dead=dead,
            seconds=seconds,
        )


async def _tick(fake: Any) -> None:
    """The platform's time goes on with ours."""
    while True:
        await asyncio.sleep(0.1)
        fake.clock.set(SystemClock().now())


async def _count_handled(room: postroom.Room) -> Counter[str]:
    found: Counter[str] = Counter()
    cursor = None
    while True:
        page = await room.messages(scope="office", message_type="office.mail", cursor=cursor, limit=500)
        found.update(m.body["text"] for m in page.messages if re.fullmatch(r"m\d+", m.body["text"]))
        cursor = page.next_cursor
        if cursor is None:
            return found


async def _find_marked(room: postroom.Room) -> frozenset[str]:
    """The messages whose answer is listed as one that may not have arrived."""
    marked: set[str] = set()
    for document in await room.documents(DELIVERY, limit=1000):
        plan = msgspec.convert(document.data, DeliveryPlan)
        pieces = (planned for planned in plan.pieces if planned.state is PieceState.AMBIGUOUS)
        marked.update(found[1] for each in pieces if (found := ANSWER.search(each.piece.text.text)))
    return frozenset(marked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", choices=list(PLATFORMS), required=True)
    parser.add_argument("--messages", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=15)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    soak = Soak(folder, PLATFORMS[given.platform], given.messages, given.kills, given.seed)
    report = asyncio.run(soak.run())
    print(given.platform, json.dumps(report.summary()), flush=True)
    report.check(soak.may_be_lost)


if __name__ == "__main__":
    main()
