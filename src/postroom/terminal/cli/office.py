"""What the commands about the office share: one question to it, answered and shown."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

from postroom.terminal.cli.connection import OfficeClient, connected

T = TypeVar("T")


def ask(question: Callable[[OfficeClient], Awaitable[T]]) -> T:
    """The house that runs answers; where none runs, the same in this process."""

    async def asked() -> T:
        async with connected() as office:
            return await question(office)

    return asyncio.run(asked())


def part(name: str) -> str:
    """A name as part of an address."""
    return quote(name, safe="")
