"""A power cut, a failing disk or a full one, at any write or sync: no acknowledged message is lost."""

import logging

import pytest

from tests.faults.campaign import Tally, campaign, try_seed
from tests.faults.modes import CUTS, FAULTS, MODES

SEEDS = range(12)
LEAST_POINTS = 2000
FAULTS_PER_MODE = 12


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "postroom")


def _proven(tally: Tally) -> None:
    print(tally)
    assert not tally.broken, "\n".join(f"python -m tests.faults.run {broken}" for broken in tally.broken)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_accepted_message_is_lost_when_the_power_goes(seed: int) -> None:
    """Every point of small workloads, in every way, until the share of this test is tried."""
    tally = Tally()
    while tally.points < LEAST_POINTS / len(SEEDS) and not tally.broken:
        mode = CUTS[(seed + tally.seeds) % len(CUTS)]
        try_seed(seed + tally.seeds * len(SEEDS), tally, (mode,))
    _proven(tally)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_failing_or_full_disk_refuses_by_name_and_then_works_again(seed: int) -> None:
    tally = Tally()
    try_seed(seed, tally, FAULTS, faults=FAULTS_PER_MODE)
    _proven(tally)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(10))
def test_no_accepted_message_is_lost_at_a_hundred_thousand_points(part: int) -> None:
    tally = campaign(10_000, MODES, 1000 * (1 + part), print)
    _proven(tally)
    assert tally.points >= 10_000
