"""Where a program lies with all that it needs to run, outside of the system's own folders.

Agents' programs are often installed in a person's home: by npm, a version manager, or an installer of their
own. Only these installations are found, never the home around them.
"""

import os
import shutil
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/gnu")
# What an installation has beside its `bin`.
BESIDE = ("include", "lib", "lib64", "libexec")
# What version managers keep in a home. None of these holds a person's keys.
TOOLCHAINS = (
    ".asdf",
    ".bun/bin",
    ".deno/bin",
    ".local/share/mise",
    ".local/share/uv",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".volta",
)


def find_tool_paths(program: Path, path: str, home: Path) -> list[Path]:
    found = [folder for entry in path.split(os.pathsep) if entry and not _is_system(folder := Path(entry))]
    found += [home / name for name in TOOLCHAINS]
    waiting, seen = [program], set[Path]()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        found += _installation(each, home)
        if (interpreter := _interpreter(each, path)) is not None:
            waiting.append(interpreter)
    return list(dict.fromkeys(entry for entry in found if not _is_system(entry)))


def _installation(program: Path, home: Path) -> list[Path]:
    real = Path(os.path.realpath(program))
    found = [program.parent, real.parent]
    if (program.parent.parent / "pyvenv.cfg").is_file():
        found.append(program.parent.parent)
    if "node_modules" in real.parts:
        found.append(Path(*real.parts[: real.parts.index("node_modules") + 1]))
    elif real.parent.name == "bin" and real.parent.parent not in (home, home / ".local", Path("/")):
        # Not all that lies beside it: any folder may have a `bin` in it.
        found += [real.parent.parent / name for name in BESIDE]
    return [entry for entry in found if entry not in (home, Path("/"))]


def _interpreter(program: Path, path: str) -> Path | None:
    """What a script is run by, from its first line."""
    try:
        with program.open("rb") as file:
            first = file.readline(512)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode(errors="replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    found = shutil.which(words[0], path=path) if words else None
    return Path(found) if found else None


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in SYSTEM)
