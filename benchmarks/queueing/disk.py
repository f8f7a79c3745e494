"""Where to measure: on a disk that really syncs, never in memory; and how long it takes to sync."""

import os
import statistics
import tempfile
import time
from pathlib import Path

IN_MEMORY = ("tmpfs", "ramfs")


def file_system(folder: Path) -> str:
    """The kind of file system that a folder lies on, as the kernel names it, if it does."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return "unknown"
    best, kind = "", "unknown"
    here = folder.resolve()
    for line in mounts.read_text("utf-8").splitlines():
        _, point, found, *_ = line.split()
        if here.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, found
    return kind


def real_disk() -> Path:
    for folder in (Path("/var/tmp"), Path(tempfile.gettempdir()), Path.cwd()):
        if folder.is_dir() and file_system(folder) not in IN_MEMORY:
            return folder
    raise SystemExit("no folder on a real disk was found; name one with --folder")


def sync_time(folder: Path, times: int = 200) -> float:
    """The median milliseconds of a plain write of one page with its sync: what no queue can go below."""
    spent = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for number in range(times):
            started = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * 4096, number * 4096)
            os.fdatasync(file.fileno())
            spent.append(time.perf_counter() - started)
    return statistics.median(spent) * 1000
