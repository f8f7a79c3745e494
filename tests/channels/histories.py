"""Random histories of an office with a channel: whatever happens, nobody who wrote is left in silence.

python -m tests.channels.histories --seeds 0 200
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path
from typing import Any

from postroom.channels.delivery_worker import REMARK
from postroom.clock import SystemClock
from postroom.testing import (
    ConnectionDropped,
    Delivery,
    HeldClock,
    InboundEvent,
    Person,
    RateLimited,
    ServerFailed,
)
from tests.acceptance.office import until
from tests.channels.chat_platforms import PLATFORMS, ChatPlatform, wait_until_connected
from tests.channels.soak import find_free_port

WORDS = ["hello"] * 6 + [
    "crash",
    "refused",
    "limited",
    "raise",
    "flaky",
    "hang",
    "silent",
    "pass",
    "nobody",
    "lost",
    "dear",
]
TO = ["", "", "", "@coder ", "@ghost "]
FAULTS = [RateLimited(retry_after=1), ServerFailed(), ConnectionDropped("before"), ConnectionDropped("after")]
STEPS = ["write"] * 10 + ["pause", "resume", "cancel", "kill", "restart", "dismiss", "fault", "away", "again"]
# Of these an answer says which message it answers.
NAMES = ("telegram", "webhook", "discord", "matrix")
WAITING = "not answered yet"
GIVE_UP_S = 90.0


class OfficeProcess:
    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self._folder = folder
        self._config = config
        self._process: Process | None = None

    async def start(self) -> None:
        file = self._folder / "config.json"
        file.write_text(json.dumps(self._config))
        with (self._folder / "child.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.channels.history_child",
                str(file),
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
            )
        await self._hear("ready")

    async def order(self, what: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n".encode())
        await self._hear("done")

    async def _hear(self, word: str) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async with asyncio.timeout(120):
            said = await self._process.stdout.readline()
        assert said.decode().strip() == word, (self._folder / "child.log").read_text()[-3000:]

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        await self._end()

    async def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        await self._end()

    async def _end(self) -> None:
        if self._process is not None:
            async with asyncio.timeout(120):
                await self._process.communicate()
            self._process = None

    async def dismiss(self, agent: str) -> None:
        self._config["agents"] = [each for each in self._config["agents"] if each != agent]
        await self.stop()
        await self.start()


class History:
    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._chance = random.Random(seed)
        self._platform: ChatPlatform = PLATFORMS[NAMES[seed % len(NAMES)]]
        self._written: list[tuple[InboundEvent, str]] = []
        self.happened: list[str] = [f"seed {seed} on {self._platform.name}"]

    async def play(self) -> None:
        async with self._platform.make(HeldClock(SystemClock().now())) as fake:
            ticking = asyncio.create_task(_tick(fake))
            port = find_free_port()
            config = {
                "folder": str(self._folder),
                "platform": self._platform.name,
                "options": self._platform.options(fake),
                "port": port,
                "people": [(person.id, person.name) for person in self._platform.people],
                "agents": ["lead", "coder"],
                "busy": "queue",
            }
            office = OfficeProcess(self._folder, config)
            try:
                await office.start()
                if self._platform.hook is not None:
                    await self._platform.hook(fake, f"http://127.0.0.1:{port}/hook")
                await wait_until_connected(self._platform, fake)
                for person in self._platform.people:
                    await self._write(fake, person, f"hello first{person.id}")
                    await fake.transcript.wait_for(f"first{person.id}.")
                for _ in range(self._chance.randint(8, 16)):
                    await self._take_step(fake, office)
                fake.faults.stop()
                await self._wait_until_all_heard(fake)
            finally:
                await office.kill()
                ticking.cancel()
                await asyncio.gather(ticking, return_exceptions=True)
                fake.faults.stop()
            self._check_nothing_twice(fake)

    async def _take_step(self, fake: Any, office: OfficeProcess) -> None:
        step = self._chance.choice(STEPS)
        await asyncio.sleep(self._chance.random() * 0.3)
        if step != "write":
            self.happened.append(step)
        match step:
            case "write":
                word, to = self._chance.choice(WORDS), self._chance.choice(TO)
                person = self._chance.choice(self._platform.people)
                await self._write(fake, person, f"{to}{word} t{len(self._written)}")
            case "pause" | "resume" | "cancel":
                await office.order(step)
            case "kill":
                await office.kill()
                await office.start()
            case "restart":
                await office.stop()
                await office.start()
            case "dismiss":
                await office.dismiss("coder")
            case "fault":
                fake.faults.plan(self._platform.sends, self._chance.choice(FAULTS))
            case "away":
                await fake.go_away()
                await asyncio.sleep(self._chance.random())
                await fake.come_back()
            case "again" if hasattr(fake, "redeliver"):
                again = fake.redeliver(self._chance.choice(self._written)[0])
                if asyncio.iscoroutine(again):
                    await again

    async def _write(self, fake: Any, person: Person, text: str) -> None:
        self.happened.append(text)
        self._written.append((await self._platform.write(fake, person, text), text))

    async def _wait_until_all_heard(self, fake: Any) -> None:
        try:
            await until(lambda: not self._find_unheard(fake), within=GIVE_UP_S)
        except TimeoutError:
            unheard = [text for _, text in self._find_unheard(fake)]
            story = "\n  ".join(self.happened)
            raise AssertionError(f"silence after {unheard}\n  {story}\n{fake.transcript}") from None

    def _find_unheard(self, fake: Any) -> list[tuple[InboundEvent, str]]:
        """Those to which nothing came that points at them, nor a word that all up to a later one wait."""
        unheard: list[tuple[InboundEvent, str]] = []
        by_chat: dict[str, list[tuple[InboundEvent, str]]] = {}
        for event, text in self._written:
            by_chat.setdefault(event.chat, []).append((event, text))
        for chat, written in by_chat.items():
            told = fake.transcript.select(chat=chat)
            places = {event.message_id: place for place, (event, _) in enumerate(written)}
            answered = {each.reply_to for each in told}
            waits = max(
                (places.get(each.reply_to or "", -1) for each in told if WAITING in each.text), default=-1
            )
            silent = [
                one
                for place, one in enumerate(written)
                if one[0].message_id not in answered and place > waits
            ]
            # What may be missing is told without a word of which message it was about.
            remarks = sum(REMARK in each.text for each in told)
            unheard += silent[remarks:]
        return unheard

    def _check_nothing_twice(self, fake: Any) -> None:
        counts = Counter(each.text for each in fake.transcript.deliveries if _is_answer(each))
        assert [text for text, count in counts.items() if count > 1] == [], self.happened


def _is_answer(delivery: Delivery) -> bool:
    return delivery.text.startswith("echo: ")


async def _tick(fake: Any) -> None:
    while True:
        await asyncio.sleep(0.05)
        fake.clock.set(SystemClock().now())


async def play_all(seeds: range, at_once: int) -> int:
    """How many were left in silence, or told something twice."""
    turns = asyncio.Semaphore(at_once)

    async def play(seed: int) -> bool:
        async with turns:
            history = History(Path(tempfile.mkdtemp(prefix=f"history-{seed}-")), seed)
            begun = time.monotonic()
            try:
                await history.play()
            except Exception as error:
                print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
                return True
            print(f"seed {seed}: {time.monotonic() - begun:.0f} s, {'; '.join(history.happened)}", flush=True)
            return False

    return sum(await asyncio.gather(*map(play, seeds)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 200))
    parser.add_argument("--at-once", type=int, default=1)
    given = parser.parse_args()
    seeds = range(*given.seeds)
    failed = asyncio.run(play_all(seeds, given.at_once))
    print(f"{len(seeds)} histories, {failed} with silence or a repetition")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
