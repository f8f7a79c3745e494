"""Ctrl-C ends a run in a line, wherever it is: no words of Java, no rows lost, and the next run goes on."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import ALL
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.lakes import fill, same

# Whoever was started in the background passes on that interrupts are ignored; on a terminal they are not.
RUN = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("postroom", run_name="__main__", alter_sys=True)
"""


def test_an_interrupt_leaves_no_words_of_java_and_a_lake_that_goes_on(
    spark: Any, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    place = tmp_path / "lake"
    words = ["pipeline", "run", "--store", month.path, "--lake", str(place), "--json", "--few", "0"]
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line)["progress"]["step"] == "bronze":
            break
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130, rest
    assert [line for line in rest.splitlines() if "progress" not in json.loads(line)] == []
    lake = Lake(str(place))
    fill(spark, lake, month)
    assert all(lake.exists(table) == filled.exists(table) for table in ALL)
    same(lake, filled)
