"""Where files of messages are kept, and by what name a message knows one.

In a home it is the whole path. In a folder that several hosts see, or in an object store, it is `files:` and
a key, which means the same on each of them; programs of agents get a path of their own host for it.
"""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

import msgspec

from postroom.errors import PostroomError
from postroom.office.file_retention import FileRetention
from postroom.office.files import (
    MAX_FILE_BYTES,
    FileProblem,
    FileRefused,
    Folders,
    OutFile,
    Receiving,
    check_outgoing,
    open_outgoing,
    receiving,
)

T = TypeVar("T")

PREFIX = "files:"
# Each file has a folder of its own, so that no two hosts ever mean the same name.
OWN_FOLDER = r"[0-9a-f]{12}"
OURS = re.compile(rf"(?:[^/]+/)*{OWN_FOLDER}/[^/]+")


class FilesAway(PostroomError):
    """The files of messages cannot be reached: {reason}. It is tried again."""

    code = "FILES_AWAY"
    http_status = 503
    exit_code = 6


class ReferredText(msgspec.Struct, frozen=True):
    """A text in which files are named as on every host, and which of them it names."""

    text: str
    refs: tuple[str, ...] = ()


class MessageFiles(Protocol):
    """Every method may block, and raise `FilesAway`."""

    @property
    def root(self) -> Path:
        """Where programs of this host find them."""
        ...

    def receiving(
        self, folder: str, name: str, *, max_bytes: int = MAX_FILE_BYTES
    ) -> AbstractContextManager[Receiving]:
        """A new file. When this ends without an error it is safe, and has the `ref` that messages name."""
        ...

    def open(
        self, ref: str, *, max_bytes: int = MAX_FILE_BYTES
    ) -> AbstractContextManager[tuple[OutFile, BinaryIO]]: ...

    def check(self, ref: str, *, max_bytes: int = MAX_FILE_BYTES) -> OutFile: ...

    def admit(self, ref: str, *, max_bytes: int = MAX_FILE_BYTES) -> str:
        """What a message names for a file that somebody has put here before."""
        ...

    def fetch(self, ref: str) -> Path:
        """Where programs of this host can read it; a file that is gone is refused, where that is known."""
        ...

    def refer(self, text: str) -> ReferredText:
        """What a program of this host wrote, for other hosts."""
        ...

    def forget(self, refs: Iterable[str]) -> None:
        """Those that are there; others are not touched."""
        ...

    def tidy(self, now: int) -> int: ...

    def probe(self) -> None:
        """Raises `FilesAway` unless files could be kept there now."""
        ...


class HomeFiles:
    """In the folder `files` of a home, which all its processes see."""

    def __init__(self, home: Path, *, days: float | None = None, most_bytes: int = 2**62) -> None:
        self.root = home / "files"
        self._folders = Folders((self.root,), closed=(home,))
        self._retention = FileRetention(folder=self.root, days=days, most_bytes=most_bytes)

    def receiving(
        self, folder: str, name: str, *, max_bytes: int = MAX_FILE_BYTES
    ) -> AbstractContextManager[Receiving]:
        return receiving(self.root / folder, name, max_bytes=max_bytes)

    def open(
        self, ref: str, *, max_bytes: int = MAX_FILE_BYTES
    ) -> AbstractContextManager[tuple[OutFile, BinaryIO]]:
        return open_outgoing(ref, self._folders, max_bytes=max_bytes)

    def check(self, ref: str, *, max_bytes: int = MAX_FILE_BYTES) -> OutFile:
        return check_outgoing(ref, self._folders, max_bytes=max_bytes)

    def admit(self, ref: str, *, max_bytes: int = MAX_FILE_BYTES) -> str:
        return str(self.check(ref, max_bytes=max_bytes).path)

    def fetch(self, ref: str) -> Path:
        return Path(ref)

    def refer(self, text: str) -> ReferredText:
        return ReferredText(text)

    def forget(self, refs: Iterable[str]) -> None:
        for ref in refs:
            with contextlib.suppress(FileRefused, OSError):
                self.check(ref, max_bytes=2**62).path.unlink()

    def tidy(self, now: int) -> int:
        return self._retention.tidy(now)

    def probe(self) -> None:
        _probe(self.root)


