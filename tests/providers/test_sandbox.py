"""A program in a sandbox reaches what is its own, and nothing else, and ends with its turn, whatever it does.

Real programs in real sandboxes: bubblewrap where it is installed and may make namespaces, and Landlock.
"""

import asyncio
import json
import os
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from postroom.providers import (
    Cause,
    ErrorKind,
    Permissions,
    Provider,
    SessionStarted,
    TurnLimits,
    TurnRequest,
)
from postroom.providers import sandbox as sandboxes
from postroom.providers.bubblewrap import find_bubblewrap
from postroom.providers.claude import Claude
from postroom.providers.codex import Codex
from postroom.providers.landlock import SIGNALS_ABI, Landlock, find_landlock
from postroom.providers.minder import process_table
from postroom.providers.opencode import OpenCode
from postroom.providers.protocol import Sandbox, SandboxMode
from postroom.providers.sandbox import Confinement
from tests.loopback import serving
from tests.providers.conftest import FAKES, LIMITS, Office, tell, until

SECRET = "known to its owner alone"
# The last one: links and moves across what is open.
REFUSED = ("refused: PermissionError", "refused: FileNotFoundError", "refused: OSError")


@pytest.fixture(params=["bubblewrap", "Landlock"])
def confinement(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Confinement:
    found = find_bubblewrap() if request.param == "bubblewrap" else find_landlock()
    if isinstance(found, str):
        pytest.skip(found)
    monkeypatch.setattr(sandboxes, "find_confinements", lambda: ((found,), ()))
    return found


@dataclass
class Premises:
    """A room's folder with its secrets, and the folders of two agents."""

    home: Path
    own: Path
    other: Path
    user: Path
    program: Path

    @property
    def sandbox(self) -> Sandbox:
        return Sandbox(
            mode=SandboxMode.REQUIRED,
            readable=(self.home / "files", FAKES),
            hidden=(self.home, self.other),
        )

    def request(self, *orders: tuple[str, Any], **fields: Any) -> TurnRequest:
        fields = {"sandbox": self.sandbox, "limits": LIMITS, **fields}
        return TurnRequest(agent_id="coder", prompt=json.dumps(orders), workspace=self.own, **fields)

    @property
    def provider(self) -> Provider:
        path = f"{self.program.parent}:/usr/bin:/bin"
        return Claude(parent={"PATH": path, "HOME": str(self.user), "LANG": "C.UTF-8"})

    async def obey(self, *orders: tuple[str, Any], **fields: Any) -> list[Any]:
        return json.loads((await tell(self.provider, self.request(*orders, **fields))).answer)


@pytest.fixture
def premises(tmp_path: Path) -> Premises:
    home, user, workspace = tmp_path / "room", tmp_path / "user", tmp_path / "workspace"
    for path in ("token", "settings.json", "postroom.db", "run/tools/other.json", "files/letter.txt"):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(SECRET)
    for path in (user / ".ssh/id", user / ".codex/auth.json", workspace / "other/memory/diary.md"):
        path.parent.mkdir(parents=True)
        path.write_text(SECRET)
    own = workspace / "own"
    own.mkdir()
    (own / "notes.md").write_text("mine")
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -IS\n" + (FAKES / "hostile.py").read_text())
    program.chmod(0o755)
    return Premises(home, own, workspace / "other", user, program)


def find_marked(mark: str) -> list[int]:
    """Living processes that have this among their arguments, by their numbers outside."""
    children, dead = process_table()
    found = []
    for pid in {each for some in children.values() for each in some} - dead:
        with suppress(OSError):
            if mark in _arguments_of(pid):
                found.append(pid)
    return found


def _arguments_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


@pytest.fixture
def mark() -> Iterator[str]:
    text = f"hostile-{uuid.uuid4().hex}"
    yield text
    for pid in find_marked(text):
        os.kill(pid, signal.SIGKILL)


async def test_what_is_the_agents_own_is_open(confinement: Confinement, premises: Premises) -> None:
    done = await premises.obey(
        ("read", "notes.md"),
        ("write", "new.md"),
        ("read", str(premises.home / "files/letter.txt")),
        ("write", str(premises.user / ".claude/session")),
        ("read", "/etc/passwd"),
        ("write", f"{os.devnull}"),
    )
    assert done[:4] == ["mine", "written", SECRET, "written"]
    assert done[4].startswith("root:")
    assert (premises.own / "new.md").read_text() == "hostile"
    assert (premises.user / ".claude/session").read_text() == "hostile", "it is there for the next turn"


@pytest.mark.parametrize(
    "order", ["read", "read_by_symlink", "read_by_hard_link", "move_away", "delete", "write", "look"]
)
async def test_secrets_of_the_room_of_other_agents_and_of_the_person_are_closed(
    confinement: Confinement, premises: Premises, order: str
) -> None:
    secrets = [
        premises.home / "token",
        premises.home / "settings.json",
        premises.home / "postroom.db",
        premises.home / "run/tools/other.json",
        premises.other / "memory/diary.md",
        premises.user / ".ssh/id",
        premises.user / ".codex/auth.json",
    ]
    about = [path.parent if order == "look" else path for path in secrets]
    # One turn each: the names of links are the same.
    for path in about:
        [done] = await premises.obey((order, str(path)))
        if order == "look" and path == premises.home:
            # With bubblewrap the folder is there, with what of it is open.
            assert done == ["files"] or done in REFUSED
        elif order == "write" and confinement.name == "bubblewrap":
            # It may write into what stands around its own folders, and is gone with the turn.
            assert done == "written" or done in REFUSED
        else:
            assert done in REFUSED, (path, done)
    assert all(path.read_text() == SECRET for path in secrets)


async def test_what_may_be_read_may_not_be_changed(confinement: Confinement, premises: Premises) -> None:
    (premises.user / ".claude").mkdir()
    (premises.user / ".claude/settings.json").write_text("{}")
    done = await premises.obey(
        ("write", str(premises.home / "files/letter.txt")),
        ("delete", str(premises.home / "files/letter.txt")),
        ("write", "/etc/hostile"),
        ("write", "/usr/bin/hostile"),
    )
    assert all(each.startswith("refused: ") for each in done)
    assert (premises.home / "files/letter.txt").read_text() == SECRET


async def test_an_agent_that_may_only_read_cannot_write_in_its_own_folder(
    confinement: Confinement, premises: Premises
) -> None:
    orders = (("read", "notes.md"), ("write", "new.md"), ("write", "notes.md"))
    done = await premises.obey(*orders, permissions=Permissions.READ)
    assert done[0] == "mine"
    assert all(each.startswith("refused: ") for each in done[1:])
    assert (premises.own / "notes.md").read_text() == "mine"


async def test_processes_outside_give_nothing_away(confinement: Confinement, premises: Premises) -> None:
    names = ("environ", "root/etc/passwd", "cwd/notes.md", "fd/0", "mem")
    done = await premises.obey(*(("read_of_parent", name) for name in names))
    if confinement.name == "bubblewrap":
        # Its parent is the first process inside, and holds nothing that it does not see itself.
        assert "POSTROOM_TOKEN" not in done[0]
    else:
        assert all(each.startswith("refused: ") for each in done), done


@pytest.fixture
def outside() -> Iterator[Path]:
    """A file in the machine's folder for temporary files."""
    handle, name = tempfile.mkstemp(dir="/tmp")
    os.write(handle, SECRET.encode())
    os.close(handle)
    yield Path(name)
    os.unlink(name)


async def test_temporary_files_are_the_turns_own(
    confinement: Confinement, premises: Premises, outside: Path
) -> None:
    [read, wrote] = await premises.obey(("read", str(outside)), ("write", f"{outside}.inside"))
    assert read in REFUSED
    assert wrote == "written" if confinement.name == "bubblewrap" else wrote in REFUSED
    assert not outside.with_suffix(".inside").exists()


async def test_the_network_is_open_for_the_model_is_behind_it(
    confinement: Confinement, premises: Premises
) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass

    async with serving(hang_up) as port:
        assert await premises.obey(("connect", port)) == ["connected"]


async def test_a_daemon_that_kills_its_minder_and_empties_its_environment_ends_with_the_turn(
    confinement: Confinement, premises: Premises, mark: str
) -> None:
    provider = premises.provider
    orders = (("leave_daemon", mark), ("kill_parent", None), ("write", "killed"), ("hang", None))
    events = provider.run(premises.request(*orders))
    async for event in events:
        if isinstance(event, SessionStarted):
            break
    await until(lambda: (premises.own / "killed").exists() and len(find_marked(mark)) == 1)
    await events.aclose()
    assert find_marked(mark) == []


async def test_a_daemon_ends_with_its_program(
    confinement: Confinement, premises: Premises, mark: str
) -> None:
    assert await premises.obey(("leave_daemon", mark), ("kill_parent", None)) in (
        ["left", "sent"],
        ["left", "refused: PermissionError"],
    )
    assert find_marked(mark) == []


async def test_everything_ends_when_the_minder_is_killed_from_outside(
    confinement: Confinement, premises: Premises, mark: str
) -> None:
    """With Landlock the office itself ends what has the turn's mark; the namespace needs nobody."""
    if confinement.name != "bubblewrap":
        pytest.skip("a daemon without the mark is found only through its minder")
    telling = asyncio.create_task(
        tell(premises.provider, premises.request(("leave_daemon", mark), ("hang", None)))
    )
    await until(lambda: len(find_marked(mark)) == 1)
    [minder] = [pid for pid in process_table()[0][os.getpid()] if str(premises.own) in _arguments_of(pid)]
    os.kill(minder, signal.SIGKILL)
    await until(lambda: find_marked(mark) == [])
    assert (await telling).failed.kind is ErrorKind.CRASHED


async def test_a_folder_of_the_room_inside_of_the_workspace_stays_closed(premises: Premises) -> None:
    """As when somebody lets an agent work in the whole home folder."""
    found = find_bubblewrap()
    if isinstance(found, str):
        pytest.skip(found)
    inside = premises.own / ".postroom"
    (inside / "files").mkdir(parents=True)
    (inside / "token").write_text(SECRET)
    (inside / "files/letter.txt").write_text("for the agent")
    own = Sandbox(mode=SandboxMode.REQUIRED, readable=(inside / "files",), hidden=(inside,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sandboxes, "find_confinements", lambda: ((found,), ()))
        done = await premises.obey(
            ("read", ".postroom/token"), ("read", ".postroom/files/letter.txt"), ("look", "."), sandbox=own
        )
    assert done[:2] == ["refused: FileNotFoundError", "for the agent"]
    assert ".postroom" in done[2]


async def test_a_sandbox_that_cannot_keep_what_is_required_is_none(
    premises: Premises, monkeypatch: pytest.MonkeyPatch
) -> None:
    landlock = find_landlock()
    if isinstance(landlock, str):
        pytest.skip(landlock)
    inside = premises.own / "room"
    inside.mkdir()
    own = Sandbox(mode=SandboxMode.REQUIRED, hidden=(inside,))
    monkeypatch.setattr(sandboxes, "find_confinements", lambda: ((landlock,), ("no bubblewrap",)))
    failed = (await tell(premises.provider, premises.request(("write", "new.md"), sandbox=own))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.SANDBOX)
    assert f"cannot close {inside}" in failed.detail
    assert not (premises.own / "new.md").exists()
    old = Landlock(SIGNALS_ABI - 1)
    monkeypatch.setattr(sandboxes, "find_confinements", lambda: ((old,), ()))
    failed = (await tell(premises.provider, premises.request(("write", "new.md")))).failed
    assert "before Linux 6.12" in failed.detail


async def test_where_there_is_no_sandbox_one_that_is_required_is_refused_in_clear_words(
    premises: Premises, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "find_confinements", lambda: ((), ("no bubblewrap", "no Landlock")))
    failed = (await tell(premises.provider, premises.request(("write", "new.md")))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.SANDBOX)
    assert "no bubblewrap; no Landlock" in failed.message
    assert "postroom doctor --security" in failed.message
    assert not (premises.own / "new.md").exists(), "the program was never started"
    auto = Sandbox(mode=SandboxMode.AUTO)
    assert await premises.obey(("write", "new.md"), sandbox=auto) == ["written"]


async def test_a_sandbox_that_fails_at_the_start_is_said_to_be_the_fault(
    premises: Premises, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postroom.providers.bubblewrap import Bubblewrap

    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: Creating new namespace failed: No space left' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sandboxes, "find_confinements", lambda: ((Bubblewrap(str(broken)),), ()))
    failed = (await tell(premises.provider, premises.request(("write", "new.md")))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.SANDBOX)
    assert "No space left" in failed.message


def test_bubblewrap_that_may_make_no_namespaces_is_not_used(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    found = find_bubblewrap(str(tmp_path))
    assert isinstance(found, str)
    assert "No permissions" in found
    assert "apt install bubblewrap" in str(find_bubblewrap(str(tmp_path / "nowhere")))


PROGRAMS: dict[str, Callable[..., Provider]] = {"claude": Claude, "codex": Codex, "opencode": OpenCode}


@pytest.fixture(params=sorted(PROGRAMS))
def provider(request: pytest.FixtureRequest, office: Office) -> Provider:
    return PROGRAMS[request.param](parent=office.parent)


def confined(office: Office, **fields: Any) -> TurnRequest:
    box = Sandbox(mode=SandboxMode.REQUIRED, readable=(FAKES,), writable=(office.state,))
    model = "vendor/m" if fields.pop("program", "") == "opencode" else ""
    return office.request(sandbox=box, model=model, **fields)


async def test_every_program_answers_and_goes_on_in_a_sandbox(
    confinement: Confinement, provider: Provider, office: Office
) -> None:
    first = await tell(provider, confined(office, system_prompt="be nice " * 20_000))
    assert first.answer == "final text"
    second = await tell(provider, confined(office, session_id=first.session))
    assert (second.answer, second.session) == ("final text", first.session)


async def test_a_program_in_a_sandbox_is_asked_to_end_before_it_is_killed(
    confinement: Confinement, office: Office
) -> None:
    """The fake exits with 143 when it is asked; the sandbox around it must not take it down before."""
    request = confined(office, fake="hang", limits=TurnLimits(wall_clock=600, idle=1.0, term=60))
    told = await tell(Claude(parent=office.parent), request)
    assert (told.failed.kind, told.failed.cause) == (ErrorKind.TIMED_OUT, Cause.IDLE)


@pytest.mark.parametrize("fake", ["hang ignore-term", "silent ignore-term"])
async def test_a_program_in_a_sandbox_that_is_deaf_is_killed(
    confinement: Confinement, office: Office, fake: str
) -> None:
    request = confined(office, fake=fake, limits=TurnLimits(wall_clock=600, idle=1.0, term=0.2))
    assert (await tell(Claude(parent=office.parent), request)).failed.kind is ErrorKind.TIMED_OUT


async def test_a_signal_inside_is_told_as_one(confinement: Confinement, office: Office) -> None:
    failed = (await tell(Claude(parent=office.parent), confined(office, fake="killed"))).failed
    assert "signal 9" in failed.message
