"""Confines itself by Landlock and becomes the program. A file to be executed, not imported.

    python -I -S confine.py LIBRARY RULES PROGRAM ARGUMENT…

LIBRARY is where the package `landlockpy` lies, and RULES a JSON object with the paths that are `readable` and
`writable`. If it cannot confine itself, it ends, and the program is never run.
"""

import ctypes
import json
import os
import stat
import sys

PR_CAPBSET_DROP = 24
CAPABILITIES = 64  # more than there are


def drop_capabilities() -> None:
    """Root may read of other processes what Landlock would keep from anybody else."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        for capability in range(CAPABILITIES):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def main(arguments: list[str]) -> None:
    library, rules, command = arguments[0], json.loads(arguments[1]), arguments[2:]
    sys.path.append(library)
    from landlockpy import AccessFS, AccessNet, Ruleset, Scope, fs_for_abi

    on_files = (
        AccessFS.EXECUTE
        | AccessFS.WRITE_FILE
        | AccessFS.READ_FILE
        | AccessFS.TRUNCATE
        | AccessFS.IOCTL_DEV
        | AccessFS.RESOLVE_UNIX
    )
    read = AccessFS.EXECUTE | AccessFS.READ_FILE | AccessFS.READ_DIR
    scoped = Scope.SIGNAL | Scope.ABSTRACT_UNIX_SOCKET
    with Ruleset(handled_net=AccessNet.NONE, scoped=scoped) as ruleset:
        write = fs_for_abi(ruleset.abi_version)
        for paths, access in ((rules["readable"], read), (rules["writable"], write)):
            for path in paths:
                try:
                    is_folder = stat.S_ISDIR(os.stat(path).st_mode)
                    ruleset.allow_path(path, access if is_folder else access & on_files)
                except FileNotFoundError:
                    continue
        drop_capabilities()
        ruleset.restrict()
    os.execv(command[0], command)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, ImportError) as error:
        sys.exit(f"postroom: the sandbox could not be set up: {error}")
