"""Answers costly checks in a child process: started when one is needed, replaced when one ended it."""

import logging
import select
import subprocess
import sys
import threading
from collections.abc import Sequence

import msgspec

from postroom.errors import PostroomError
from postroom.kernel.check_worker import read_frame, write_frame
from postroom.kernel.costly_checks import CheckAnswer, CostlyCheck

log = logging.getLogger("postroom.checks")

# By the clock: far more than any check may take of the processor, for a machine that has no time at all.
PATIENCE_S = 60.0
ALL_S = 2.0
EACH_S = 0.02


class CheckWorkerFailed(PostroomError):
    """The process that tries rules and schemas did not start ({why}). Nothing was changed; try it again."""

    code = "CHECK_WORKER_FAILED"
    http_status = 503


class CheckRunner:
    """May be used by several threads, which wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def answer(self, checks: Sequence[CostlyCheck]) -> dict[bytes, CheckAnswer]:
        """All of one command, which together have a limit too; what comes behind it is not tried."""
        found: dict[bytes, CheckAnswer] = {}
        rest_s = ALL_S + EACH_S * len(checks)
        for check in checks:
            if check.key in found:
                continue
            if rest_s <= 0:
                found[check.key] = CheckAnswer(in_time=False, seconds=check.seconds)
                continue
            with self._lock:
                found[check.key] = self._answer_one(check)
            rest_s -= found[check.key].seconds
        return found

    def close(self) -> None:
        with self._lock:
            self._end()

    def _answer_one(self, check: CostlyCheck) -> CheckAnswer:
        child = self._child = self._child or _start()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            write_frame(child.stdin, msgspec.msgpack.encode(check))
            frame = read_frame(child.stdout) if _is_readable(child, PATIENCE_S) else None
        except OSError:
            frame = None
        if frame is not None:
            return msgspec.msgpack.decode(frame, type=CheckAnswer)
        self._end()
        log.warning(
            "a %s took more than %s s and was stopped (%s)", check.kind, check.seconds, child.returncode
        )
        return CheckAnswer(in_time=False, seconds=check.seconds)

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            with child:  # closes the pipes and waits
                pass


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "postroom.kernel.check_worker"]
    # A session of its own: whoever stops this process at a terminal does not end a check with it.
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert child.stdout is not None
    if not _is_readable(child, PATIENCE_S) or read_frame(child.stdout) != b"ready":
        child.kill()
        with child:
            pass
        raise CheckWorkerFailed(why=f"it ended with {child.returncode}")
    return child


def _is_readable(child: subprocess.Popen[bytes], seconds: float) -> bool:
    poll = select.poll()
    poll.register(child.stdout or 0, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
