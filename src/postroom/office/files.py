"""Which files may leave, and what those that come in are called. No path in a message is trusted."""

import contextlib
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import msgspec

from postroom.errors import BodyTooLarge, PostroomError
from postroom.settings.durable import sync_folder

MAX_FILE_BYTES = 50 * 1024 * 1024
NAME_BYTES = 255
NAMELESS = "file.bin"
GONE_AT_MOST = 5
# A bracket in a name could end the tag that names the file, and begin another.
_UNSAFE = frozenset('<>:"/\\|?*[]')
_UNSAFE_KINDS = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


class FileProblem(StrEnum):
    """Why a file may not leave."""

    EMPTY = "empty"
    MISSING = "missing"
    OUTSIDE = "outside"
    NOT_A_FILE = "not_a_file"
    LINKED = "linked"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    UNREADABLE = "unreadable"


class FileRefused(PostroomError):
    """The file "{path}" was not sent: {reason}."""

    code = "FILE_REFUSED"
    http_status = 403
    exit_code = 2

    @property
    def why(self) -> FileProblem:
        return self.data["why"]


class Folders(msgspec.Struct, frozen=True):
    """Where files may leave from. Of folders inside each other the innermost decides, so that a workspace
    that holds the room's own folder does not open it. Relative paths are taken from the first one allowed."""

    allowed: tuple[Path, ...]
    closed: tuple[Path, ...] = ()

    @classmethod
    def of_agent(cls, workspace: Path, home: Path, files: Path | None = None) -> "Folders":
        """An agent's own workspace and the files of the room; nothing else of it."""
        return cls(allowed=(workspace, files or home / "files"), closed=(home,))

    def admit(self, real: Path) -> bool:
        """Whether a path that has no links left in it lies in an allowed folder."""
        best, admitted = -1, False
        # On a tie the closed one wins, because it comes last.
        for folders, open_ in ((self.allowed, True), (self.closed, False)):
            for folder in folders:
                root = Path(os.path.realpath(folder))
                depth = len(root.parts)
                if depth >= best and real.is_relative_to(root) and real != root:
                    best, admitted = depth, open_
        return admitted


class OutFile(msgspec.Struct, frozen=True):
    path: Path
    name: str
    size: int


@contextlib.contextmanager
def open_outgoing(
    path: str, folders: Folders, *, max_bytes: int = MAX_FILE_BYTES
) -> Iterator[tuple[OutFile, BinaryIO]]:
    """The file, open, after all checks. What is read from it is the file that was checked: a path can be
    turned into a link between a check and a later opening, an open file cannot."""
    real = _real(path, folders)
    handle = _opened(path, real)
    try:
        # The folders above may have been moved meanwhile; the open file knows where it is.
        if not folders.admit(_place(handle, real)):
            raise _outside(path, folders)
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise _refused(path, FileProblem.NOT_A_FILE, "it is not a regular file")
        if found.st_nlink > 1:
            # One of its other names may lie anywhere, also among the room's own secrets.
            raise _refused(
                path, FileProblem.LINKED, "it has another name elsewhere (a hard link); send a copy of it"
            )
        if found.st_size > max_bytes:
            reason = f"it has {found.st_size} bytes, and at most {max_bytes} may be sent"
            raise _refused(path, FileProblem.TOO_LARGE, reason)
        with os.fdopen(handle, "rb", closefd=False) as file:
            yield OutFile(real, real.name, found.st_size), file
    finally:
        os.close(handle)


def check_outgoing(path: str, folders: Folders, *, max_bytes: int = MAX_FILE_BYTES) -> OutFile:
    with open_outgoing(path, folders, max_bytes=max_bytes) as (found, _):
        return found


def sort_outgoing(
    paths: Sequence[str], folders: Folders, *, max_bytes: int = MAX_FILE_BYTES, max_files: int = 10
) -> tuple[list[OutFile], list[FileRefused]]:
    """What of an answer's files may be sent, each once, and why the others may not."""
    sent: dict[Path, OutFile] = {}
    refused: list[FileRefused] = []
    for path in dict.fromkeys(paths):
        try:
            found = check_outgoing(path, folders, max_bytes=max_bytes)
        except FileRefused as refusal:
            refused.append(refusal)
            continue
        if found.path not in sent and len(sent) >= max_files:
            refused.append(
                _refused(path, FileProblem.TOO_MANY, f"at most {max_files} files go with one answer")
            )
        else:
            sent[found.path] = found
    return list(sent.values()), refused


