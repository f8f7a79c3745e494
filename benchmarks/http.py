"""The HTTP benchmark: accepting messages against the same application with an empty handler, live events, and
what a server costs that has nothing to do.

`scripts/bench http` takes about a minute and a half; `--quick` only shows that everything runs.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.queueing.disk import real_disk
from benchmarks.web import report
from benchmarks.web.client import load, request
from benchmarks.web.queue_calls import calling
from benchmarks.web.resting import resting
from benchmarks.web.server import TOKEN

RESULTS = Path(__file__).parent / "results" / "http.json"
CONNECTIONS = 64
LISTENERS = 500
EVENTS_A_SECOND = 200


def mail(prefix: str) -> Callable[[int], bytes]:
    return lambda n: request(
        "/api/message", TOKEN, {"message": f"@coder {n}", "channel": "web", "sender": prefix}
    )


def nothing(n: int) -> bytes:
    return request("/api/empty", TOKEN, {"message": f"@coder {n}", "channel": "web", "sender": "x"})


def figures(took: list[float], seconds: float) -> dict[str, float]:
    return {
        "a second": round(len(took) / seconds, 1),
        "p50 ms": round(statistics.median(took) * 1000, 2),
        "p99 ms": round(sorted(took)[int(len(took) * 0.99)] * 1000, 2),
    }


def accepting(port: int, seconds: float, rounds: int) -> dict[str, Any]:
    """Alternately, so that whatever else the machine does falls on both."""
    empty: list[float] = []
    real: list[float] = []
    load(port, nothing, connections=CONNECTIONS, seconds=seconds / 2)
    for number in range(rounds):
        empty += load(port, nothing, connections=CONNECTIONS, seconds=seconds)
        real += load(port, mail(f"r{number}"), connections=CONNECTIONS, seconds=seconds)
    ours, theirs = figures(real, seconds * rounds), figures(empty, seconds * rounds)
    return {
        "POST /api/message": ours,
        "empty handler": theirs,
        "share": round(ours["a second"] / theirs["a second"], 3),
        "targets": {"share": ">= 0.5", "p99 ms": "< 50"},
        "met": ours["a second"] >= 0.5 * theirs["a second"] and ours["p99 ms"] < 50,
    }


def listening(port: int, seconds: float, count: int) -> dict[str, Any]:
    """Every message is told in two generations of names, so half as many messages as events."""
    rate = EVENTS_A_SECOND / 2
    before = load(port, mail("b"), connections=4, seconds=seconds, rate=rate)
    time.sleep(seconds)  # or some listeners would hear the end of the much mail before, and others not
    command = [sys.executable, "-m", "benchmarks.web.listeners", str(port), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as listeners:
        assert listeners.stdin is not None
        assert listeners.stdout is not None
        assert listeners.stdout.readline() == "ready\n"
        during = load(port, mail("d"), connections=4, seconds=seconds, rate=rate)
        listeners.stdin.write(f"{2 * len(during)}\n")
        listeners.stdin.flush()
        heard = json.loads(listeners.stdout.readline())
    alone, together = figures(before, seconds), figures(during, seconds)
    whole = (
        heard["fewest"] == heard["most"] == 2 * len(during) and heard["same for all"] and heard["in order"]
    )
    return {
        "listeners": count,
        "events a second to each": round(heard["fewest"] / seconds, 1),
        "without a gap and in order": whole,
        "POST alone": alone,
        "POST beside": together,
        "targets": {"p50": "at most doubled", "gaps": "none"},
        "met": whole and together["p50 ms"] <= 2 * alone["p50 ms"],
    }


def where() -> dict[str, Any]:
    machine = f"{platform.system()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine,
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench http", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few seconds; the figures mean nothing")
    parser.add_argument("--gate", action="store_true", help="exit with 1 when a target is missed")
    parser.add_argument("--against", metavar="REV", help="also measure /v1 beside this commit")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="postroom-bench-", dir=real_disk()))
    command = [sys.executable, "-m", "benchmarks.web.server", str(folder)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        seconds, rounds = (1.0, 1) if chosen.quick else (4.0, 3)
        found: dict[str, Any] = {
            "where": where(),
            "accepting": accepting(port, seconds, rounds),
            "listening": listening(port, 2.0 if chosen.quick else 10.0, 50 if chosen.quick else LISTENERS),
        }
        server.kill()
        found["resting"] = resting(folder, 2.0 if chosen.quick else 20.0, 1 if chosen.quick else 3)
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    if chosen.against:
        found["calling"] = calling(chosen.against, 100 if chosen.quick else 1000, 1 if chosen.quick else 5)
    print(json.dumps(found, indent=2))
    if not chosen.quick:
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")
        report.write(found)
    missed = [name for name, case in found.items() if not case.get("met", True)]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)
    return 1 if chosen.gate and missed else 0


if __name__ == "__main__":
    sys.exit(main())
