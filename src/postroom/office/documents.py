"""Working with documents: reading them, however many there are, and changing them with others about."""

import asyncio
import contextlib
import secrets
import string
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from postroom.errors import DocumentChanged
from postroom.kernel.model import Document
from postroom.office.ports import RoomPort

T = TypeVar("T")

AT_ONCE = 1000
TRIES = 20
ALPHABET = string.digits + string.ascii_lowercase


async def everything(room: RoomPort, kind: str, prefix: str = "") -> AsyncIterator[Document]:
    """All documents of a kind, by key."""
    after = ""
    while True:
        page = await room.documents(kind, prefix=prefix, after=after, limit=AT_ONCE)
        for document in page:
            yield document
        if len(page) < AT_ONCE:
            return
        after = page[-1].key


async def persistently(step: Callable[[], Awaitable[T]]) -> T:
    """Read, decide and write, again when somebody else was quicker."""
    for _ in range(TRIES):
        with contextlib.suppress(DocumentChanged):
            return await step()
        await asyncio.sleep(0)
    return await step()


def short_id(prefix: str) -> str:
    """`task_` and the like, with eight characters of chance."""
    return f"{prefix}_{''.join(secrets.choice(ALPHABET) for _ in range(8))}"
