"""On every platform a stranger's message costs no disk, no model call, and one reply at most."""

from pathlib import Path
from typing import Any

import pytest

from postroom.clock import SystemClock
from postroom.kernel.states import Change
from postroom.providers.protocol import TurnRequest
from postroom.testing import Attachment, HeldClock
from tests.channels.chat_platforms import PLATFORMS, open_chat_office

SECRET = "the words of a stranger"
CONTENT = "the file of a stranger"


def echo(request: TurnRequest) -> str:
    return f"echo: {request.prompt}"


# One of each kind of transport is always tried.
ALWAYS = ("telegram", "discord", "webhook")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow) for name in PLATFORMS]
)
async def test_a_stranger_costs_one_reply_and_nothing_else(name: str, tmp_path: Path) -> None:
    platform = PLATFORMS[name]
    async with (
        platform.make(HeldClock(SystemClock().now())) as fake,
        open_chat_office(tmp_path, platform, fake, echo) as office,
    ):
        await office.pair(office.ann)
        await office.write("before")
        await office.hear("echo: before")
        await office.write(SECRET, office.bob)
        await office.hear("pairing code", 2)
        pairings, head = await office.room.document_changes("pairing"), (await office.room.head()).seq
        for number in range(3):
            file = Attachment(f"file{number}.txt", CONTENT.encode(), "text/plain")
            await office.write(f"{SECRET} {number}", office.bob, files=[file])
        # What came later is answered, so what came before was looked at.
        await office.write("after")
        await office.hear("echo: after")

        assert [each.prompt for each in office.puppet.asked] == ["before", "after"]
        assert len(fake.transcript.select("pairing code")) == 2
        assert await office.room.document_changes("pairing") == pairings
        stored: list[Any] = []
        async for event in office.room.events(head):
            if event.type == Change.PUBLISHED and event.message_id is not None:
                stored.append(await office.room.get(event.message_id))
        assert not [message for message in stored if message.sender_id == office.bob.id]
        assert not [message for message in stored if SECRET in str(message.body)]
    assert find_files_with(tmp_path, SECRET) == find_files_with(tmp_path, CONTENT) == []


def find_files_with(folder: Path, words: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if words.encode() in path.read_bytes()]
