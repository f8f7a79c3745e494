"""Files of chats: what people send along with a message, and what agents give back. All lie in the room's
folder `files/`; no other is ever read or written."""

import asyncio
from collections.abc import AsyncIterable, Generator
from contextlib import ExitStack
from typing import BinaryIO

import msgspec

from postroom.errors import NotFound
from postroom.office.files import FileRefused, Folders, OutFile, open_outgoing, receiving
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
        """Its path, by which a message can bring it along. If the pieces end early, nothing stays."""
        require_member(caller)
        limits = (await self._context.control()).settings.limits
        with receiving(self._context.home / "files" / FOLDER, name, max_bytes=limits.file_bytes) as taken:
            async for piece in pieces:
                await asyncio.to_thread(taken.write, piece)
        return str(taken.path)

    async def open(self, caller: Caller, path: str) -> OpenFile:
        require_viewer(caller)
        folders = Folders((self._context.home / "files",))
        stack = ExitStack()
        try:
            found, file = await asyncio.to_thread(stack.enter_context, open_outgoing(path, folders))
        except FileRefused:
            raise FileNotFound(path=path[:200]) from None
        return OpenFile(found, file, stack)