class SharedFiles:
    """In a folder that all hosts see, wherever each of them has it. What messages named before stays readable
    where it is."""

    def __init__(
        self, root: Path, home: HomeFiles, *, days: float | None = None, most_bytes: int = 2**62
    ) -> None:
        self.root = root
        self._home = home
        self._folders = Folders((root,))
        self._retention = FileRetention(folder=root, days=days, most_bytes=most_bytes, only=OURS)
        self._named = re.compile(rf"{re.escape(str(root))}/((?:[^/\s]+/)*{OWN_FOLDER})/")

    @contextlib.contextmanager
    def receiving(self, folder: str, name: str, *, max_bytes: int = MAX_FILE_BYTES) -> Iterator[Receiving]:
        with receiving(self.root / folder / secrets.token_hex(6), name, max_bytes=max_bytes) as taken:
            taken.ref = PREFIX + taken.path.relative_to(self.root).as_posix()
            yield taken

    @contextlib.contextmanager
    def open(self, ref: str, *, max_bytes: int = MAX_FILE_BYTES) -> Iterator[tuple[OutFile, BinaryIO]]:
        if not ref.startswith(PREFIX):
            with self._home.open(ref, max_bytes=max_bytes) as found:
                yield found
            return
        with open_outgoing(str(self.fetch(ref)), self._folders, max_bytes=max_bytes) as found:
            yield found

    def check(self, ref: str, *, max_bytes: int = MAX_FILE_BYTES) -> OutFile:
        if not ref.startswith(PREFIX):
            return self._home.check(ref, max_bytes=max_bytes)
        return check_outgoing(str(self._path(ref)), self._folders, max_bytes=max_bytes)

    def admit(self, ref: str, *, max_bytes: int = MAX_FILE_BYTES) -> str:
        if ref.startswith(PREFIX):
            self.check(ref, max_bytes=max_bytes)
            return ref
        with (
            self._home.open(ref, max_bytes=max_bytes) as (found, source),
            self.receiving("", found.name, max_bytes=max_bytes) as target,
        ):
            shutil.copyfileobj(source, target)
        return target.ref

    def fetch(self, ref: str) -> Path:
        if not ref.startswith(PREFIX):
            return self._home.fetch(ref)
        check_outgoing(str(self._path(ref)), self._folders, max_bytes=2**62)
        return self._path(ref)

    def refer(self, text: str) -> ReferredText:
        refs: dict[str, None] = {}
        parts: list[str] = []
        done = 0
        for match in self._named.finditer(text):
            name = self._name_at(match, text)
            if match.start() >= done and name is not None:
                ref = f"{PREFIX}{match[1]}/{name}"
                refs[ref] = None
                parts += (text[done : match.start()], ref)
                done = match.end() + len(name)
        return ReferredText("".join((*parts, text[done:])), tuple(refs))

    def _name_at(self, match: re.Match[str], text: str) -> str | None:
        """Names may hold spaces; the folder has one file, so it knows where its name ends."""
        try:
            names = os.listdir(self.root / match[1])
        except OSError:
            return None
        return next((name for name in names if text.startswith(name, match.end())), None)

    def forget(self, refs: Iterable[str]) -> None:
        for ref in refs:
            if not ref.startswith(PREFIX):
                self._home.forget((ref,))
                continue
            with contextlib.suppress(FileRefused, OSError):
                self._forget(self._path(ref))

    def _forget(self, path: Path) -> None:
        path.unlink()
        path.parent.rmdir()

    def tidy(self, now: int) -> int:
        return self._retention.tidy(now)

    def probe(self) -> None:
        _probe(self.root)

    def _path(self, ref: str) -> Path:
        """Only what we named ourselves: no key leads anywhere else."""
        key = ref.removeprefix(PREFIX)
        if not OURS.fullmatch(key) or "\0" in key or {".", ".."} & set(key.split("/")):
            raise FileRefused(path=ref[:200], why=FileProblem.OUTSIDE, reason="it is no file of a message")
        return self.root / key


@contextlib.asynccontextmanager
async def in_thread(manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """A file that is written or read bit by bit: its beginning and its end may take long, and hold nobody
    up."""
    opened = await asyncio.to_thread(manager.__enter__)
    try:
        yield opened
    except BaseException as error:
        if not await asyncio.to_thread(manager.__exit__, type(error), error, error.__traceback__):
            raise
    else:
        await asyncio.to_thread(manager.__exit__, None, None, None)


def _probe(folder: Path) -> None:
    if not folder.is_dir():
        raise FilesAway(reason=f"there is no folder {folder}")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise FilesAway(reason=f"{folder} cannot be written")


def name_of(ref: str) -> str:
    """As a person calls it."""
    return ref.rpartition("/")[2]
