"""A sandbox by bubblewrap: a file system, process ids and temporary files of the turn's own.

The network is shared, since the model is behind it. With the last of its processes' ids everything that the
program has started ends, whatever it does to its environment, its session or its parents.
"""

import os
import shutil
import subprocess
from pathlib import Path

import msgspec

from postroom.providers.process import ProcessCommand
from postroom.providers.sandbox import SYSTEM, SandboxView, private_environment

PROBE_S = 20.0
TEMPORARY = ("/tmp", "/var/tmp", "/run")
NAMESPACES = (
    "--die-with-parent",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
)


# To the kernel root inside is root outside, and may not be mapped again: a program with a sandbox of its own
# could not make it. So where we are root, the program is nobody inside, with root's rights to what it sees.
NOBODY = ("--uid", "65534", "--gid", "65534")


class Bubblewrap:
    name = "bubblewrap"
    nests = True

    def __init__(self, program: str) -> None:
        self._program = program

    def gaps(self, view: SandboxView) -> list[str]:
        return []

    def wrap(self, command: ProcessCommand, view: SandboxView, temporary: Path) -> ProcessCommand:
        arguments = [
            *NAMESPACES,
            *(NOBODY if os.geteuid() == 0 else ()),
            *_system(),
            "--proc",
            "/proc",
            "--dev",
            "/dev",
        ]
        for folder in (*TEMPORARY, str(view.home)):
            if folder != "/":
                arguments += ["--tmpfs", folder]
        arguments += [*_mounts(view), "--chdir", str(view.folder)]
        return msgspec.structs.replace(
            command,
            program=self._program,
            arguments=(*arguments, "--", command.program, *command.arguments),
            environment=private_environment(command.environment, TEMPORARY[0]),
            wrappers=2,
        )


def find_bubblewrap(path: str | None = None) -> Bubblewrap | str:
    """It, or why it cannot be used here."""
    program = shutil.which("bwrap", path=path)
    if program is None:
        return "bubblewrap is not installed (on Debian or Ubuntu: apt install bubblewrap)"
    probe = [program, *NAMESPACES, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be run: {error}"
    if done.returncode != 0:
        return f"bubblewrap may not make namespaces here ({done.stderr.strip() or done.returncode})"
    return Bubblewrap(program)


def _system() -> list[str]:
    arguments: list[str] = []
    for folder in SYSTEM:
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    return arguments


def _mounts(view: SandboxView) -> list[str]:
    """From the outermost to the innermost, so that each lies upon those around it. On a tie what is hidden
    wins over what may be written, and that over what may be read."""
    ranked = [
        *((path, 0) for path in view.readable),
        *((path, 1) for path in view.writable),
        *((path, 2) for path in view.hidden),
    ]
    opened = [Path(folder) for folder in SYSTEM]
    arguments: list[str] = []
    for path, rank in sorted(ranked, key=lambda entry: (len(entry[0].parts), entry[1])):
        if rank < 2:
            opened.append(path)
            arguments += [("--ro-bind", "--bind")[rank], str(path), str(path)]
        elif any(path.is_relative_to(folder) for folder in opened):
            # Elsewhere it is not there at all, and no empty folder tells its name.
            arguments += ["--tmpfs", str(path)] if path.is_dir() else ["--ro-bind", "/dev/null", str(path)]
    return arguments
