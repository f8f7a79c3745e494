"""A new channel is one folder or one entry point; nothing else changes."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import pytest

from postroom.channels import kinds
from postroom.channels.capabilities import Capabilities
from postroom.channels.channel import Channel, EnvelopeStore
from postroom.channels.kinds import ChannelKind
from postroom.channels.model import Address, Envelope, Piece, ReceivedMessage
from postroom.testing import Person
from tests.acceptance.office import until
from tests.channels.chat_platforms import ChatPlatform, open_chat_office


class PaperChannel(Channel):
    """Reads lines of a file, and writes answers into another."""

    capabilities: ClassVar[Capabilities] = Capabilities(text_limit=500)

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._inbox: asyncio.Queue[str] = options["inbox"]
        self._answers: list[str] = options["answers"]

    async def receive(self, store: EnvelopeStore) -> None:
        while True:
            line = await self._inbox.get()
            await store([Envelope(line.partition(" ")[0], line)])

    def read(self, envelope: Envelope) -> ReceivedMessage | None:
        number, _, text = envelope.raw.partition(" ")
        return ReceivedMessage(message_id=number, chat="ann", sender_id="ann", sender="Ann", text=text)

    async def send(self, address: Address, piece: Piece, key: str, file: BinaryIO | None) -> str:
        self._answers.append(piece.text.plain())
        return key


async def test_a_new_channel_is_one_kind_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = ChannelKind(
        platform="paper", label="Paper", capabilities=PaperChannel.capabilities, build=PaperChannel
    )

    class Point:
        def load(self) -> ChannelKind:
            return kind

    monkeypatch.setattr(kinds, "entry_points", lambda group: [Point()])
    inbox: asyncio.Queue[str] = asyncio.Queue()
    answers: list[str] = []
    platform = ChatPlatform(
        name="paper",
        make=lambda clock: None,
        options=lambda fake: {"inbox": inbox, "answers": answers},
        people=(Person("ann", "Ann"), Person("bob", "Bob")),
        sends="",
    )
    async with open_chat_office(tmp_path, platform, None, lambda request: "hello, Ann") as office:
        await office.pairings.admit("paper", "ann", "Ann")
        [waiting] = await office.pairings.waiting()
        await office.pairings.approve(waiting.code)
        for line in ("1 hello", "1 hello", "2 /agent"):
            inbox.put_nowait(line)

        await until(lambda: len(answers) >= 2)
        assert sum("hello, Ann" in answer for answer in answers) == 1
        assert any("@coder - Coder" in answer for answer in answers)
