"""A run as a process of its own, for the daemon's schedule and the portal: the office never waits."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

LONGEST_LOG = 10 << 20
# The rest of the environment holds other people's secrets, and a run needs none of them.
_NEEDED = (
    "PATH",
    "HOME",
    "LANG",
    "TZ",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "JAVA_HOME",
    "LD_LIBRARY_PATH",
    "POSTROOM_HOME",
)
_NEEDED_PARTS = (
    "LC_",
    "PYTHON",
    "VIRTUAL_ENV",
    "SPARK_",
    "PYSPARK_",
    "POSTROOM_SPARK_",
    "POSTROOM_LINEAGE",
    "OPENLINEAGE_",
    "AWS_",
    "HADOOP_",
)


def command_line(store: str, lake: str, *more: str) -> list[str]:
    """An address may hold a password, which everybody on the machine could read here: it goes by the
    environment."""
    named = [*([] if _is_address(store) else ["--store", store]), "--lake", lake]
    return [sys.executable, "-m", "postroom", "pipeline", "run", *named, "--json", *more]


def launch(
    store: str,
    lake: str,
    log: Path,
    *more: str,
    answer: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> "subprocess.Popen[bytes]":
    """Start it and come back at once. Its progress goes to the log, its last word to `answer`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        if log.stat().st_size > LONGEST_LOG:
            log.replace(log.with_name(f"{log.name}.1"))
    with log.open("ab") as said, (answer or log).open("wb" if answer else "ab") as told:
        process = subprocess.Popen(
            command_line(store, lake, *more),
            env={**needed(environment), **({"POSTROOM_STORE": store} if _is_address(store) else {})},
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=said,
            start_new_session=True,
        )
    # Before it has children of its own: whoever works in the office comes first.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, 10)
    return process


def _is_address(store: str) -> bool:
    return "://" in store


def needed(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name in _NEEDED or name.startswith(_NEEDED_PARTS)
    }
