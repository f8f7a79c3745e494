"""The fakes first in PATH, a workspace, and helpers to run a turn and to see what it left."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import ManualClock
from postroom.providers import (
    Failed,
    Finished,
    Provider,
    SessionStarted,
    TextChunk,
    TurnEvent,
    TurnLimits,
    TurnRequest,
    Usage,
)

FAKES = Path(__file__).parent / "fakes"
LIMITS = TurnLimits(wall_clock=200, idle=100, grace=60, term=0.2)


@dataclass
class Told:
    """The events of one turn, sorted."""

    events: list[TurnEvent] = field(default_factory=list)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def verdict(self) -> Finished | Failed:
        verdicts = self.of(Finished) + self.of(Failed)
        assert len(verdicts) == 1, self.events
        assert self.events[-1] is verdicts[0]
        return verdicts[0]

    @property
    def answer(self) -> str:
        assert isinstance(self.verdict, Finished), self.verdict
        return self.verdict.text

    @property
    def failed(self) -> Failed:
        assert isinstance(self.verdict, Failed), self.verdict
        return self.verdict

    @property
    def session(self) -> str:
        return self.of(SessionStarted)[0].session_id

    @property
    def usage(self) -> Usage:
        assert len(self.of(Usage)) == 1, self.events
        return self.of(Usage)[0]

    @property
    def parts(self) -> list[str]:
        """The texts as a reader would see them, put together from their chunks."""
        whole: dict[int, str] = {}
        for chunk in self.of(TextChunk):
            whole[chunk.part] = whole.get(chunk.part, "") + chunk.text
        return list(whole.values())


async def tell(provider: Provider, request: TurnRequest) -> Told:
    told = Told()
    async with aclosing(provider.run(request)) as events:
        async for event in events:
            told.events.append(event)
    return told


@dataclass
class Office:
    """Where the fakes work: `parent` is the environment of the daemon."""

    workspace: Path
    state: Path
    parent: dict[str, str]

    def request(self, prompt: str = "hello", *, fake: str = "", **fields: Any) -> TurnRequest:
        environment = {"FAKE": fake, "FAKE_STATE": str(self.state), **fields.pop("environment", {})}
        limits = fields.pop("limits", LIMITS)
        return TurnRequest(
            agent_id=fields.pop("agent_id", "coder"),
            prompt=prompt,
            workspace=fields.pop("workspace", self.workspace),
            environment=environment,
            limits=limits,
            **fields,
        )

    def calls(self, program: str) -> list[dict[str, Any]]:
        path = self.state / f"{program}.calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def left(self) -> list[int]:
        path = self.state / "left"
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    def living(self) -> list[int]:
        return [pid for pid in self.left() if is_alive(pid)]


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    programs, workspace, state, home = (tmp_path / name for name in ("bin", "workspace", "state", "home"))
    for folder in (programs, workspace, state, home):
        folder.mkdir()
    for name in ("claude", "codex", "opencode"):
        program = programs / name
        source = f"import sys; sys.path.insert(0, {str(FAKES)!r}); sys.argv[0] = {name!r}\n"
        program.write_text(
            f"#!{sys.executable} -IS\n{source}import runpy\nrunpy.run_path({str(FAKES / name)!r} + '.py', "
            "run_name='__main__')\n"
        )
        program.chmod(0o755)
    parent = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
    office = Office(workspace, state, parent)
    yield office
    for pid in office.living():
        with suppress(ProcessLookupError):
            os.kill(pid, 9)


@pytest.fixture
def still() -> ManualClock:
    """Stands at 2027-01-15T08:00:00Z."""
    return ManualClock()


Make = Callable[..., Provider]
