"""Processes of a turn found by the mark in their environment: the second net, if the minder was killed.

A process that replaced its environment is not found this way; while its minder lives it needs no mark.
"""

import contextlib
import os
import signal
import time

from postroom.providers.environment import TURN_MARK


def find_leftovers(turn_id: str) -> list[int]:
    """Living processes, of this user, that were started for this turn."""
    if not turn_id:
        return []
    return [int(name) for name in _process_names() if _belongs(name, turn_id)]


def end_leftovers(turn_id: str, patience: float = 2.0) -> int:
    """Kills them until none is found, or patience ends; returns how many were killed."""
    killed: set[int] = set()
    until = time.monotonic() + patience
    while (found := find_leftovers(turn_id)) and time.monotonic() < until:
        for pid in found:
            if _kill(pid, turn_id):
                killed.add(pid)
        time.sleep(0.01)
    return len(killed)


def _kill(pid: int, turn_id: str) -> bool:
    # The descriptor names this very process; the number alone may already belong to another.
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _belongs(str(pid), turn_id):
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True
        return False
    finally:
        os.close(handle)


def _process_names() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    except OSError:
        return []


def _belongs(name: str, turn_id: str) -> bool:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return f"{TURN_MARK}={turn_id}".encode() in file.read().split(b"\0")
    except OSError:
        return False
