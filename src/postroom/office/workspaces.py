"""The folder an agent works in: made on first use, completed when something is missing, never overwritten.

No path is trusted: what leads out of the folder by a link is refused, for reading and for writing.
"""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from postroom.errors import BodyTooLarge, Invalid, NotFound
from postroom.office import manual
from postroom.office.turns import sections
from postroom.settings.model import Settings
from postroom.settings.names import check_id
from postroom.settings.paths import home_folder

INSTRUCTIONS = "AGENTS.md"
HEARTBEAT = "heartbeat.md"
SOULS = ("SOUL.md", ".tinyagi/SOUL.md")
SKILLS = ".agents/skills"
# Where people and programs look for skills besides; each leads to the one folder.
SKILL_LINKS = {"skills": ".agents/skills", ".claude/skills": "../.agents/skills"}

# Holds the path of the home whose agent works in the folder.
OWNER_MARK = ".postroom-home"
MAX_BYTES = 1024 * 1024


class WorkspaceRefused(Invalid):
    """The workspace {path} cannot be used: {reason}."""

    code = "WORKSPACE_REFUSED"


class WorkspaceFileMissing(NotFound):
    """There is no file {path} in the workspace."""

    code = "WORKSPACE_FILE_NOT_FOUND"


class Workspace(msgspec.Struct, frozen=True):
    """`root` is the agent's folder, `base` the folder of all agents' folders."""

    agent: str
    root: Path
    base: Path

    @classmethod
    def of(cls, settings: Settings, agent: str, user_home: Path | None = None) -> "Workspace":
        return cls(agent, settings.agent_directory(agent, user_home), settings.workspace_path(user_home))

    @property
    def chosen(self) -> bool:
        """Whether a person named a folder outside that of all agents; such a one is not ours to move."""
        return not _within(self.root, self.base)

    def check(self) -> None:
        """Refuses a folder that is not where it seems to be, or that is not one agent's alone."""
        check_id("agent", self.agent)
        real = _real(self.root)
        if self.chosen:
            if real == Path(real.anchor):
                raise self._refused("it is the whole disk; name a folder of its own")
        elif not _within(real, _real(self.base)):
            raise self._refused(
                f"a link leads out of {self.base}; to work there, name the real path as working_directory"
            )
        if _within(_real(self.base), real):
            raise self._refused("it holds the folders of all agents; name a folder of its own")
        if self.root.exists() and not self.root.is_dir():
            raise self._refused("it is a file; move it away, or name another working_directory")
        if (owner := self._other_home()) is not None:
            raise self._refused(f"it belongs to the office in {owner}; name another working_directory")

    def _other_home(self) -> str | None:
        """The home whose agent works here, if that is not this one and is still there."""
        try:
            owner = self.root.joinpath(OWNER_MARK).read_text("utf-8", "replace").strip()
        except OSError:
            return None
        is_other = bool(owner) and Path(owner) != home_folder()
        return owner if is_other and Path(owner, "settings.json").is_file() else None

    @property
    def is_in_use(self) -> bool:
        """Whether an agent of this home has worked in it."""
        return self.root.joinpath(OWNER_MARK).is_file() and self._other_home() is None

    def _mark(self) -> None:
        """Called after `check`: a mark of a home that is gone is replaced."""
        wanted = f"{home_folder()}\n"
        mark = self.root / OWNER_MARK
        if mark.is_symlink() or not mark.is_file() or mark.read_text("utf-8", "replace") != wanted:
            self.write(OWNER_MARK, wanted, sync=False)

    def prepare(self, name: str, parts: Mapping[str, str]) -> list[str]:
        """Makes what is missing and refreshes the marked sections. Safe to do again at any time, also by
        several at once. Returns what could not be done, in sentences; the agent can work nevertheless."""
        self.check()
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._refused((error.strerror or str(error)).lower()) from None
        problems: list[str] = []
        with _collected(problems):
            self._mark()
        for folder in ("memory", SKILLS):
            with _collected(problems):
                self._make_folder(folder)
        first = manual.agents_file(self.agent, sections.harmless(name))
        blocks = [sections.wrapped(part, content) for part, content in parts.items()]
        wanted = {
            INSTRUCTIONS: "\n".join([first, *blocks, ""]),
            HEARTBEAT: manual.HEARTBEAT,
            "CLAUDE.md": manual.CLAUDE,
        }
        if not any(os.path.lexists(self.root / soul) for soul in SOULS):
            wanted[SOULS[0]] = manual.SOUL
        for file, content in wanted.items():
            with _collected(problems):
                self._create(file, content)
        for link, target in SKILL_LINKS.items():
            with _collected(problems):
                self._link(link, target)
        with _collected(problems):
            self._refresh(parts)
        return problems

    def read(self, file: str, *, max_bytes: int = MAX_BYTES) -> bytes:
        """The content of a file, up to `max_bytes`, which may be cut then."""
        real = self.place(file)
        try:
            # A pipe would be waited for without end: it is opened without waiting, and then refused.
            handle = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise WorkspaceFileMissing(path=file) from None
        except OSError as error:
            raise self._refused(f"{file}: {(error.strerror or str(error)).lower()}") from None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise self._refused(f"{file} is not a regular file")
            if not _within(_opened_place(handle, real), _real(self.root)):
                raise self._refused(f"{file} leads out of it")
            with os.fdopen(handle, "rb", closefd=False) as opened:
                return opened.read(max_bytes)
        finally:
            os.close(handle)

    def read_text(self, file: str, *, max_bytes: int = MAX_BYTES) -> str:
        """As `read`; a file that is not there is empty."""
        with contextlib.suppress(WorkspaceFileMissing):
            return self.read(file, max_bytes=max_bytes).decode("utf-8-sig", errors="replace")
        return ""

    def write(self, file: str, content: str, *, sync: bool = True) -> None:
        """Puts a text in the place of a file; readers see the old or new one. `sync` waits for the disk."""
        self.check()
        data = content.encode(errors="replace")
        if len(data) > MAX_BYTES:
            raise BodyTooLarge(what="file", size=len(data), limit=MAX_BYTES)
        real = self.place(file)
        try:
            real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(real, data, sync=sync)
        except OSError as error:
            raise self._refused(f"{file}: {(error.strerror or str(error)).lower()}") from None

    def place(self, file: str) -> Path:
        """The real path of something in the workspace; nothing outside it has one."""
        if "\0" in file or not file:
            raise self._refused("that is no name of a file")
        root = _real(self.root)
        real = _real(self.root / file)
        if real == root or not _within(real, root):
            raise self._refused(f"{sections.harmless(file)} leads out of it")
        return real

    def _make_folder(self, folder: str) -> None:
        self.place(folder).mkdir(mode=0o700, parents=True, exist_ok=True)

    def _create(self, file: str, content: str) -> None:
        """A new file with its whole content at once; whatever has that name already stays, also a link."""
        path = self.root / file
        if os.path.lexists(path):
            return
        parent = _real(path.parent)
        if not _within(parent, _real(self.root)):
            raise self._refused(f"{file} leads out of it")
        # Without waiting for the disk: nothing of a person is in it, and the prompt does not depend on it.
        temporary = _written(parent, content.encode(errors="replace"), 0o600, sync=False)
        try:
            os.link(temporary, parent / path.name, follow_symlinks=False)
        except FileExistsError:
            pass  # somebody else was quicker
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
                raise
            os.rename(temporary, parent / path.name)  # a file system without links
        finally:
            temporary.unlink(missing_ok=True)

    def _link(self, link: str, target: str) -> None:
        path = self.root / link
        if os.path.lexists(path):
            return
        if folder := os.path.dirname(link):
            self._make_folder(folder)
        with contextlib.suppress(FileExistsError):
            os.symlink(target, path)

    def _refresh(self, parts: Mapping[str, str]) -> None:
        """What a person saves while we look at it is not lost: then we look again."""
        real = self.place(INSTRUCTIONS)
        for _ in range(5):
            before = _signature(real)
            with contextlib.suppress(WorkspaceFileMissing):
                text = self.read(INSTRUCTIONS, max_bytes=MAX_BYTES + 1)
                fresh = sections.refreshed(text, parts)
                if fresh == text or len(text) > MAX_BYTES:
                    return
                if _signature(real) == before:
                    _replace(real, fresh)
                    return

    def _refused(self, reason: str) -> WorkspaceRefused:
        return WorkspaceRefused(path=str(self.root), reason=reason)


@contextlib.contextmanager
def _collected(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except (WorkspaceRefused, OSError) as error:
        problems.append(str(error))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _within(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _opened_place(handle: int, expected: Path) -> Path:
    try:
        return Path(os.readlink(f"/proc/self/fd/{handle}"))
    except OSError:
        return _real(expected)


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _replace(path: Path, data: bytes, *, sync: bool = True) -> None:
    """The permissions a person gave the file stay."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        mode = 0o600
    temporary = _written(path.parent, data, mode, sync=sync)
    try:
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _written(folder: Path, data: bytes, mode: int, *, sync: bool = True) -> Path:
    handle, name = tempfile.mkstemp(prefix=".postroom-", suffix=".tmp", dir=folder)
    with os.fdopen(handle, "wb") as file:
        try:
            file.write(data)
            file.flush()
            os.fchmod(handle, mode)
            if sync:
                os.fsync(handle)
        except BaseException:
            os.unlink(name)
            raise
    return Path(name)
