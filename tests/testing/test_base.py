"""What all fake platforms share: the held clock, the plan of faults, the transcript, the loud end."""

import asyncio
from random import Random

import pytest

from postroom.clock import SECOND
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import FakePlatformFailure
from postroom.testing.platforms.faults import ConnectionDropped, FaultPlan, RateLimited, ServerFailed
from postroom.testing.platforms.telegram import FakeTelegram
from postroom.testing.platforms.transcript import Delivery, Transcript


async def test_the_held_clock_wakes_those_whose_moment_has_come() -> None:
    clock = HeldClock()
    woken: list[int] = []

    async def sleep(seconds: int) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    sleepers = [asyncio.create_task(sleep(seconds)) for seconds in (30, 10, 20)]
    await clock.wait_for_sleepers(3)
    clock.advance(10)
    await sleepers[1]
    clock.set(clock.now() + 10 * SECOND)
    await sleepers[2]
    assert woken == [10, 20]
    await asyncio.to_thread(clock.advance, 10)
    await sleepers[0]
    await clock.wait_until(clock.now() - 1)


def test_planned_faults_come_once_each_and_in_order() -> None:
    faults = FaultPlan()
    faults.plan("send*", RateLimited(1), ServerFailed(500))
    assert faults.take("getUpdates") is None
    assert faults.take("sendMessage", ConnectionDropped) is None
    assert faults.take("sendMessage") == RateLimited(1)
    assert faults.outstanding == [("send*", ServerFailed(500))]
    assert faults.take("sendPhoto") == ServerFailed(500)
    assert faults.take("sendMessage") is None
    assert faults.happened == [("sendMessage", RateLimited(1)), ("sendPhoto", ServerFailed(500))]


def test_random_faults_are_the_same_for_the_same_seed() -> None:
    def draw(seed: int) -> list[bool]:
        faults = FaultPlan()
        faults.at_random(0.3, [ServerFailed(), RateLimited()], seed=seed)
        return [faults.take("send") is not None for _ in range(200)]

    seed = Random(5).randrange(1000)
    assert draw(seed) == draw(seed)
    assert draw(seed) != draw(seed + 1)
    assert 30 < sum(draw(seed)) < 90


def test_the_transcript_finds_what_was_said_once_twice_or_never() -> None:
    transcript = Transcript()
    for number, text in enumerate(("hello", "done", "done")):
        transcript.add(Delivery(str(number), "chat", text, 0))
    assert transcript.exactly_one("hello").id == "0"
    with pytest.raises(AssertionError, match="2 messages contain 'done'"):
        transcript.exactly_one("done")
    with pytest.raises(AssertionError, match="0 messages contain 'absent'"):
        transcript.exactly_one("absent")
    transcript.deliveries[1].deleted = True
    assert transcript.exactly_one("done").id == "2"


async def plan_a_fault_for_nothing() -> None:
    async with FakeTelegram() as telegram:
        telegram.faults.plan("sendMesage", RateLimited(1))


async def test_a_fault_that_never_happened_fails_the_test() -> None:
    with pytest.raises(FakePlatformFailure, match="sendMesage never happened"):
        await plan_a_fault_for_nothing()


async def fail_beside_the_fake() -> None:
    async with FakeTelegram() as telegram:
        telegram.record_failure("something")
        raise ValueError("the test's own")


async def test_complaints_of_the_fake_are_added_to_the_error_of_the_test() -> None:
    with pytest.raises(ValueError, match="the test's own") as caught:
        await fail_beside_the_fake()
    assert caught.value.__notes__ == ["fake Telegram: something"]
