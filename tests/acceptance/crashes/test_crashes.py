"""kill -9 at every step of a team's conversation: nothing is lost, nothing doubled, nobody left behind."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.crashes.campaign import Nursery, nursery, orphans
from tests.acceptance.crashes.verdicts import problems

SAMPLE = 3
KINDS = ("each", "combined")


@pytest.fixture(scope="module")
def lives() -> Iterator[Nursery]:
    with nursery() as bearing:
        yield bearing


def whole(lives: Nursery, folder: Path, kind: str) -> int:
    """The steps of a life that nobody disturbs."""
    folder.mkdir()
    return lives.life(folder, kind, None)["steps"]


async def kill_at(lives: Nursery, folder: Path, kind: str, *steps: int) -> None:
    """Each life is killed at its step, if it comes so far; then one is left to finish."""
    os.mkdir(folder)
    for step in steps:
        lives.life(folder, kind, step)
    left = orphans(folder) if kind == "programs" else []
    assert not left, f"killed at {steps}: {left} live on"
    ended = lives.life(folder, kind, None)
    assert ended["code"] == 0
    found = await problems(folder, kind)
    assert not found, f"killed at {steps}:\n" + "\n".join(found)
    left = orphans(folder) if kind == "programs" else []
    assert not left, f"after the end: {left} live on"


@pytest.mark.parametrize("kind", [*KINDS, "programs"])
async def test_an_undisturbed_conversation_keeps_all_that_is_asked_of_a_killed_one(
    lives: Nursery, tmp_path: Path, kind: str
) -> None:
    assert whole(lives, tmp_path / "whole", kind) > 30
    assert await problems(tmp_path / "whole", kind) == []


async def test_an_office_that_is_careless_is_found_out(lives: Nursery, tmp_path: Path) -> None:
    """Or the tests here would prove nothing."""
    steps = whole(lives, tmp_path / "whole", "careless")
    rng = random.Random("careless")
    for step in rng.sample(range(20, steps), min(steps - 20, 40)):
        try:
            await kill_at(lives, tmp_path / f"at-{step}", "careless", step)
        except AssertionError:
            return
    pytest.fail("it was killed forty times, and nobody noticed")


@pytest.mark.parametrize("kind", KINDS)
async def test_no_reply_is_lost_or_doubled_when_the_office_is_killed(
    lives: Nursery, tmp_path: Path, kind: str
) -> None:
    steps = whole(lives, tmp_path / "whole", kind)
    rng = random.Random(f"a sample of {kind}")
    for step in sorted(rng.sample(range(1, steps), SAMPLE)):
        await kill_at(lives, tmp_path / f"at-{step}", kind, step)


async def test_an_office_that_is_killed_again_and_again_still_answers_once(
    lives: Nursery, tmp_path: Path
) -> None:
    rng = random.Random("again and again")
    await kill_at(lives, tmp_path / "often", "each", *(rng.randrange(20, 60) for _ in range(4)))


async def test_no_program_of_a_killed_office_lives_on(lives: Nursery, tmp_path: Path) -> None:
    steps = whole(lives, tmp_path / "whole", "programs")
    rng = random.Random("a sample of programs")
    for step in sorted(rng.sample(range(20, steps), 2)):
        await kill_at(lives, tmp_path / f"at-{step}", "programs", step)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", [*KINDS, "programs"])
async def test_no_reply_is_lost_or_doubled_at_any_step(lives: Nursery, tmp_path: Path, kind: str) -> None:
    steps = whole(lives, tmp_path / "whole", kind)
    for step in range(1, steps + 1, 4 if kind == "programs" else 1):
        await kill_at(lives, tmp_path / f"at-{step}", kind, step)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_two_crashes_in_a_row_are_no_worse(lives: Nursery, tmp_path: Path) -> None:
    rng = random.Random("two in a row")
    for number in range(60):
        kind = rng.choice(KINDS)
        await kill_at(lives, tmp_path / f"pair-{number}", kind, rng.randrange(1, 120), rng.randrange(1, 120))
