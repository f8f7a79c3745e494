"""A sandbox by Landlock: what is not allowed cannot be opened, from whatever process of the turn.

For machines without bubblewrap or user namespaces. It hides no names, and cannot close a folder inside of
an open one. From Linux 6.12 on no process of the turn can signal one outside, so that the minder outlives it.
"""

import os
import sys
from pathlib import Path

import landlockpy
import msgspec

from postroom.providers import confine
from postroom.providers.process import ProcessCommand
from postroom.providers.sandbox import PRIVATE, SYSTEM, SandboxView, private_environment

SIGNALS_ABI = 6
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
READABLE = ("/proc", "/sys/fs/cgroup", "/sys/devices/system/cpu")
_LIBRARY = Path(landlockpy.__file__).parent.parent


class Landlock:
    name = "Landlock"
    nests = False

    def __init__(self, abi: int) -> None:
        self.abi = abi

    def gaps(self, view: SandboxView) -> list[str]:
        found = [
            f"cannot close {path} inside of {opened}"
            for path in view.hidden
            for opened in (*view.readable, *view.writable)
            if path != opened and path.is_relative_to(opened)
        ]
        if self.abi < SIGNALS_ABI:
            found.append("cannot keep a program from killing its minder before Linux 6.12")
        return found

    def wrap(self, command: ProcessCommand, view: SandboxView, temporary: Path) -> ProcessCommand:
        hidden = set(view.hidden)
        readable = [*_system(), *READABLE, *(str(path) for path in view.readable if path not in hidden)]
        writable = [*(f"/dev/{name}" for name in DEVICES), str(temporary)]
        writable += [str(path) for path in view.writable if path not in hidden]
        rules = msgspec.json.encode({"readable": readable, "writable": writable}).decode()
        return msgspec.structs.replace(
            command,
            program=sys.executable,
            arguments=(
                *("-I", "-S", confine.__file__, str(_LIBRARY), rules),
                command.program,
                *command.arguments,
            ),
            environment=private_environment(command.environment, str(temporary)),
        )


def find_landlock() -> Landlock | str:
    """It, or why it cannot be used here."""
    try:
        return Landlock(landlockpy.abi_version())
    except landlockpy.LandlockError as error:
        return f"this kernel has no Landlock ({error.strerror or error})"


def _system() -> list[str]:
    """Entry by entry where something among them is private."""
    found: list[str] = []
    for folder in SYSTEM:
        if any(entry.startswith(f"{folder}/") for entry in PRIVATE):
            found += _entries(folder)
        else:
            found.append(folder)
    return found


def _entries(folder: str) -> list[str]:
    found: list[str] = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if path in PRIVATE:
            continue
        if any(entry.startswith(f"{path}/") for entry in PRIVATE):
            found += _entries(path)
        else:
            found.append(path)
    return found
