"""Files of the other program that come along, as copies: workspaces of agents, attachments, conversations."""

import contextlib
import os
import shutil
import stat
from pathlib import Path

import msgspec

from postroom.office.files import MAX_FILE_BYTES, safe_name
from postroom.office.imports.rows import fingerprint

# What tells the other program to forget, and would tell nobody here.
LEFT = frozenset({"reset_flag"})
SPARE_BYTES = 256 * 1024 * 1024


class Size(msgspec.Struct, frozen=True):
    files: int
    bytes: int


def size(folder: Path) -> Size:
    files = total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found = os.lstat(os.path.join(place, name))
                if stat.S_ISREG(found.st_mode):
                    files, total = files + 1, total + found.st_size
    return Size(files, total)


def copied(source: Path, target: Path, notes: list[str]) -> bool:
    """The whole folder, which appears when it is complete, and never over what is there. Links stay links."""
    if os.path.lexists(target) or not source.is_dir():
        return False
    partial = target.with_name(f".{target.name}.import")
    lost: list[str] = []

    def copy(old: str, new: str) -> str:
        try:
            return shutil.copy2(old, new, follow_symlinks=False)
        except OSError:
            lost.append(old)
            return new

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # What an import that was broken off has left.
        shutil.rmtree(partial, ignore_errors=True)
        free = shutil.disk_usage(target.parent).free
        if size(source).bytes + SPARE_BYTES > free:
            notes.append(f"{source} is not copied: there is no room for it at {target.parent}")
            return False
        shutil.copytree(source, partial, symlinks=True, ignore=_left, copy_function=copy)
        os.rename(partial, target)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(partial, ignore_errors=True)
        notes.append(f"{source} is not copied: {error}")
        return False
    if lost:
        notes.append(f"{len(lost)} files of {source} cannot be read and are not copied, like {lost[0]}")
    return True


def _left(folder: str, names: list[str]) -> set[str]:
    """Pipes, sockets and devices stay behind; opening one may wait for ever."""

    def odd(name: str) -> bool:
        mode = os.lstat(os.path.join(folder, name)).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))

    return {name for name in names if name in LEFT or odd(name)}


def attached(paths: tuple[str, ...], source: Path, files: Path) -> tuple[str, ...]:
    """Attachments of an answer that is still to be sent: files of the installation, from where they may leave
    here. Others are not touched."""
    found: list[str] = []
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            real = Path(os.path.realpath(path))
            if not real.is_relative_to(os.path.realpath(source / "files")):
                continue
            if real.stat().st_size > MAX_FILE_BYTES:
                continue
            target = files / f"import_{fingerprint(str(real))[:8]}_{safe_name(real.name)}"
            if kept(real, target):
                found.append(str(target))
    return tuple(found)


def kept(source: Path, target: Path) -> bool:
    """A copy of one file, for its owner's eyes only; one that is there stays. Whether it is there now."""
    if os.path.lexists(target):
        return True
    if not stat.S_ISREG(os.lstat(source).st_mode):
        return False
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.import")
    partial.unlink(missing_ok=True)
    shutil.copyfile(source, partial)
    partial.chmod(0o600)
    os.rename(partial, target)
    return True
