"""The page about database servers, followed as it stands: from an office on SQLite to one on PostgreSQL."""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroom
from postroom import Message
from postroom.app.roles import ProcessRole, running
from postroom.kernel.ledger import Event
from tests.app.hosts import HostProcess
from tests.app.house_process import HouseProcess
from tests.conftest import postgres_url
from tests.object_store import object_store

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "scale-out.md"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[HouseProcess]:
    house = HouseProcess(tmp_path)
    yield house
    house.end()


def commands_of(heading: str, number: int = 1) -> list[str]:
    """The lines of a block of shell below a heading, without their remarks."""
    section = PAGE.read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    block = section.split("```sh\n")[number].split("```")[0]
    return [line.split("#")[0].strip() for line in block.splitlines()]


def follow(house: HouseProcess, url: str, line: str) -> None:
    for shown, meant in {
        "postgresql://me@db.example/postroom": shlex.quote(url),
        "~/.postroom": str(house.home.path),
        "POSTROOM_API_PORT=3778": "POSTROOM_API_PORT=0",
    }.items():
        line = line.replace(shown, meant)
    *variables, program = line.split("postroom ", 1)
    for word in " ".join(variables).split():
        name, _, value = word.partition("=")
        house.env[name] = value
    house.cli(*shlex.split(program))


def ask(house: HouseProcess, words: str) -> str:
    return house.cli("send", f"@coder {words}", "--wait").stdout


def read_store(url: str) -> tuple[dict[str, Message], dict[int, Event]]:
    with postroom.open_sync(url, housekeeping=False) as room:
        messages = room.messages(limit=1000, deliveries=True).messages
        return {message.id: message for message in messages}, {each.seq: each for each in room.events()}


def test_an_office_moves_to_postgresql_by_the_page_and_loses_nothing(
    house: HouseProcess, tmp_path: Path
) -> None:
    url = postgres_url(tmp_path)
    house.start()
    for words in ("one please", "two please"):
        assert "I have read your message" in ask(house, words)
    for line in commands_of("From SQLite to a server"):
        follow(house, url, line)
    assert "I have read your message" in ask(house, "three please")
    assert json.loads(house.cli("ledger", "verify", "--json").stdout)["ok"]
    house.cli("stop")
    (messages, events), (moved, told) = read_store(str(house.home.path / "postroom.db")), read_store(url)
    assert len(messages) >= 4
    assert {message_id: moved[message_id] for message_id in messages} == messages
    assert {seq: told[seq] for seq in events} == events
    assert len(told) > len(events)


def test_a_second_host_joins_by_the_page(house: HouseProcess, tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    house.cli("settings", "set", "store.url", url)
    house.start()
    assert "I have read your message" in ask(house, "one please")
    other = HostProcess(tmp_path, "b")
    try:
        with object_store() as bucket:
            for host in (house, other):
                host.env |= {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
            house.cli("stop")
            house.start()
            for line in commands_of("Several hosts"):
                follow(house, url, line.replace("s3://bucket", bucket))
            token = {"POSTROOM_TOKEN": house.home.token.read_text().strip()}
            join, *others = commands_of("Several hosts", 2)
            other.env |= token
            follow(other, url, join)
            del other.env["POSTROOM_TOKEN"]
            for line in others:
                follow(other, url, line)
            assert "I have read your message" in ask(other, "two please")
            agents = json.loads(house.cli("agent", "list", "--json").stdout)
            assert agents["coder"]["host"] == other.home.host
            findings = json.loads(house.cli("doctor", "--json", check=False).stdout)["findings"]
            assert [each["text"] for each in findings if each["about"] == "files"] == [f"{bucket}/office"]
    finally:
        other.end()


@pytest.mark.slow
def test_several_processes_start_by_the_page(house: HouseProcess, tmp_path: Path) -> None:
    url = postgres_url(tmp_path)
    house.cli("settings", "set", "store.url", url)
    for line in commands_of("Several processes"):
        follow(house, url, line)
    roles = [role for found in running(house.home.run) for role in found.roles]
    assert {role: roles.count(role) for role in roles} == {
        ProcessRole.API: 2,
        ProcessRole.HOUSEKEEPING: 2,
        ProcessRole.WORKER: 2,
        ProcessRole.CHANNELS: 1,
    }
    before = sorted((tuple(found.roles), found.url) for found in running(house.home.run))
    house.env.pop("POSTROOM_API_PORT")
    house.cli("restart")
    assert sorted((tuple(found.roles), found.url) for found in running(house.home.run)) == before
    assert "I have read your message" in ask(house, "one please")
    house.cli("stop")
    assert running(house.home.run) == []
