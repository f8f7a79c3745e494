"""Two hosts of one office, each a network namespace with a home of its own; the database server and the
object store are on a third. Nothing else is shared.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2

from postroom.app.home import Home
from postroom.app.roles import Running, running
from postroom.testing import FakeTelegram, Person
from tests.acceptance.office import until

BUCKET = "office-files"
PORT = 3777
AGENTS = ("lead", "coder", "reviewer")
# What a conversation named by its number brings its person.
ANSWERS = ("I ask both about {}.", "Fixed {}.", "Read {}.", "All is well with {}.")
SCRIPT = {
    "pace": 1.0,
    "rules": [
        {"agent": "lead", "match": r"finished (?P<n>\w+)", "reply": "All is well with $n."},
        {
            "agent": "lead",
            "match": r"file (?P<n>\w+).*\[file: (?P<path>[^\]]+)\]",
            "reply": "I have the file of $n.",
            "hand_off": {"reviewer": "look $n at [file: $path]"},
        },
        {
            "agent": "reviewer",
            "match": r"look (?P<n>\w+) at \[file: (?P<path>[^\]]+)\]",
            "reply": "This is the file of $n: [send_file: $path]",
        },
        {
            "agent": "lead",
            "match": r"login (?P<n>\w+)",
            "seconds": 0.2,
            "reply": "I ask both about $n.",
            "hand_off": {"coder": "fix $n", "reviewer": "read $n"},
        },
        {
            "agent": "coder",
            "match": r"fix (?P<n>\w+)",
            "seconds": 2.0,
            "reply": "Fixed $n. [send_file: fix.txt]",
            "hand_off": {"lead": "finished $n"},
        },
        {"agent": "reviewer", "match": r"read (?P<n>\w+)", "seconds": 0.5, "reply": "Read $n."},
    ],
}


class OfficeHost:
    """A machine: its namespace, its address, its home."""

    def __init__(self, folder: Path, namespace: str, address: str, environment: dict[str, str]) -> None:
        self.namespace = namespace
        self.address = address
        self.folder = folder
        self.home = Home(folder / "home")
        self.home.path.mkdir(parents=True)
        (self.home.path / "script.json").write_text(json.dumps(SCRIPT))
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("POSTROOM", "AWS_"))
        }
        self.env = {
            **inherited,
            **environment,
            "POSTROOM_HOME": str(self.home.path),
            "POSTROOM_HOST": address,
            "POSTROOM_API_PORT": str(PORT),
            "POSTROOM_REMOTE": "1",
        }
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"http://{self.address}:{PORT}"

    @property
    def token(self) -> str:
        return self.home.token.read_text().strip()

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def _command(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, sys.executable, "-m", "postroom", *words]

    def cli(self, *words: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self._command(*words),
            env=self.env,
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self.cli(*words, "--json").stdout)

    def start(self, roles: str) -> None:
        with (self.folder / "process.out").open("ab") as output:
            self._processes.append(
                subprocess.Popen(
                    self._command("start", "--foreground", "--roles", roles),
                    env=self.env,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
            )

    def list_ready(self) -> list[Running]:
        for process in self._processes:
            assert process.poll() is None, (self.folder / "process.out").read_text()[-2000:]
        return [each for each in running(self.home.run) if each.version]

    async def ready(self, processes: int = 1) -> None:
        await until(lambda: len(self.list_ready()) >= processes, within=120)

    def copies(self, name: str) -> list[bytes]:
        """What of a file is on the disk of this host."""
        return [path.read_bytes() for path in (self.home.path / "files").rglob(f"*{name}")]

    def read_log(self) -> str:
        return "".join(file.read_text() for file in sorted(self.home.logs.glob("*.log*")))

    def end(self) -> None:
        for found in running(self.home.run):
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, 9)
        for process in self._processes:
            process.kill()
            process.wait(120)


@contextlib.contextmanager
def object_server(namespace: str, address: str) -> Iterator[dict[str, str]]:
    """An object store on a host, and the environment by which others reach it."""
    program = Path(sys.executable).with_name("moto_server")
    url = f"http://{address}:5000"
    server = subprocess.Popen(
        ["ip", "netns", "exec", namespace, str(program), "-H", address, "-p", "5000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        transport = httpx2.HTTPTransport(retries=20)
        with httpx2.Client(transport=transport, timeout=60) as http:
            for _ in range(600):
                with contextlib.suppress(httpx2.TransportError):
                    http.put(f"{url}/{BUCKET}").raise_for_status()
                    break
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
    finally:
        server.kill()
        server.wait(60)


@contextlib.asynccontextmanager
async def reachable(telegram: FakeTelegram, address: str) -> AsyncIterator[str]:
    """The fake listens on loopback, which hosts of their own do not see: this leads there."""

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            inner, outer = await asyncio.open_connection("127.0.0.1", telegram.port)
            await asyncio.gather(pipe(reader, outer), pipe(inner, writer), return_exceptions=True)

    server = await asyncio.start_server(connect, address, 0)
    try:
        yield f"http://{address}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def settings(store: str, telegram: FakeTelegram, telegram_url: str, work: Path) -> dict[str, Any]:
    """As whoever has moved an office to a server and to an object store has them, on the first host."""
    return {
        "workspace": {"path": str(work)},
        "agents": {name: {"name": name, "provider": "script", "model": ""} for name in AGENTS},
        "teams": {"dev": {"name": "Dev", "agents": list(AGENTS), "leader_agent": "lead"}},
        "channels": {
            "enabled": ["telegram"],
            "telegram": {"bot_token": telegram.token, "base_url": telegram_url},
        },
        "limits": {"lease_s": 3},
        "guards": {"attempts": 20, "crashes": 20},
        "monitoring": {"heartbeat_interval": 0},
        "files": {"url": f"s3://{BUCKET}/files"},
        "store": {"url": store},
    }


async def pair(host: OfficeHost, telegram: FakeTelegram, person: Person) -> None:
    await telegram.write(person, "hello?")
    await until(lambda: telegram.transcript.select("pairing code", chat=person.id), within=120)
    [said] = telegram.transcript.select("pairing code", chat=person.id)
    code = said.text.split("pairing code: ")[1].split()[0]
    async with httpx2.AsyncClient(base_url=host.url, headers=host.headers, timeout=60) as http:
        answer = await http.post("/api/pairing/approve", json={"code": code})
        assert answer.is_success, answer.text


def received(telegram: FakeTelegram, person: Person, name: str) -> list[int]:
    """How often each answer of a conversation reached its person."""
    texts = telegram.transcript.texts(person.id)
    return [sum(answer.format(name) in text for text in texts) for answer in ANSWERS]
