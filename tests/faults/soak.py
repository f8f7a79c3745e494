"""`python -m tests.faults.soak --minutes N`: mixed load on a real server that is killed again and again.

Publishers, workers, people who write to an agent and callers who send nonsense go on through every kill. At
the end all is drained; it prints memory and file sizes as they were each minute, and what was lost: it must
be nothing.
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.app.house_process import HouseProcess

QUEUE = "/v1/scopes/default/queues/soak"
CHANNEL = "soak"
KEEP_DAYS = 3 / 24 / 60
DRAIN_S = 300.0
NONSENSE: tuple[tuple[str, str, Any], ...] = (
    ("POST", f"{QUEUE}/messages", {"body": 1, "priority_tier": "nobody"}),
    ("POST", f"{QUEUE}/claim", {"batch_size": -1}),
    ("GET", "/v1/scopes/default/messages/nobody", None),
    ("POST", "/api/message", {"message": ""}),
    ("DELETE", "/api/agents/nobody", None),
)


@dataclass
class Counts:
    published: set[str] = field(default_factory=set)
    worked: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    """Completed, but a kill came before the answer."""
    left: int = 0
    """Messages that the server still holds open, or as dead letters, at the end."""
    asked: set[str] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    refused: int = 0
    server_errors: list[str] = field(default_factory=list)
    kills: int = 0

    @property
    def lost(self) -> int:
        return len(self.published - self.worked - self.unsure) + len(self.asked - self.answered)


class Soak:
    def __init__(self, house: HouseProcess, seed: int) -> None:
        self.house = house
        self.counts = Counts()
        self._chance = random.Random(seed)
        self._drains = False

    async def run(self, minutes: float, kill_every_s: float) -> None:
        await asyncio.to_thread(self.house.start)
        await self._make_queue()
        load = [self._publish, self._publish, self._work, self._work, self._ask, self._collect, self._annoy]
        tasks = [asyncio.create_task(self._through_kills(part)) for part in load]
        tasks.append(asyncio.create_task(self._report()))
        end, next_kill = time.monotonic() + minutes * 60, time.monotonic() + kill_every_s
        while (now := time.monotonic()) < end:
            await asyncio.sleep(min(1.0, end - now))
            for task in tasks:
                if task.done():
                    task.result()
            if time.monotonic() >= next_kill and end - time.monotonic() > 30:
                await asyncio.to_thread(self.house.kill)
                self.counts.kills += 1
                await asyncio.to_thread(self.house.start)
                next_kill = time.monotonic() + kill_every_s
        await self._drain()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _make_queue(self) -> None:
        async with self._client() as http:
            wanted = {"slug": "soak", "visibility_timeout_s": 20, "max_retries": 50}
            answer = await http.post("/v1/scopes/default/queues", json=wanted)
            assert answer.status_code in (201, 409), answer.text

    def _client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(base_url=self.house.url, headers=self.house.headers, timeout=60)

    async def _through_kills(self, part: Any) -> None:
        while True:
            # While it is down there is no address, or nobody at it.
            with contextlib.suppress(httpx2.TransportError, ValueError, AssertionError):
                async with self._client() as http:
                    while True:
                        await part(http)
            await asyncio.sleep(0.2)

    async def _post(self, http: httpx2.AsyncClient, path: str, body: Any) -> httpx2.Response:
        answer = await http.post(path, json=body)
        if answer.status_code >= 500 and answer.status_code != 503:
            self.counts.server_errors.append(f"{path}: {answer.status_code} {answer.text[:200]}")
        return answer

    async def _publish(self, http: httpx2.AsyncClient) -> None:
        if self._drains:
            await asyncio.sleep(0.5)
            return
        name = f"{self._chance.getrandbits(64):016x}"
        body = {"name": name, "filler": "x" * self._chance.choice((10, 200, 5000))}
        answer = await self._post(http, f"{QUEUE}/messages", {"body": body, "idempotency_key": name})
        if answer.status_code in (200, 201):
            self.counts.published.add(name)
        await asyncio.sleep(self._chance.random() * 0.04)

    async def _work(self, http: httpx2.AsyncClient) -> None:
        answer = await self._post(http, f"{QUEUE}/claim", {"batch_size": 5, "wait_s": 2})
        if answer.status_code != 200:
            await asyncio.sleep(0.2)
            return
        for message in answer.json()["data"]:
            chance = self._chance.random()
            at = f"/v1/scopes/default/messages/{message['id']}"
            token = {"claim_token": message["claim_token"]}
            if chance < 0.05:
                await self._post(http, f"{at}/fail", {**token, "reason": "soak", "delay_s": 1})
            elif chance < 0.1:
                await self._post(http, f"{at}/snooze", {**token, "seconds": 1})
            elif chance > 0.11:
                name = message["body"]["name"]
                self.counts.unsure.add(name)
                done = await self._post(http, f"{at}/complete", {**token, "result": {"ok": True}})
                self.counts.unsure.discard(name)
                if done.status_code == 200:
                    self.counts.worked.add(name)

    async def _ask(self, http: httpx2.AsyncClient) -> None:
        if self._drains:
            await asyncio.sleep(0.5)
            return
        name = f"{self._chance.getrandbits(64):016x}"
        body = {"message": f"@coder {name}", "channel": CHANNEL, "sender": "Ann", "messageId": name}
        if (await self._post(http, "/api/message", body)).status_code == 200:
            self.counts.asked.add(name)
        await asyncio.sleep(0.5)

    async def _collect(self, http: httpx2.AsyncClient) -> None:
        for row in (await http.get("/api/responses/pending", params={"channel": CHANNEL})).json():
            self.counts.answered |= {row["messageId"], *row.get("messageIds", ())}
            await self._post(http, f"/api/responses/{row['id']}/ack", {})
        await asyncio.sleep(0.3)

    async def _annoy(self, http: httpx2.AsyncClient) -> None:
        method, path, body = self._chance.choice(NONSENSE)
        answer = await http.request(method, path, json=body)
        self.counts.refused += answer.status_code in range(400, 500)
        if answer.status_code >= 500 and answer.status_code != 503:
            self.counts.server_errors.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")
        await asyncio.sleep(0.3)

    async def _drain(self) -> None:
        self._drains = True
        end = time.monotonic() + DRAIN_S
        while self.counts.lost and time.monotonic() < end:  # noqa: ASYNC110 - others count meanwhile
            await asyncio.sleep(0.5)
        async with self._client() as http:
            counted = (await http.get(QUEUE)).json()["data"]
        self.counts.left = sum(counted[f"depth_{state}"] for state in ("pending", "claimed", "dead"))

    async def _report(self) -> None:
        started = time.monotonic()
        print(
            f"{'minute':>6} {'memory MB':>9} {'store MB':>8} {'log MB':>6} {'done':>8} {'answers':>8} kills"
        )
        while True:
            with contextlib.suppress(OSError, ValueError):
                done, answers = len(self.counts.worked), len(self.counts.answered)
                sizes = f"{self._memory_mb():9.1f} {self._mb(''):8.1f} {self._mb('-wal'):6.1f}"
                minute = (time.monotonic() - started) / 60
                print(f"{minute:6.1f} {sizes} {done:8} {answers:8} {self.counts.kills:5}", flush=True)
            await asyncio.sleep(60)

    def _memory_mb(self) -> float:
        status = Path(f"/proc/{self.house.now().pid}/status").read_text("ascii")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def _mb(self, ending: str) -> float:
        return os.stat(f"{self.house.home.path}/postroom.db{ending}").st_size / 2**20


async def soak(folder: Path, minutes: float, kill_every_s: float, seed: int = 1) -> Counts:
    # Short, so that files can be seen to stay flat within minutes.
    keep = {"completed_hours": KEEP_DAYS * 24, "messages_days": KEEP_DAYS, "ledger_days": KEEP_DAYS}
    keep |= {"records_days": KEEP_DAYS, "progress_days": KEEP_DAYS, "exchanges_days": KEEP_DAYS}
    house = HouseProcess(folder, retention={**keep, "audit_days": KEEP_DAYS})
    try:
        made = Soak(house, seed)
        await made.run(minutes, kill_every_s)
        await asyncio.to_thread(house.cli, "stop")
        verified = await asyncio.to_thread(lambda: house.cli("ledger", "verify").stdout)
    finally:
        house.end()
    print(verified.strip())
    return made.counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--kill-every", type=float, default=180, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="postroom-soak-") as folder:
        found = asyncio.run(soak(Path(folder), given.minutes, given.kill_every, given.seed))
    print(
        f"{len(found.published)} published, {len(found.worked)} worked on; {len(found.asked)} asked,"
        f" {len(found.answered)} answered; {found.refused} refused; {found.kills} kills; {found.lost} lost,"
        f" {found.left} left, {len(found.unsure)} completed unheard"
    )
    for error in found.server_errors[:20]:
        print(error)
    return 1 if found.lost or found.left or found.server_errors else 0


if __name__ == "__main__":
    sys.exit(main())
