"""Which plugins there are: installed packages, and files in `plugins/`. Finding one does not run it."""

import os
import stat
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from postroom.settings.names import is_id, not_an_id

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "postroom.plugins"


class PluginSource(StrEnum):
    PACKAGE = "package"
    FILE = "file"


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin that could be loaded, unless there is a `problem` with it."""

    name: str
    source: PluginSource
    entry: "EntryPoint | None" = None
    path: Path | None = None
    problem: str = ""


def candidates(folder: Path, installed: "Iterable[EntryPoint] | None" = None) -> list[Candidate]:
    """Packages come first: a file cannot take the place of a package that was allowed."""
    packages = _installed() if installed is None else installed
    found: dict[str, Candidate] = {}
    for entry in packages:
        name = entry.name.lower()
        if name not in found:
            found[name] = Candidate(name=name, source=PluginSource.PACKAGE, entry=entry)
    for candidate in _files(folder):
        taken = found.get(candidate.name)
        if taken is not None:
            candidate = msgspec.structs.replace(
                candidate, problem=f"a {taken.source.value} has the same name; rename this one"
            )
        found.setdefault(candidate.name if taken is None else str(candidate.path), candidate)
    return list(found.values())


def _installed() -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # slow, and not every process has plugins

    return entry_points(group=GROUP)


def _files(folder: Path) -> list[Candidate]:
    try:
        places = sorted(folder.iterdir())
    except OSError:
        return []
    trouble = _not_safe(folder)
    found: list[Candidate] = []
    for place in places:
        path = place / "__init__.py" if place.is_dir() else place
        if place.name.startswith((".", "_")) or path.suffix != ".py" or not path.is_file():
            continue
        name = place.stem.lower() if path is place else place.name.lower()
        problem = trouble or _not_safe(place) or _not_safe(path)
        if not is_id(name):
            problem = not_an_id(name)
        found.append(Candidate(name=name, source=PluginSource.FILE, path=path, problem=problem))
    return found


def _not_safe(path: Path) -> str:
    """Code that others could change is not run."""
    try:
        found = os.stat(path)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    if stat.S_IMODE(found.st_mode) & stat.S_IWOTH:
        return f"everybody may write to {path}; chmod o-w it"
    if found.st_uid not in (os.getuid(), 0):
        return f"{path} belongs to another user"
    return ""
