"""Paths as people write them, and the folder where everything is kept."""

import os
from collections.abc import Mapping
from pathlib import Path

from postroom.settings.defaults import DEFAULT_WORKSPACE


def home_folder(environment: Mapping[str, str] | None = None) -> Path:
    named = (os.environ if environment is None else environment).get("POSTROOM_HOME", "")
    return expanded(named).absolute() if named else Path.home() / ".postroom"


def default_workspace(environment: Mapping[str, str] | None = None) -> str:
    """The folder of the agents' folders: of a home of its own, in it. Two homes never share one unasked."""
    environment = os.environ if environment is None else environment
    if not environment.get("POSTROOM_HOME"):
        return DEFAULT_WORKSPACE
    return str(home_folder(environment) / "workspace")


def expanded(path: str, home: Path | None = None) -> Path:
    """`~` and `$HOME` at the start become the home folder; nothing else is replaced."""
    for sign in ("~", "$HOME"):
        if path == sign or path.startswith(sign + "/"):
            return Path((home or Path.home()), path[len(sign) :].lstrip("/"))
    return Path(path)
