"""A text in the person's own editor. It may hold secrets, so it lies where only they can read it."""

import contextlib
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from postroom.errors import PostroomError
from postroom.settings import durable


class EditorFailed(PostroomError):
    """The editor "{editor}" did not end well: {reason}. Nothing was changed. Choose another: EDITOR=nano"""

    code = "EDITOR_FAILED"
    exit_code = 6


@contextlib.contextmanager
def edit_text(text: str, file: Path, tell: Callable[[str], None]) -> Iterator[str]:
    """What the person made of it. If that cannot be used, it is kept in `file`, and they are told."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable.replace(file, text.encode())
    try:
        done = subprocess.run([*shlex.split(editor), str(file)], check=False)
    except OSError as error:
        file.unlink()
        raise EditorFailed(editor=editor, reason=(error.strerror or str(error)).lower()) from None
    if done.returncode:
        file.unlink()
        raise EditorFailed(editor=editor, reason=f"it ended with {done.returncode}")
    try:
        yield file.read_text("utf-8")
    except PostroomError:
        tell(f"what you wrote is kept in {file}")
        raise
    file.unlink()
