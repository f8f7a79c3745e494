"""The folder of one turn, for what its program reads: gone with the turn, or at the next start.

Whoever uses one holds a lock on it, so that a folder that was left behind can be told from one in use.
"""

import contextlib
import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger("postroom.providers")

PREFIX = "postroom-turn-"


@contextlib.contextmanager
def turn_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH)
            yield Path(name)
        finally:
            os.close(handle)


def sweep_turn_folders(parent: Path | None = None) -> int:
    """Remove those that nobody uses; how many. Those of other users are not ours to look at."""
    removed = 0
    for folder in Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(handle).st_uid == os.getuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
                removed += not folder.exists()
        except OSError:
            continue  # in use
        finally:
            os.close(handle)
    if removed:
        log.info("%d folders of turns that did not end were removed", removed)
    return removed
