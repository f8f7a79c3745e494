"""The way of one message through the code: the files and functions of the package that it enters, the
statements and commits of the store, from a request to its answer and to the live event of the reply.

`scripts/bench message_path [--against REV] [--list]` runs a real server in a process of its own, with a
recorder in it. It counts and does not time, so that a busy machine changes little; each figure is the
median of several tries.
"""

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.web.revision import ROOT, sources

TOKEN = "a-token-for-the-benchmark"
SETTINGS = {
    "agents": {"coder": {"name": "Coder", "provider": "script", "model": ""}},
    "monitoring": {"heartbeat_interval": 0},
}
QUIET_S = 0.3  # what follows a message or a turn is over by then
KINDS = ("files", "functions", "statements", "commits")
Found = dict[str, Any]


@dataclass
class RecordedServer:
    http: httpx2.AsyncClient
    key: str
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter

    async def _say(self, word: str) -> Found:
        self._writer.write(f"{word}\n".encode())
        return json.loads(await self._reader.readline())

    async def record(self, act: Callable[[], Awaitable[Any]], what: str) -> Found:
        await asyncio.sleep(QUIET_S)
        await self._say(f"begin {what}")
        await act()
        return await self._say("end")


def prepare(environment: dict[str, str]) -> str:
    """A queue, and a key that may publish to it."""
    made = ""
    for words in ("scope create bench", "queue create bench/jobs", "key create k --role tenant_admin --json"):
        command = [sys.executable, "-m", "postroom", *words.split()]
        made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    found = json.loads(made)
    return found.get("secret") or found["key"]


@contextlib.asynccontextmanager
async def running(source: Path, roles: str) -> AsyncIterator[RecordedServer]:
    with tempfile.TemporaryDirectory(prefix="postroom-path-") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        document = {**SETTINGS, "workspace": {"path": f"{folder}/work"}}
        (home / "settings.json").write_text(json.dumps(document))
        environment = {
            **os.environ,
            "PYTHONPATH": f"{source}{os.pathsep}{ROOT}",
            "POSTROOM_HOME": str(home),
            "POSTROOM_TOKEN": TOKEN,
            "POSTROOM_API_PORT": "0",
        }
        key = await asyncio.to_thread(prepare, environment)
        joined: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Future()
        harness = await asyncio.start_server(
            lambda reader, writer: joined.set_result((reader, writer)), "127.0.0.1", 0, limit=2**24
        )
        port = harness.sockets[0].getsockname()[1]
        recorder = ["-m", "benchmarks.web.path_recorder", str(port), f"{source}/postroom/"]
        server = await asyncio.create_subprocess_exec(
            sys.executable,
            *recorder,
            *f"start --foreground --roles {roles}".split(),
            env=environment,
            stdout=subprocess.PIPE,
        )
        try:
            assert server.stdout is not None
            line = (await server.stdout.readline()).decode()
            url = line.split()[-1]
            headers = {"authorization": f"Bearer {TOKEN}"}
            async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=30) as http:
                yield RecordedServer(http, key, *await joined)
        finally:
            if server.returncode is None:
                server.terminate()
            await server.wait()
            harness.close()


async def post(server: RecordedServer) -> str:
    body = {"message": "@coder hello", "channel": "web", "sender": "Ann"}
    answer = (await server.http.post("/api/message", json=body)).raise_for_status()
    return answer.json()["messageId"]


async def publish(server: RecordedServer) -> None:
    headers = {"authorization": f"Bearer {server.key}"}
    body = {"body": {"hello": "world"}}
    path = "/v1/scopes/bench/queues/jobs/messages"
    (await server.http.post(path, json=body, headers=headers)).raise_for_status()


async def reply(server: RecordedServer, events: AsyncIterator[Any]) -> None:
    message_id = await post(server)
    async for event in events:
        if event.event == "response_ready" and json.loads(event.data)["messageId"] == message_id:
            return


async def measure(source: Path, tries: int) -> dict[str, list[Found]]:
    async def several(
        server: RecordedServer, act: Callable[[], Awaitable[Any]], what: str = "answer"
    ) -> list[Found]:
        return [await server.record(act, what) for _ in range(tries)]

    async with running(source, "api") as server:
        posted = await several(server, lambda: post(server))
        published = await several(server, lambda: publish(server))
    async with (
        running(source, "api,worker") as server,
        server.http.stream("GET", "/api/events/stream") as live,
    ):
        events = httpx2.EventSource(live).__aiter__()
        await anext(events)
        replied = await several(server, lambda: reply(server, events), "everything")
    return {
        "POST /api/message to its answer": posted,
        "publish over /v1": published,
        "POST to the live event of the reply": replied,
    }


def figures(tries: list[Found]) -> dict[str, int]:
    """Without the first try, which also fills caches."""
    return {kind: round(statistics.median(_count(one[kind]) for one in tries[1:])) for kind in KINDS}


def _count(found: int | list[str]) -> int:
    return found if isinstance(found, int) else len(found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench message_path", description=__doc__)
    parser.add_argument("--against", metavar="REV", help="another commit, measured the same way")
    parser.add_argument("--tries", type=int, default=6)
    parser.add_argument("--list", action="store_true", help="also the stops and statements of the last try")
    chosen = parser.parse_args()
    shown: dict[str, dict[str, list[Found]]] = {}
    for name in ([chosen.against] if chosen.against else []) + [None]:
        with sources(name) as source:
            shown[name or "now"] = asyncio.run(measure(source, chosen.tries))
    print(f"{'':<40}{'':>10}" + "".join(f"{kind:>12}" for kind in KINDS))
    for way in shown["now"]:
        for name, found in shown.items():
            counted = figures(found[way])
            print(f"{way:<40}{name:>10}" + "".join(f"{counted[kind]:>12}" for kind in KINDS))
    if chosen.list:
        for way, tries in shown["now"].items():
            print(f"\n{way}\n  " + "\n  ".join(tries[-1]["functions"]))
            print("  --\n  " + "\n  ".join(" ".join(each.split())[:150] for each in tries[-1]["statements"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
