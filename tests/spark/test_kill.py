"""Real processes, really killed, thirty times: the tables come out row for row as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.generator.month import Plan as Month
from postroom.pipeline.generator.month import generate
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource, open_source
from tests.spark.conftest import END, fill
from tests.spark.fate import Driver, Fate, planned
from tests.spark.test_exactly_once import same
from tests.spark.test_incremental import happen

SEED = "POSTROOM_TEST_SEED"
"""Set it to what a failure told, to kill in the same order at the same questions."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("master", "victims"),
    [
        pytest.param("local[2,3]", {"worker": 16, "daemon": 3, "jvm": 3, "driver": 3}, id="at home"),
        pytest.param("local-cluster[2,1,512]", {"executor": 5}, id="on a cluster"),
        pytest.param("local[2]", {"worker": 10, "jvm": 10, "driver": 10}, id="long", marks=pytest.mark.slow),
    ],
)
def test_kill_nine_at_random_points_changes_no_row(
    spark: Any, tmp_path: Path, master: str, victims: dict[str, int]
) -> None:
    """Mail comes in all the time; runs are killed and begun again until every planned kill was carried out."""
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))
    generate(tmp_path / "room.db", Month(end=END, days=0.5, per_day=60, seed=5))
    store, lake = open_source(str(tmp_path / "room.db")), Lake(str(tmp_path / "lake"))
    fate = Fate(tmp_path, planned(random.Random(seed), victims))
    driver = Driver(fate, master)
    try:
        while not fate.done:
            if driver.run(store.path, lake.location):
                happen(store)
        while not driver.run(store.path, lake.location):
            pass
    finally:
        driver.bury()
        fate.close()
    told = f"{SEED}={seed}: {fate.kills}"
    assert {kind: sum(kill.victim == kind for kill in fate.kills) for kind in victims} == victims, told
    whole = Lake(str(tmp_path / "whole"))
    fill(spark, whole, store)
    try:
        same(lake, whole)
    except AssertionError as error:
        raise AssertionError(told) from error


def command(month: SqliteSource, lake: Path) -> "subprocess.Popen[str]":
    words = ["pipeline", "run", "--store", month.path, "--lake", str(lake), "--json", "--master", "local[2]"]
    return subprocess.Popen(
        [sys.executable, "-m", "postroom", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.slow
def test_the_command_is_killed_with_all_its_processes_and_the_next_one_goes_on(
    month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    rng, lake = random.Random(4), tmp_path / "lake"
    for _ in range(6):
        process = command(month, lake)
        assert process.stderr is not None
        # Some lines of progress, then the end of the whole tree, without a word of warning.
        for _ in range(rng.randrange(1, 12)):
            if not process.stderr.readline():
                break
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    process = command(month, lake)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said[-3000:]
    same(Lake(str(lake)), filled)


@pytest.mark.slow
def test_an_interrupt_ends_the_run_and_the_next_one_goes_on(
    month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    process = command(month, tmp_path / "lake")
    assert process.stderr is not None
    for line in process.stderr:
        if '"bronze"' in line and '"finished": true' in line:
            break
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said[-2000:]
    process = command(month, tmp_path / "lake")
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said[-2000:]
    same(Lake(str(tmp_path / "lake")), filled)
