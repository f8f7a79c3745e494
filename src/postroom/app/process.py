"""Starting the server in the background, and asking it to stop."""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from postroom.app.home import Home
from postroom.app.roles import ProcessRole, Running, check_shared, running
from postroom.errors import PostroomError

READY_FD = "POSTROOM_READY_FD"
START_S = 30.0
STOP_S = 30.0
OUTPUT = "daemon.out"
_LOOK_S = 0.02
# Appended to, so that two who start at once do not write over each other.
_OPEN = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC


class NotStarted(PostroomError):
    """Postroom did not start: {reason}. See: postroom logs"""

    code = "NOT_STARTED"
    exit_code = 6


class NotRunning(PostroomError):
    """Postroom does not run. Start it with: postroom start"""

    code = "NOT_RUNNING"
    exit_code = 4


class NotStopped(PostroomError):
    """Process {pid} does not end. Look at it, or end it with: kill -9 {pid}"""

    code = "NOT_STOPPED"


def start(
    home: Home,
    roles: frozenset[ProcessRole],
    *,
    patience_s: float = START_S,
    environment: Mapping[str, str] = os.environ,
) -> Running:
    """A process of its own, which outlives the terminal. Returns when it is ready."""
    home.make()
    for found in running(home.run):
        if roles & set(found.roles):
            check_shared(found, roles, _digest_of_store(home, environment))
    read_end, write_end = os.pipe()
    output = os.open(home.logs / OUTPUT, _OPEN, 0o600)
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "postroom", "start", "--foreground", "--roles", ",".join(sorted(roles))],
            env={**environment, READY_FD: str(write_end), "POSTROOM_HOME": str(home.path)},
            cwd=home.path,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(write_end,),
            start_new_session=True,
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
        os.close(output)
    try:
        said = _hear(read_end, patience_s)
    finally:
        os.close(read_end)
    if said != b"ready":
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1)
        if child.poll() is None:
            child.terminate()
            raise NotStarted(reason=f"it was not ready within {patience_s:g} seconds")
        raise NotStarted(reason=_why(home, child.returncode))
    # It is not our child any more: whoever asked for it goes away first.
    child.returncode = 0
    for found in running(home.run):
        if found.pid == child.pid:
            return found
    raise NotStarted(reason="it closed again at once")


def _digest_of_store(home: Home, environment: Mapping[str, str]) -> str | None:
    # Read only when somebody runs already: a first start need not wait for it.
    from postroom.app.store import store_digest, store_url
    from postroom.settings import with_environment

    settings = with_environment(home.settings.load(), environment)
    return store_digest(store_url(home, settings, environment))


def _hear(pipe: int, patience_s: float) -> bytes:
    ready, _, _ = select.select([pipe], [], [], patience_s)
    return os.read(pipe, 64) if ready else b""


def _why(home: Home, code: int) -> str:
    if code < 0:
        return f"it was ended by {signal.Signals(-code).name}"
    with contextlib.suppress(OSError):
        lines = (home.logs / OUTPUT).read_text("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1].removeprefix("error: ").rstrip(".")
    return "it ended at once"


def say_ready() -> None:
    """To whoever started this process in the background and waits."""
    handle = os.environ.pop(READY_FD, "")
    if handle.isdecimal():
        with contextlib.suppress(OSError):
            os.write(int(handle), b"ready")
            os.close(int(handle))


def stop(
    home: Home, *, patience_s: float = STOP_S, tell: Callable[[str], None] = lambda text: None
) -> Sequence[int]:
    """Ask every process of this home to close; one that does not within `patience_s` is killed, which loses
    nothing that was accepted. Returns who was stopped."""
    asked = [found.pid for found in running(home.run)]
    for pid in asked:
        _signal(pid, signal.SIGTERM)
    late = _wait(home, asked, patience_s)
    for pid in late:
        tell(f"process {pid} did not close within {patience_s:g} s and is killed")
        _signal(pid, signal.SIGKILL)
    if late := _wait(home, late, 5.0):
        raise NotStopped(pid=late[0])
    return asked


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait(home: Home, pids: Sequence[int], patience_s: float) -> list[int]:
    """Those of them that still hold a post when the time is over."""
    end = time.monotonic() + patience_s
    while True:
        left = [pid for pid in pids if pid in {found.pid for found in running(home.run)}]
        if not left or time.monotonic() >= end:
            return left
        time.sleep(_LOOK_S)
