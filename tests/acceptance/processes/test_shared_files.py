"""A file that came in at one host is read by an agent on another, whose file leaves from a third."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.office.agent_hosts import AgentHosts
from postroom.office.files import FileProblem, FileRefused
from postroom.office.lanes import turn_runner
from postroom.office.message_files import FilesAway, MessageFiles
from postroom.providers.protocol import TurnRequest
from tests.acceptance.office import Puppet, Staffed, opened, text, until
from tests.conftest import postgres_url
from tests.object_store import object_store

AGENTS = {name: {"name": name, "provider": "puppet", "model": ""} for name in ("lead", "coder")}
TEAMS = {"dev": {"name": "Dev", "agents": ["lead", "coder"], "leader_agent": "lead"}}


def work(request: TurnRequest) -> str:
    """The leader hands on what it was given; the coder reads it, and answers with what it made of it."""
    path = Path(request.prompt.partition("[file: ")[2].partition("]")[0] or "none")
    if request.agent_id == "lead":
        return f"[@coder: please look at [file: {path}] and say what is in it]"
    made = request.workspace / "my report.txt"
    made.write_text(f"It says: {path.read_text() if path.exists() else 'nothing'}")
    return f"Here it is: [send_file: {made}]"


@pytest.fixture(params=["folder", "objects"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        if request.param == "folder":
            yield str(tmp_path / "shared")
        else:
            yield f"{stack.enter_context(object_store())}/{tmp_path.name}"


@pytest.fixture
async def hosts(place: str, tmp_path: Path) -> AsyncIterator[list[Staffed]]:
    """One that takes messages in, and one for each agent."""
    url = postgres_url(tmp_path)
    async with AsyncExitStack() as stack:
        rooms = [
            await stack.enter_async_context(postroom.open(url, actor=name, housekeeping=False))
            for name in ("entrance", "one", "two")
        ]
        options: dict[str, Any] = {"agents": AGENTS, "teams": TEAMS, "files": {"url": place}}
        await AgentHosts(rooms[0]).move("lead", "one")
        await AgentHosts(rooms[0]).move("coder", "two")
        yield [
            await stack.enter_async_context(
                opened(
                    room,
                    tmp_path / room.actor,
                    puppets={"puppet": Puppet(work)},
                    host=room.actor,
                    start=room.actor != "entrance",
                    **options,
                )
            )
            for room in rooms
        ]


def put(files: MessageFiles, data: bytes, name: str) -> str:
    with files.receiving("", name) as taken:
        taken.write(data)
    return taken.ref


def read(files: MessageFiles, ref: str) -> bytes:
    with files.open(ref) as (_, file):
        return file.read()


async def test_a_file_goes_from_host_to_host_and_its_answer_back(hosts: list[Staffed]) -> None:
    entrance = hosts[0]
    ref = await asyncio.to_thread(put, entrance.office.files, b"the harbour is closed", "a plan.txt")
    await entrance.write("@dev what is this?", files=(ref,))
    replies = await entrance.replies(2)
    [answer] = [each for each in replies if each.agent == "coder"]
    assert [Path(name).name for name in answer.files] == ["my report.txt"]
    said = await asyncio.to_thread(read, entrance.office.files, answer.files[0])
    assert said == b"It says: the harbour is closed"
    notes = [each for each in await entrance.quiet() if each.message_type == "office.note"]
    assert [each.files for each in notes] == [[ref]]
    assert all(str(host.folder) not in text(each) for each in (*notes, *replies) for host in hosts)


async def test_a_turn_waits_for_files_that_are_away_and_its_answer_too(
    hosts: list[Staffed], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turn_runner, "AWAY_S", 0.01)
    entrance, _, coder = hosts
    files: Any = coder.office.files
    fetch, receiving = files.fetch, files.receiving
    away: set[str] = {"fetch", "receiving"}

    def fetch_now(ref: str) -> Path:
        if "fetch" in away:
            raise FilesAway(reason="it is away")
        return fetch(ref)

    def receive_now(*args: Any, **options: Any) -> Any:
        if "receiving" in away:
            raise FilesAway(reason="it is away")
        return receiving(*args, **options)

    monkeypatch.setattr(files, "fetch", fetch_now)
    monkeypatch.setattr(files, "receiving", receive_now)
    ref = await asyncio.to_thread(put, entrance.office.files, b"closed", "plan.txt")
    await entrance.write("@coder look", files=(ref,))
    await until(lambda: caplog.text.count("the turn of @coder waits") > 2)
    away.discard("fetch")
    report = coder.workspace("coder") / "my report.txt"
    await until(report.exists)
    seen = caplog.text.count("the turn of @coder waits")
    await until(lambda: caplog.text.count("the turn of @coder waits") > seen + 2)
    away.clear()
    [answer] = await entrance.replies(1)
    assert await asyncio.to_thread(read, entrance.office.files, answer.files[0]) == b"It says: closed"
    assert (await entrance.quiet())[0].attempts == 1


async def test_a_file_that_is_gone_does_not_keep_its_message_from_being_answered(
    hosts: list[Staffed], caplog: pytest.LogCaptureFixture
) -> None:
    entrance = hosts[0]
    ref = await asyncio.to_thread(put, entrance.office.files, b"closed", "plan.txt")
    await asyncio.to_thread(entrance.office.files.forget, [ref])
    await entrance.write("@lead look", files=(ref,))
    [reply] = [each for each in await entrance.replies(2) if each.agent == "lead"]
    assert ref in text(reply), "the agent was told its name"
    with pytest.raises(FileRefused) as refused:
        await asyncio.to_thread(entrance.office.files.check, ref)
    assert refused.value.why is FileProblem.MISSING
