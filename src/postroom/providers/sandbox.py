"""What the program of a turn may see and touch, and what keeps it to that: bubblewrap, else Landlock.

Nothing of a machine is open that is not named here: the system's own programs and libraries, the agent's
workspace, its program with its home, and what the settings add. A turn that requires a sandbox never runs
without one.
"""

import logging
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec

from postroom.providers.process import ProcessCommand
from postroom.providers.protocol import Sandbox, SandboxMode
from postroom.providers.tool_paths import find_tool_paths

_log = logging.getLogger(__name__)

# Programs, libraries and configuration of the machine. Readable; links among them stay links.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu")
# Of the system's configuration, what only its administrator may read. It matters where we run as root.
PRIVATE = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/letsencrypt",
    "/etc/wireguard",
    "/etc/credstore",
    "/etc/credstore.encrypted",
)
# Links of the system's configuration often lead here; without it no name is resolved.
RESOLVER = "/etc/resolv.conf"
# Who commits. Nothing secret is kept there by git itself.
GIT = (".gitconfig", ".config/git")


class SandboxView(msgspec.Struct, frozen=True, kw_only=True):
    """All that one turn sees besides the system: absolute paths that are there."""

    folder: Path
    home: Path
    readable: tuple[Path, ...]
    writable: tuple[Path, ...]
    hidden: tuple[Path, ...]


class Confinement(Protocol):
    """Something that keeps a program to a view."""

    @property
    def name(self) -> str: ...

    @property
    def nests(self) -> bool:
        """Whether a program inside can make a sandbox of its own."""
        ...

    def gaps(self, view: SandboxView) -> list[str]:
        """What it cannot keep of this view, each as the end of a sentence."""
        ...

    def wrap(self, command: ProcessCommand, view: SandboxView, temporary: Path) -> ProcessCommand:
        """The same command, confined. `temporary` is an empty folder of this turn's own."""
        ...


class SandboxUnavailable(Exception):
    """No sandbox where one is required."""


def confine_command(
    command: ProcessCommand,
    sandbox: Sandbox,
    *,
    homes: Iterable[Path],
    configuration: Iterable[Path],
    writes: bool,
    bare_arguments: tuple[str, ...] | None,
    temporary: Path,
) -> ProcessCommand:
    """The command in the sandbox it is to have. `bare_arguments` are those with which the program makes none
    of its own, for a sandbox in which it could not; `temporary` is an empty folder of this turn's own. Raises
    SandboxUnavailable."""
    if sandbox.mode is SandboxMode.OFF:
        return command
    view = build_view(sandbox, command, homes=homes, configuration=configuration, writes=writes)
    confinement = choose_confinement(sandbox, view)
    if confinement is None:
        return command
    if bare_arguments is not None and not confinement.nests:
        command = msgspec.structs.replace(command, arguments=bare_arguments)
    return confinement.wrap(command, view, temporary)


def build_view(
    sandbox: Sandbox,
    command: ProcessCommand,
    *,
    homes: Iterable[Path],
    configuration: Iterable[Path],
    writes: bool,
) -> SandboxView:
    """`homes` are the folders the program keeps its own things in, and `configuration` what of them, and
    besides, it may read only. With `writes` it may write in its folder, too."""
    home = Path(command.environment.get("HOME") or "/")
    tools = find_tool_paths(Path(command.program), command.environment.get("PATH", os.defpath), home)
    writable = [*homes, *sandbox.writable]
    readable = [*tools, *(home / name for name in GIT), *sandbox.readable, *configuration]
    (writable if writes else readable).append(command.folder)
    if (resolver := Path(os.path.realpath(RESOLVER))) and not is_within(resolver, "/etc"):
        readable.append(resolver)
    return SandboxView(
        folder=command.folder.absolute(),
        home=home,
        readable=_present(readable),
        writable=_present(writable),
        hidden=_present([*sandbox.hidden, *map(Path, PRIVATE)]),
    )


def choose_confinement(sandbox: Sandbox, view: SandboxView) -> Confinement | None:
    """The best there is. None where there is none, or none is wanted. Raises SandboxUnavailable."""
    if sandbox.mode is SandboxMode.OFF:
        return None
    found, missing = find_confinements()
    required = sandbox.mode is SandboxMode.REQUIRED
    reasons = list(missing)
    for confinement in found:
        gaps = confinement.gaps(view)
        if not (required and gaps):
            return confinement
        reasons += [f"{confinement.name} {gap}" for gap in gaps]
    if required:
        raise SandboxUnavailable("; ".join(reasons))
    _warn_once("; ".join(reasons))
    return None


@cache
def find_confinements() -> tuple[tuple[Confinement, ...], tuple[str, ...]]:
    """What this machine offers, the strongest first, and why the others are not among it."""
    from postroom.providers.bubblewrap import find_bubblewrap
    from postroom.providers.landlock import find_landlock

    if platform.system() != "Linux":
        return (), (f"there is no sandbox on {platform.system()}",)
    found: list[Confinement] = []
    missing: list[str] = []
    for outcome in (find_bubblewrap(), find_landlock()):
        if isinstance(outcome, str):
            missing.append(outcome)
        else:
            found.append(outcome)
    return tuple(found), tuple(missing)


@cache
def _warn_once(reasons: str) -> None:
    _log.warning("agents' programs run without a sandbox: %s; see postroom doctor --security", reasons)


def is_within(path: Path, folder: str | Path) -> bool:
    return path.is_relative_to(folder)


def _present(paths: Sequence[Path]) -> tuple[Path, ...]:
    """As named and as they really are, for programs use both names."""
    found: dict[Path, None] = {}
    for path in paths:
        if path.exists():
            found[path.absolute()] = None
            found[Path(os.path.realpath(path))] = None
    return tuple(found)


def private_environment(environment: Mapping[str, str], temporary: str) -> dict[str, str]:
    """Without the way to the session's sockets, and with temporary files where they are this turn's own."""
    kept = {name: value for name, value in environment.items() if name != "XDG_RUNTIME_DIR"}
    return {**kept, "TMPDIR": temporary}
