"""Real processes, really killed, thirty times: the tables come out row for row as if nothing had happened."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from postroom.pipeline.jobs import lineage
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import BRONZE, EXPECTATIONS, GOLD, MEMORY, RUNS, SILVER
from postroom.pipeline.sources.sqlite import SqliteSource
from tests.spark.campaign import HOME, MANY, SEED, Campaign
from tests.spark.fate import Driver, Fate, Plan, planned, planned_by_step
from tests.spark.judge import judge_gold
from tests.spark.lakes import fill, same, same_but_revived

LONGEST_S = 1100


def came_through(spark: Any, campaign: Campaign, folder: Path) -> None:
    """All died as planned, and the tables are those of one run that nobody disturbed."""
    campaign.wait(LONGEST_S)
    try:
        found = [kill.victim for kill in campaign.fate.kills]
        for kind in {kind for _, victims in campaign.deaths for kind in victims}:
            assert found.count(kind) == sum(victims.get(kind, 0) for _, victims in campaign.deaths), kind
    except BaseException as error:
        error.add_note(campaign.told)
        raise
    compare_with_undisturbed(spark, campaign, folder)


def compare_with_undisturbed(spark: Any, campaign: Campaign, folder: Path) -> None:
    """Row for row with the tables of one run, and by an engine that shares no code with it."""
    try:
        whole = Lake(str(folder / "whole"))
        fill(spark, whole, campaign.store)
        same_but_revived(campaign.lake, whole)
        judge_gold(campaign.lake)
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
def test_many_kills_change_no_row(bucket: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    campaign = Campaign(tmp_path, MANY)
    try:
        campaign.wait(LONGEST_S)
        came_through(request.getfixturevalue("spark"), campaign, tmp_path)
    finally:
        campaign.end()


ORDER = ("bronze", "turns_clean", "message_life", "memory", "conversations", "gold")
"""Turns come first of those that run side by side: nothing that happens later brings their commit again."""
STEPS = {name: tuple(table.name for table in lineage.STEPS[name].writes) for name in ORDER}
STEPS["expectations"] = (EXPECTATIONS.name,)
STEPS["log"] = (RUNS.name,)


def die_at_every_step(rng: random.Random, victims: dict[str, int]) -> list[Plan]:
    """Twice at each step, four times in files."""
    return [*planned_by_step(rng, STEPS), *planned(rng, victims)]


@pytest.mark.slow
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("on", ["folder", "object store"])
def test_twenty_kills_spread_over_all_steps_change_no_row(
    bucket: str, request: pytest.FixtureRequest, tmp_path: Path, on: str
) -> None:
    """The session that compares begins when the killing is over: one that idles for half an hour beside it may
    be gone by then."""
    deaths = ((HOME, {"jvm": 2}),)
    lake = f"{bucket}/twenty" if on == "object store" else ""
    campaign = Campaign(tmp_path, deaths, lake, die_at_every_step)
    try:
        campaign.wait(LONGEST_S * 2)
        assert len(campaign.fate.kills) == 20
        for tables in STEPS.values():
            assert any(kill.where.rpartition(" ")[2] in tables for kill in campaign.fate.kills)
        compare_with_undisturbed(request.getfixturevalue("spark"), campaign, tmp_path)
    finally:
        campaign.end()


@pytest.mark.timeout(900)
def test_a_kill_at_a_commit_on_an_object_store_changes_no_row(
    spark: Any, bucket: str, month: SqliteSource, filled: Lake, tmp_path: Path
) -> None:
    """A sample of the twenty, always: one driver dies, and the next run is that of a session that stands."""
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))
    rng, lake = random.Random(seed), Lake(f"{bucket}/killed")
    table = rng.choice([table.name for table in (*BRONZE, *SILVER, *GOLD, *MEMORY)])
    moment = f"{rng.choice(('before', 'after'))} the commit of {table}"
    fate = Fate(tmp_path)
    driver = Driver(fate, HOME)
    try:
        fate.plan([Plan("driver", 1, 0, own=True, where=moment)])
        assert not driver.run(month.path, lake.location), f"{SEED}={seed}: it was to die {moment}"
        assert [kill.where for kill in fate.kills] == [moment]
    finally:
        driver.bury()
        fate.close()
    fill(spark, lake, month)
    same(lake, filled)


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
