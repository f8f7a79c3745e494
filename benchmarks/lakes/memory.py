"""What the process tree used while a block ran: the most memory at one time, and how busy others were."""

import os
import threading
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


class Watch:
    def __init__(self, every_s: float = 1.0) -> None:
        self._every = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._spent: dict[int, float] = {}
        self._lock = threading.Lock()
        self.megabytes = 0.0
        self.others = 0.0
        """The share of the machine's cores that programs other than ours took."""

    def __enter__(self) -> "Watch":
        self._began = (time.monotonic(), _busy(), self.spend())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        at, busy, ours = self._began
        room = (time.monotonic() - at) * (os.cpu_count() or 1)
        self.others = max(0.0, (_busy() - busy) - (self.spend() - ours)) / max(room, 1e-6)

    def _look(self) -> None:
        while not self._stop.wait(self._every):
            self.spend()
            self.megabytes = max(self.megabytes, sum(map(_megabytes, tree(os.getpid()))))

    def spend(self) -> float:
        """Processor seconds of the tree so far; those of processes that have ended are remembered."""
        with self._lock:
            for pid in tree(os.getpid()):
                self._spent[pid] = max(_spent(pid), self._spent.get(pid, 0.0))
            return sum(self._spent.values())


def tree(root: int) -> set[int]:
    """This process and all that descend from it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue  # it has just ended
    wanted, grown = {root}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in wanted} - wanted
        wanted |= more
        grown = bool(more)
    return wanted


def _megabytes(pid: int) -> float:
    """Proportional set size: pages that several processes share are counted once."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass  # it has just ended
    return 0.0


def _spent(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    except (OSError, IndexError):
        return 0.0


def _busy() -> float:
    user, nice, system, _, _, irq, soft, steal, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + soft + steal) / _TICKS
