"""Real processes, really killed, thirty times: the tables come out row for row as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.campaign import MANY, Campaign
from tests.spark.lakes import fill, same

LONGEST_S = 1100


def came_through(spark: Any, campaign: Campaign, folder: Path) -> None:
    """All died as planned, and the tables are those of one run that nobody disturbed."""
    campaign.wait(LONGEST_S)
    try:
        found = [kill.victim for kill in campaign.fate.kills]
        for kind in {kind for _, victims in campaign.deaths for kind in victims}:
            assert found.count(kind) == sum(victims.get(kind, 0) for _, victims in campaign.deaths), kind
        whole = Lake(str(folder / "whole"))
        fill(spark, whole, campaign.store)
        same(campaign.lake, whole)
    except BaseException as error:
        error.add_note(campaign.told)
        raise


@pytest.mark.timeout(1200)
def test_thirty_times_kill_nine_at_random_points_changes_no_row(
    spark: Any, tmp_path: Path, thirty: Campaign
) -> None:
    assert sum(count for _, victims in thirty.deaths for count in victims.values()) == 30
    came_through(spark, thirty, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(2400)
def test_many_kills_change_no_row(spark: Any, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, MANY)
    try:
        came_through(spark, campaign, tmp_path)
    finally:
        campaign.end()


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
@pytest.mark.timeout(900)
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
@pytest.mark.timeout(900)
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
