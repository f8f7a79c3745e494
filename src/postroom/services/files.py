"""Files of chats: what people send along with a message, and what agents give back. All lie where the office
keeps files of messages; no other is ever read or written."""

import asyncio
from collections.abc import AsyncIterable, Generator
from contextlib import ExitStack
from typing import BinaryIO

import msgspec

from postroom.errors import NotFound
from postroom.office.files import FileRefused, OutFile
from postroom.office.message_files import in_thread
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeService, require_member, require_viewer

FOLDER = "web"
PIECE_BYTES = 64 * 1024


class FileNotFound(NotFound):
    """There is no file "{path}" in this office, or it may not be shown."""

    code = "FILE_NOT_FOUND"


class OpenFile(msgspec.Struct, frozen=True):
    """Who got it reads all pieces, or closes it."""

    found: OutFile
    file: BinaryIO
    stack: ExitStack

    def pieces(self) -> Generator[bytes]:
        with self.stack:
            while piece := self.file.read(PIECE_BYTES):
                yield piece


class FileService(OfficeService):
    async def save(self, caller: Caller, name: str, pieces: AsyncIterable[bytes]) -> str:
        """Its name, by which a message can bring it along. If the pieces end early, nothing stays."""
        require_member(caller)
        control = await self._context.control()
        most = control.settings.limits.file_bytes
        async with in_thread(control.office.files.receiving(FOLDER, name, max_bytes=most)) as taken:
            async for piece in pieces:
                await asyncio.to_thread(taken.write, piece)
        return taken.ref

    async def open(self, caller: Caller, path: str) -> OpenFile:
        require_viewer(caller)
        files = (await self._context.control()).office.files
        stack = ExitStack()
        try:
            found, file = await asyncio.to_thread(stack.enter_context, files.open(path))
        except FileRefused:
            raise FileNotFound(path=path[:200]) from None
        return OpenFile(found, file, stack)
