"""Paths as people write them, and the folder where everything is kept."""

import os
from collections.abc import Mapping
from pathlib import Path


def home_folder(environment: Mapping[str, str] | None = None) -> Path:
    named = (os.environ if environment is None else environment).get("POSTROOM_HOME", "")
    return expanded(named).absolute() if named else Path.home() / ".postroom"


def expanded(path: str, home: Path | None = None) -> Path:
    """`~` and `$HOME` at the start become the home folder; nothing else is replaced."""
    for sign in ("~", "$HOME"):
        if path == sign or path.startswith(sign + "/"):
            return Path((home or Path.home()), path[len(sign) :].lstrip("/"))
    return Path(path)
