"""The same job on a standalone cluster and through Spark Connect fills the same lake as at home."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyspark
import pytest

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.lakes import same

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HOME = os.path.dirname(pyspark.__file__)
ENV = {
    **os.environ,
    "SPARK_HOME": HOME,
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_NO_DAEMONIZE": "1",
}


@contextmanager
def started(log: Path, ready: str, *words: str, within: tuple[str, ...] = (), **more: str) -> Iterator[str]:
    """A process of Spark; the line of its log that says it is ready. It is ended with all it started.

    `within` is a command that starts it in surroundings of its own, `more` its environment.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*within, f"{HOME}/bin/{words[0]}", *words[1:]],
            env={
                **ENV,
                "SPARK_WORKER_DIR": str(log.parent / "work"),
                "SPARK_LOG_DIR": str(log.parent),
                **more,
            },
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        with log.open() as said:
            yield _wait(process, said, ready)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process: "subprocess.Popen[bytes]", said: IO[str], ready: str) -> str:
    until, lines = time.monotonic() + 180, []
    while time.monotonic() < until and process.poll() is None:
        line = said.readline()
        lines.append(line)
        if re.search(ready, line):
            return line
        if not line:
            time.sleep(0.2)  # a log is only to be had by looking again
    raise AssertionError("".join(lines[-30:]))


def pipeline(month: SqliteSource, lake: Path, *more: str, **env: str) -> Lake:
    words = ["pipeline", "run", "--store", month.path, "--lake", str(lake), "--json", *more]
    done = subprocess.run(
        [sys.executable, "-m", "postroom", *words],
        env={**ENV, **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Lake(str(lake))


def test_on_a_standalone_cluster_of_two_workers(month: SqliteSource, filled: Lake, tmp_path: Path) -> None:
    master = ("spark-class", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
    with started(tmp_path / "master.log", "Starting Spark master at", *master, "--webui-port", "0") as line:
        found = re.search(r"spark://[\d.]+:\d+", line)
        assert found is not None
        worker = (
            "spark-class",
            "org.apache.spark.deploy.worker.Worker",
            found[0],
            "-c",
            "1",
            "-m",
            "1g",
            "--webui-port",
            "0",
        )
        with (
            started(tmp_path / "one.log", "registered with master", *worker),
            started(tmp_path / "two.log", "registered with master", *worker),
        ):
            same(pipeline(month, tmp_path / "lake", "--master", found[0]), filled)


def test_through_spark_connect(month: SqliteSource, filled: Lake, tmp_path: Path) -> None:
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = (
        "spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master", "local[2]", "--driver-memory", "1g", "--conf", f"spark.connect.grpc.binding.port={port}",
        "--conf", "spark.connect.grpc.binding.address=127.0.0.1", "--conf", "spark.ui.enabled=false",
        "--conf", "spark.sql.shuffle.partitions=2", "spark-internal",
    )  # fmt: skip
    with started(tmp_path / "connect.log", "Spark Connect server started", *server):
        same(pipeline(month, tmp_path / "lake", "--remote", f"sc://127.0.0.1:{port}"), filled)
