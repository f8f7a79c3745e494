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
from tests.spark.fate import Driver, Fate, planned
from tests.spark.lakes import END, fill, happen, same

SEED = "POSTROOM_TEST_SEED"
"""Set it to what a failure told, to kill in the same order at the same questions."""

HOME, CLUSTER = "local[2,3]", "local-cluster[1,1,512]"
Deaths = tuple[str, dict[str, int]]
"""Where the driver runs, and how many of each kind die there."""


@pytest.mark.parametrize(
    "deaths",
    [
        pytest.param(
            ((HOME, {"worker": 22, "daemon": 2, "jvm": 1, "driver": 2}), (CLUSTER, {"executor": 3})),
            id="thirty",
            marks=pytest.mark.timeout(900),
        ),
        pytest.param(
            (
                (HOME, {"worker": 20, "daemon": 4, "jvm": 8, "driver": 8}),
                ("local[2]", {"worker": 10, "jvm": 5, "driver": 5}),
                ("local-cluster[2,1,512]", {"executor": 8}),
            ),
            id="many",
            marks=[pytest.mark.slow, pytest.mark.timeout(2400)],
        ),
    ],
)
def test_kill_nine_at_random_points_changes_no_row(
    spark: Any, tmp_path: Path, deaths: tuple[Deaths, ...]
) -> None:
    """Mail comes in all the time; runs are killed and begun again until every planned kill was carried out."""
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))
    generate(tmp_path / "room.db", Month(end=END, days=0.5, per_day=60, seed=5))
    store, lake = open_source(str(tmp_path / "room.db")), Lake(str(tmp_path / "lake"))
    rng, fate = random.Random(seed), Fate(tmp_path)
    try:
        for master, victims in deaths:
            fate.plan(planned(rng, victims))
            suffer(Driver(fate, master), store, lake, to_the_end=master == deaths[-1][0])
        found = [kill.victim for kill in fate.kills]
        for kind in {kind for _, victims in deaths for kind in victims}:
            assert found.count(kind) == sum(victims.get(kind, 0) for _, victims in deaths), kind
        whole = Lake(str(tmp_path / "whole"))
        fill(spark, whole, store)
        same(lake, whole)
    except BaseException as error:
        error.add_note(f"{SEED}={seed}: {fate.kills}")
        raise
    finally:
        fate.close()


def suffer(driver: Driver, store: SqliteSource, lake: Lake, *, to_the_end: bool) -> None:
    """Runs until all have died who should; to the end is until a run has come through after that."""
    fate = driver.fate
    planned, most = len(fate.plans), 3 * len(fate.plans) + 20
    try:
        for _ in range(most):
            through = driver.run(store.path, lake.location)
            if fate.done and (through or not to_the_end):
                return
            if through:
                happen(store)
    finally:
        driver.bury()
    raise AssertionError(
        f"{planned} deaths and a run that comes through took over {most} runs: {driver.problem}"
    )


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