def _real(path: str, folders: Folders) -> Path:
    if not path.strip():
        raise _refused(path, FileProblem.EMPTY, "no path is given")
    if "\0" in path:
        raise _refused(path, FileProblem.MISSING, "there is no such file")
    asked = Path(path).expanduser() if path.startswith("~/") else Path(path)
    try:
        real = Path(os.path.realpath(folders.allowed[0] / asked, strict=True))
    except (OSError, UnicodeEncodeError) as error:
        # What lies outside is told to be outside, there or not: an answer must not tell what exists.
        loose = Path(os.path.realpath(folders.allowed[0] / asked)) if isinstance(error, OSError) else None
        if loose is not None and not folders.admit(loose):
            raise _outside(path, folders) from None
        raise _refused(path, FileProblem.MISSING, "there is no such file") from None
    if not folders.admit(real):
        raise _outside(path, folders)
    return real


def _place(handle: int, expected: Path) -> Path:
    try:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))
    except OSError:
        return Path(os.path.realpath(expected))


def _opened(path: str, real: Path) -> int:
    try:
        # Opening a pipe would wait for ever, and opening a device may do anything: look first.
        if stat.S_ISREG(os.lstat(real).st_mode):
            return os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _refused(path, FileProblem.MISSING, "there is no such file") from None
    except PermissionError:
        raise _refused(path, FileProblem.UNREADABLE, "it may not be read") from None
    except OSError:
        pass
    raise _refused(path, FileProblem.NOT_A_FILE, "it is not a regular file")


def _outside(path: str, folders: Folders) -> FileRefused:
    roots = " and ".join(str(folder) for folder in folders.allowed)
    return _refused(path, FileProblem.OUTSIDE, f"files may leave only from {roots}")


def _refused(path: str, why: FileProblem, reason: str) -> FileRefused:
    shown = path if len(path) <= 200 else f"{path[:200]}…"
    return FileRefused(path=shown, why=why, reason=reason)


def safe_name(name: str) -> str:
    """A name that is one plain name in any folder: the base name, without signs that mean something."""
    base = name.rpartition("/")[2]
    clean = "".join(
        "_" if sign in _UNSAFE or unicodedata.category(sign) in _UNSAFE_KINDS else sign for sign in base
    ).strip()
    return _fitted(clean) if clean.strip(". ") else NAMELESS


class Receiving:
    """A file that is being received: it is new, and takes up to `max_bytes`. A message names it by `ref`."""

    def __init__(self, path: Path, file: BinaryIO, max_bytes: int) -> None:
        self.path = path
        self.ref = str(path)
        self.size = 0
        self._file = file
        self._max_bytes = max_bytes

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._max_bytes:
            raise BodyTooLarge(what="file", size=self.size, limit=self._max_bytes)
        self._file.write(data)


@contextlib.contextmanager
def receiving(folder: Path, name: str, *, max_bytes: int = MAX_FILE_BYTES) -> Iterator[Receiving]:
    """A new file in `folder`, never in the place of another. If anything fails, nothing of it stays; else it
    is on the disk, with its name and the folders it needed."""
    changed = _changed_by(folder)
    path, file = _created(folder, safe_name(name))
    try:
        with file:
            yield Receiving(path, file, max_bytes)
            file.flush()
            os.fsync(file.fileno())
        for each in changed:
            with contextlib.suppress(OSError):  # not every file system can
                sync_folder(each)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _changed_by(folder: Path) -> list[Path]:
    """The folders that get a new entry when a file is made in this one, which need not be there."""
    changed = [folder]
    while not changed[-1].exists() and changed[-1].parent != changed[-1]:
        changed.append(changed[-1].parent)
    return changed


def _created(folder: Path, name: str) -> tuple[Path, BinaryIO]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    number, times_gone = 0, 0
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / (_fitted(name, f"_{number}") if number else name)
        try:
            return path, os.fdopen(os.open(path, flags, 0o600), "wb")
        except FileExistsError:
            number += 1
        except FileNotFoundError:
            # Folders that are empty are tidied away, also one that was made just now.
            times_gone += 1
            if times_gone == GONE_AT_MOST:
                raise


def _fitted(name: str, suffix: str = "") -> str:
    """The name with a suffix before its ending, cut to what a file system takes."""
    stem, ending = os.path.splitext(name)
    if len(ending.encode()) > 32:
        stem, ending = name, ""
    room = NAME_BYTES - len((suffix + ending).encode())
    return stem.encode()[:room].decode(errors="ignore") + suffix + ending
