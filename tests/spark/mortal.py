"""Processes of the pipeline that ask, at every turn, whether they may live on. Whoever answers may kill them.

As a program it is a driver that runs whenever a line tells it to; as Spark's daemon module it makes the workers
ask too. Nothing here dies by itself: that is done from outside, by SIGKILL.
"""

import json
import os
import socket
import sys
from typing import Any

from postroom.clock import SystemClock
from postroom.errors import PostroomError
from postroom.pipeline.lake.files import FileWriter, WrittenFile
from postroom.pipeline.lake.lake import Lake

FATE = "POSTROOM_TEST_FATE"


def ask(where: str) -> None:
    """Comes back when it may go on. A test that has ended answers nobody, and holds nobody up."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(os.environ[FATE])
            line.sendall(f"{os.getpid()} {where}\n".encode())
            line.recv(1)
    except OSError:
        pass


def beset() -> None:
    """Files and commits are where a kill could do harm."""
    write, close, commit = FileWriter.write, FileWriter.close, Lake.commit

    def writing(self: FileWriter, rows: Any) -> None:
        write(self, rows)
        ask("in a file")

    def closing(self: FileWriter, note: str = "") -> WrittenFile:
        written = close(self, note)
        ask("after a file")
        return written

    def committing(self: Lake, table: Any, *args: Any, **more: Any) -> None:
        ask(f"before the commit of {table.name}")
        commit(self, table, *args, **more)
        ask(f"after the commit of {table.name}")

    FileWriter.write, FileWriter.close, Lake.commit = writing, closing, committing


def drive(master: str) -> None:
    from pyspark import SparkContext

    from postroom.pipeline.jobs.run import Options, run
    from postroom.pipeline.jobs.session import JVM, Where, start
    from postroom.pipeline.sources.sqlite import open_source

    settings = {
        "spark.python.daemon.module": "tests.spark.mortal",
        f"spark.executorEnv.{FATE}": os.environ[FATE],
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": f"{JVM} -Xss4m",
    }
    where = Where(master=master, partitions=2, memory_mb=512, settings=settings)
    spark = start(where, "mortal")
    _say({"ready": os.getpid(), "jvm": SparkContext._gateway.proc.pid})  # type: ignore[union-attr]
    for line in sys.stdin:
        store, lake = json.loads(line)
        try:
            done = run(spark, Lake(lake), open_source(store), SystemClock(), Options(few=0))
            _say({"events": done.events})
        except PostroomError as error:
            _say({"failed": error.code, "because": str(error)})


def _say(document: dict[str, Any]) -> None:
    print(json.dumps(document), flush=True)


if __name__ == "__main__":
    beset()
    if len(sys.argv) > 2 and sys.argv[1] == "drive":
        drive(sys.argv[2])
    else:
        from postroom.pipeline.jobs.preloaded import manager

        manager()
