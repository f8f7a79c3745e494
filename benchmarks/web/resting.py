"""The server as a user starts it, with nothing to do: how soon it is ready, what it costs to keep it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SETTLE_S = 3.0


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def resting(folder: Path, seconds: float, starts: int) -> dict[str, Any]:
    ready: list[float] = []
    shares: list[float] = []
    resident = 0.0
    for number in range(starts):
        home = folder / f"home-{number % 2}"  # the third start finds an office that was there before
        began = time.perf_counter()
        server = subprocess.Popen(
            [sys.executable, "-m", "postroom", "start", "--foreground"],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "POSTROOM_HOME": str(home),
                "POSTROOM_API_PORT": "0",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line.startswith("postroom ready on"), line
            ready.append(time.perf_counter() - began)
            if number == 0:
                time.sleep(SETTLE_S)
                before = cpu_s(server.pid)
                time.sleep(seconds)
                shares.append((cpu_s(server.pid) - before) / seconds)
                resident = _resident_mb(server.pid)
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    slowest = max(ready)
    return {
        "start to ready s": round(slowest, 2),
        "share of a core": round(shares[0], 4),
        "resident MB": round(resident, 1),
        "targets": {"start to ready s": "< 3", "share of a core": "< 0.01", "resident MB": "< 200"},
        "met": slowest < 3 and shares[0] < 0.01 and resident < 200,
    }
