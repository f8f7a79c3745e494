"""Runs one program and answers for everything that program starts. A file to be executed, not imported.

    python -I -S minder.py LIFELINE STATUS TERM_SECONDS WRAPPERS PROGRAM ARGUMENT…

It makes itself the reaper of orphans, so that no descendant can get away: not by leaving the process group,
not by a session of its own, not by outliving its parent. Everything is ended when the program exits, and when
the lifeline closes: that is how its owner orders it, and what happens by itself if the owner is killed. Then
it writes one line of JSON to STATUS. The program inherits stdin, stdout and stderr; nothing is copied.

PROGRAM may be a sandbox around the one that matters, of so many processes as WRAPPERS says. They are spared
when all are asked to end, since their end is sudden death to those inside.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable

PR_SET_CHILD_SUBREAPER = 36
EXITING = 0.1  # seconds in which children of a program that is gone may follow it by themselves
LINGER = 0.5  # seconds that leftovers get after SIGTERM
GIVE_UP = 5.0  # seconds after the first SIGKILL; only what may not be killed lives that long
ORDERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Minder:
    def __init__(self, lifeline: int, term: float, wrappers: int) -> None:
        self.lifeline = lifeline
        self.term = term
        self.wrappers = wrappers
        self.program = 0
        self.status: int | None = None
        self.ordered = False
        self.ended_it = False
        self.alarm, alarm_in = os.pipe()
        os.set_blocking(self.alarm, False)
        os.set_blocking(alarm_in, False)
        signal.set_wakeup_fd(alarm_in, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for order in ORDERS:
            signal.signal(order, self.take_order)

    def take_order(self, *_: object) -> None:
        self.ordered = True

    def start(self, command: list[str]) -> None:
        self.program = os.posix_spawn(
            command[0],
            command,
            os.environ,
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGQUIT, *ORDERS],
        )
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)

    def run(self) -> tuple[int, int]:
        """How many were left behind when the program was gone, and how many could not be ended."""
        while self.reap() and self.status is None and not self.ordered:
            self.wait(None)
        self.ended_it = self.status is None
        if self.ended_it:
            self.end(self.term, lambda: self.status is None)
        following = time.monotonic() + EXITING
        while self.reap() and time.monotonic() < following and not self.ordered:
            self.wait(0.01)
        left = len(descendants(os.getpid()))
        self.end(LINGER, lambda: True)
        return left, len(descendants(os.getpid()))

    def end(self, patience: float, wanted: Callable[[], bool]) -> None:
        """SIGTERM to all, then SIGKILL to all, until nobody is left or no more is wanted."""
        if not self.reap():
            return
        self.signal_all(signal.SIGTERM)
        killing = time.monotonic() + patience
        while self.reap() and wanted():
            now = time.monotonic()
            if now > killing + GIVE_UP:
                return
            if now >= killing:
                self.signal_all(signal.SIGKILL)
                self.wait(0.02)
            else:
                self.wait(min(0.05, killing - now))

    def signal_all(self, number: int) -> None:
        spared: set[int] = set()
        if number == signal.SIGTERM and self.wrappers and self.status is None:
            spared = self.living_wrappers()
        elif self.status is None:
            send(-self.program, number)
        for pid in descendants(os.getpid()):
            if pid not in spared:
                send(pid, number)

    def living_wrappers(self) -> set[int]:
        found = [self.program]
        while len(found) < self.wrappers and len(below := children_of(found[-1])) == 1:
            found += below
        return set(found)

    def reap(self) -> bool:
        """Whether any child is left; as the reaper of orphans we have a child while a descendant lives."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.program:
                self.status = status

    def wait(self, seconds: float | None) -> None:
        watch = select.poll()  # select() cannot watch the high descriptors a busy owner hands down
        watch.register(self.alarm, select.POLLIN)
        if not self.ordered:
            watch.register(self.lifeline, select.POLLIN | select.POLLHUP)
        for ready, _ in watch.poll(None if seconds is None else seconds * 1000):
            if ready == self.alarm:
                os.read(self.alarm, 4096)
            else:
                self.ordered = True


def descendants(ancestor: int) -> list[int]:
    """Living processes below `ancestor`. A zombie is none, but may have children while a thread lives."""
    children, dead = process_table()
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.extend(below)
        waiting.extend(below)
    return [pid for pid in found if pid not in dead]


def children_of(parent: int) -> list[int]:
    children, dead = process_table()
    return [pid for pid in children.get(parent, []) if pid not in dead]


def process_table() -> tuple[dict[int, list[int]], set[int]]:
    """The children of each process, and which processes are dead but not gone."""
    children: dict[int, list[int]] = {}
    dead: set[int] = set()
    try:
        names = os.listdir("/proc")
    except OSError:
        return children, dead
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue
        children.setdefault(int(parent), []).append(int(name))
        if state in (b"Z", b"X"):
            dead.add(int(name))
    return children, dead


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def exit_code(status: int, wrapped: bool) -> int:
    """Negative for a signal. A sandbox tells of a signal inside as shells do."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if wrapped and code > 128 else code


def become_reaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def main(arguments: list[str]) -> None:
    lifeline, status, term = int(arguments[0]), int(arguments[1]), float(arguments[2])
    wrappers, command = int(arguments[3]), arguments[4:]
    os.set_inheritable(lifeline, False)
    os.set_inheritable(status, False)
    report: dict[str, int] = {}
    try:
        become_reaper()
        minder = Minder(lifeline, term, wrappers)
        minder.start(command)
        report["left"], report["survivors"] = minder.run()
        report["ordered"] = minder.ended_it
        if minder.status is not None:
            report["code"] = exit_code(minder.status, wrappers > 0)
    except OSError as error:
        report["errno"] = error.errno or 0
    # JSON by hand: its module would take longer to load than everything else here.
    entries = [f'"{key}": {value:d}' for key, value in report.items()]
    os.write(status, b"{" + ", ".join(entries).encode() + b"}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
