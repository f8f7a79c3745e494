"""The work queue over HTTP, beside the same calls to another commit: publish, claim, complete.

Both servers run as users start them, at the same time, and are asked in turns, so that whatever else the
machine does falls on both. Only the ratios mean something; that of the processor time per call
moves least with the machine's other work.
"""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.queueing.disk import real_disk
from benchmarks.web.client import load, request
from benchmarks.web.resting import cpu_s
from benchmarks.web.revision import sources

CONNECTIONS = 16
BATCH = 100
QUEUE = "/v1/scopes/bench/queues/jobs"
MESSAGE = {"body": {"hello": "world", "number": 7}, "labels": {"customer": "ada"}}
WAYS = ("publish", "claim", "complete")
TARGET = 1.7
TOKEN = "a-token-for-the-benchmark"
MANY = 1_000_000


@dataclass
class QueueServer:
    port: int
    key: str
    pid: int
    took: dict[str, list[float]] = field(default_factory=lambda: {way: [] for way in WAYS})
    cpu_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WAYS, 0.0))

    def post(self, path: str, body: Any) -> Any:
        return self.ask("POST", path, body, self.key)

    def ask(self, method: str, path: str, body: Any, token: str) -> Any:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as http_:
            headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
            http_.request(method, path, json.dumps(body), headers)
            answer = http_.getresponse()
            said = answer.read()
        if answer.status >= 300:
            raise RuntimeError(said.decode())
        return json.loads(said)["data"]

    def measure(self, count: int) -> None:
        """So many messages, each through all three calls."""
        requests = [request(QUEUE + "/messages", self.key, MESSAGE)] * count
        self._send("publish", requests)
        for _ in range(count // BATCH):
            self.post(QUEUE + "/messages/batch", {"messages": [MESSAGE] * BATCH})
        self._send("claim", [request(QUEUE + "/claim", self.key, {"batch_size": 1})] * count)
        held = []
        while len(held) < count:
            held += self.post(QUEUE + "/claim", {"batch_size": BATCH})
        self._send(
            "complete",
            [
                request(
                    f"/v1/scopes/bench/messages/{each['id']}/complete",
                    self.key,
                    {"claim_token": each["claim_token"], "result": {"ok": True}},
                )
                for each in held
            ],
        )

    def _send(self, way: str, requests: list[bytes]) -> None:
        before = cpu_s(self.pid)
        self.took[way] += load(
            self.port, requests.__getitem__, connections=CONNECTIONS, seconds=3600, most=len(requests)
        )
        self.cpu_s[way] += cpu_s(self.pid) - before


@contextlib.contextmanager
def serving(source: Path) -> Iterator[QueueServer]:
    folder = Path(tempfile.mkdtemp(prefix="postroom-bench-", dir=real_disk()))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("POSTROOM")},
        "PYTHONPATH": str(source),
        "POSTROOM_HOME": str(folder / "home"),
        "POSTROOM_API_PORT": "0",
        "POSTROOM_TOKEN": TOKEN,
    }

    def run(words: str) -> str:
        command = [sys.executable, "-m", "postroom", *words.split()]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    run("scope create bench")
    run("queue create bench/jobs --lease 1h")
    key = json.loads(run("key create k --permission view --permission publish --permission consume --json"))
    command = [sys.executable, "-m", "postroom", "start", "--foreground", "--roles", "api"]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        found = QueueServer(int(line.rsplit(":", 1)[1].strip(" /\n")), key["secret"], server.pid)
        found.ask("PUT", "/v1/tenants/default/rates", dict.fromkeys(("key", "user", "tenant"), MANY), TOKEN)
        yield found
    finally:
        server.terminate()
        server.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def calling(against: str, count: int, rounds: int) -> dict[str, Any]:
    with sources(against) as old, sources(None) as new, serving(old) as then, serving(new) as now:
        for server in (then, now):  # what is made once is made
            server.measure(BATCH)
            server.took, server.cpu_s = {way: [] for way in WAYS}, dict.fromkeys(WAYS, 0.0)
        for _ in range(rounds):
            for server in (then, now):
                server.measure(count)
    found: dict[str, Any] = {"against": against, "targets": {"ratio": f">= {TARGET}"}}
    for way in WAYS:
        rates = [CONNECTIONS * len(each.took[way]) / sum(each.took[way]) for each in (then, now)]
        work = [1000 * each.cpu_s[way] / len(each.took[way]) for each in (then, now)]
        found[way] = {
            "then cpu ms": round(work[0], 2),
            "now cpu ms": round(work[1], 2),
            "cpu ratio": round(work[0] / work[1], 2),
            "then a second": round(rates[0], 1),
            "now a second": round(rates[1], 1),
            "ratio": round(rates[1] / rates[0], 2),
        }
    found["met"] = all(found[way]["ratio"] >= TARGET for way in WAYS)
    return found
