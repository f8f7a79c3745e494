"""The folder of files that came in and went out does not grow for ever: the oldest leave it.

A file that goes while its message still waits is told as missing when it is to be sent; the message is not.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from postroom.clock import SECOND

DAY_S = 24 * 3600


class FileRetention(msgspec.Struct, frozen=True, kw_only=True):
    """`days` None keeps for ever, as far as there is room. With `only`, what lies elsewhere in the folder is
    not ours, and stays."""

    folder: Path
    days: float | None = 30
    most_bytes: int = 10 * 1024**3
    only: re.Pattern[str] | None = None

    def tidy(self, now: int) -> int:
        """Remove what is too old, and the oldest of what is too much; how many files that was."""
        files = sorted(each for each in _files(self.folder) if self._is_ours(each[2]))
        oldest = float("-inf") if self.days is None else now / SECOND - self.days * DAY_S
        total = sum(size for _, size, _ in files)
        removed = 0
        for changed, size, path in files:
            if changed >= oldest and total <= self.most_bytes:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed += 1
            total -= size
        if removed:
            _remove_empty(self.folder)
        return removed

    def _is_ours(self, path: str) -> bool:
        return self.only is None or self.only.fullmatch(os.path.relpath(path, self.folder)) is not None


def _files(folder: Path) -> Iterator[tuple[float, int, str]]:
    """When changed, how large, and where. Links are files like others here, and are never followed."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with contextlib.suppress(OSError):
                found = os.lstat(path)
                yield found.st_mtime, found.st_size, path


def _remove_empty(folder: Path) -> None:
    for place, _, _ in os.walk(folder, topdown=False):
        if Path(place) != folder:
            with contextlib.suppress(OSError):
                os.rmdir(place)
