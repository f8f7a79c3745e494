"""kill -9 at any moment: what a process was told before it died is there when the next one opens the file."""

from pathlib import Path

import pytest

from tests.faults import kills

SEEDS = range(5)
KILLS_PER_SEED = 10


@pytest.mark.parametrize("seed", SEEDS)
def test_no_accepted_message_is_lost_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    killed = kills.campaign(tmp_path, KILLS_PER_SEED, seed)
    print(killed)
    assert not killed.problems, str(killed)
    assert killed.kills == KILLS_PER_SEED


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_no_accepted_message_is_lost_in_a_thousand_kills(tmp_path: Path) -> None:
    killed = kills.campaign(tmp_path, 1000, 1000, print)
    assert not killed.problems, str(killed)
    assert killed.acknowledged > 1000
