"""People, teams, rooms, budgets, kills, settings that change and agents that leave, in any order: nobody is
left in silence."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import postroom
from tests.acceptance.crashes.campaign import Nursery, nursery
from tests.acceptance.histories.life import everything
from tests.acceptance.histories.plans import fan_outs, history
from tests.acceptance.histories.verdicts import judge, problems

IN_CI, IN_FULL = 50, 1000
# So many go together, to fit the length of a test.
TOGETHER = 10
SIDE_BY_SIDE = 4
KILLS = 10


@pytest.fixture(scope="module")
def lives() -> Iterator[Nursery]:
    with nursery() as bearing:
        yield bearing


@pytest.fixture(scope="module")
def nurseries() -> Iterator[list[Nursery]]:
    """Several, because an office mostly waits."""
    with ExitStack() as stack:
        yield [stack.enter_context(nursery()) for _ in range(SIDE_BY_SIDE)]


async def go_through(nurseries: list[Nursery], folder: Path, seeds: range) -> None:
    idle: asyncio.Queue[Nursery] = asyncio.Queue()
    for each in nurseries:
        idle.put_nowait(each)

    async def one(seed: int) -> None:
        lives = await idle.get()
        plan, kills = history(seed)
        place = folder / str(seed)
        os.mkdir(place)
        for step in kills:
            await asyncio.to_thread(lives.follow, place, plan, step)
        assert (await asyncio.to_thread(lives.follow, place, plan, None))["code"] == 0
        idle.put_nowait(lives)
        found = await problems(place)
        assert not found, f"history {seed}, killed at {kills}:\n" + "\n".join(found)

    async with asyncio.TaskGroup() as group:
        for seed in seeds:
            group.create_task(one(seed))


async def test_an_office_that_forgets_or_repeats_would_be_found_out(lives: Nursery, tmp_path: Path) -> None:
    """Or the tests here would prove nothing: whatever was told is taken away, and told twice."""
    plan, _ = history(1)
    assert lives.follow(tmp_path, plan, None)["code"] == 0
    async with postroom.open(str(tmp_path / "room.db"), durability="relaxed", housekeeping=False) as room:
        found = await everything(room)
    assert judge(set(), found, set(), {}) == []
    told = [each for each in found if each.message_type in ("office.reply", "office.failure")]
    assert told
    for each in told:
        assert judge(set(), [other for other in found if other is not each], set(), {}), each
        assert judge(set(), [*found, each], set(), {}), each
    assert judge({999}, found, set(), {}) == ["message 999 was accepted and is gone"]


@pytest.mark.parametrize("first", range(0, IN_CI, TOGETHER))
async def test_every_accepted_message_ends_in_a_reply_a_failure_or_a_question(
    nurseries: list[Nursery], tmp_path: Path, first: int
) -> None:
    await go_through(nurseries, tmp_path, range(first, first + TOGETHER))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(IN_CI, IN_FULL, 190))
async def test_every_accepted_message_ends_so_in_a_thousand_histories(
    nurseries: list[Nursery], tmp_path: Path, first: int
) -> None:
    await go_through(nurseries, tmp_path, range(first, min(first + 190, IN_FULL)))


@pytest.mark.parametrize("mode", ["each", "combined"])
async def test_ten_kills_during_twenty_fan_outs_lose_and_double_no_answer(
    lives: Nursery, tmp_path: Path, mode: str
) -> None:
    """With the settings of somebody who set none."""
    plan, rng = fan_outs(mode), random.Random(f"ten kills, {mode}")
    killed = 0
    for _ in range(KILLS):
        killed += lives.follow(tmp_path, plan, rng.randrange(25, 50))["signal"] == 9
    assert killed == KILLS
    assert lives.follow(tmp_path, plan, None)["code"] == 0
    async with postroom.open(str(tmp_path / "room.db"), durability="relaxed", housekeeping=False) as room:
        told = (await room.messages(queue="office/outbox/web", limit=1000)).messages
        dead = (await room.messages(queue="office/_dead_letter", limit=1000)).messages
    assert dead == []
    assert {each.message_type for each in told} == {"office.reply"}
    if mode == "each":
        answers = Counter((each.correlation_id, each.agent) for each in told)
    else:
        assert len(told) == 20
        answers = Counter(part for each in told for part in each.body["parts"])
    assert len(answers) == 100
    assert set(answers.values()) == {1}
    assert await problems(tmp_path) == []
