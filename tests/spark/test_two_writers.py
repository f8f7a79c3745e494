"""Two processes on one lake of an object store: the second is refused, and the first, when it overslept."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.errors import PipelineBusy
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.lease import read_holder
from postroom.pipeline.lake.object_lease import LEASE_VARIABLE
from postroom.pipeline.lake.tables import LEDGER
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.lakes import fill, same
from tests.spark.mortal import FATE

ROOT = Path(__file__).parents[2]
LEASE_S = 4


class Barrier:
    """Answers every question of `mortal` at once, but the one that it holds back until it is opened."""

    def __init__(self, folder: Path, where: str) -> None:
        self.address = str(folder / "barrier")
        self.reached, self.open = threading.Event(), threading.Event()
        self._where = where
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(self.address)
        self._server.listen(64)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                line, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        with line:
            if self._where in line.recv(200).decode():
                self.reached.set()
                self.open.wait(300)
            line.send(b"1")

    def close(self) -> None:
        self.open.set()
        self._server.close()


@pytest.fixture
def barrier(tmp_path: Path) -> Iterator[Barrier]:
    barrier = Barrier(tmp_path, f"before the commit of {LEDGER.name}")
    yield barrier
    barrier.close()


@pytest.fixture
def other(bucket: str, barrier: Barrier, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A driver in a process of its own, with a lease that lapses soon when it is not renewed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), FATE: barrier.address, LEASE_VARIABLE: str(LEASE_S)}
    with (tmp_path / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.mortal", "drive", "local[1]"],
            env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def hear(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "the driver died"
    return json.loads(line)


def test_of_two_processes_on_an_object_store_neither_doubles_nor_loses_a_row(
    spark: Any,
    bucket: str,
    month: SqliteSource,
    filled: Lake,
    barrier: Barrier,
    other: "subprocess.Popen[str]",
) -> None:
    lake = Lake(f"{bucket}/two-writers")
    assert "ready" in hear(other)
    assert other.stdin is not None
    other.stdin.write(json.dumps([month.path, lake.location]) + "\n")
    other.stdin.flush()
    # Its files of bronze are written, and it is about to commit them.
    assert barrier.reached.wait(120)
    with pytest.raises(PipelineBusy, match=f"pid {other.pid}"):
        fill(spark, lake, month)
    # It sleeps for longer than its lease lasts, as a machine does that is suspended or swaps.
    os.kill(other.pid, signal.SIGSTOP)
    end = time.monotonic() + 60
    while read_holder(lake) is not None:
        assert time.monotonic() < end
        time.sleep(0.2)
    fill(spark, lake, month)
    barrier.open.set()
    os.kill(other.pid, signal.SIGCONT)
    said = hear(other)
    assert said.get("failed") in ("LAKE_LEASE_LOST", "LAKE_MOVED"), said
    same(lake, filled)
