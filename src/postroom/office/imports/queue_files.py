"""The queue of the first TinyClaw: a file for each message, in folders named after what becomes of it."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from postroom.office.imports.rows import Row, moment
from postroom.settings import repair

FOLDER = "queue"
# What was in hand when it stopped is to be done again.
WAITING = ("incoming", "processing")
LEAVING = ("outgoing",)
FILE_BYTES = 4 * 1024 * 1024


def read_queue_files(home: Path, folders: tuple[str, ...], notes: list[str]) -> list[Row]:
    """Oldest first. What cannot be read is left out, and a person is told."""
    found: list[Row] = []
    for name in folders:
        for path in _files(home / FOLDER / name):
            try:
                row = _read(path)
            except (OSError, ValueError, repair.BeyondRepair, RecursionError):
                notes.append(f"{FOLDER}/{name}/{path.name} is damaged and left out")
                continue
            found.append(row)
    found.sort(key=lambda row: moment(row.get("timestamp")))
    return found


def _files(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            if path.suffix == ".json" and stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def _read(path: Path) -> Row:
    with path.open("rb") as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise ValueError("too large")
    text = data.decode("utf-8-sig", "replace")
    try:
        row = repair.read(text)
    except ValueError:
        row = repair.repair(text).document
    # The file lies there under its own name when its writer gave it no id.
    return {"messageId": path.stem, **row}
