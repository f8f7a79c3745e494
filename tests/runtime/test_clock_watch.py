"""Nothing is deleted right after the clock jumped ahead; a clock that goes as it should stops nothing."""

import logging

import pytest

from postroom.clock import SECOND, ManualClock
from postroom.kernel import commands as c
from postroom.kernel.housekeeping.housekeepers import PRUNER, Housekeeper
from postroom.kernel.housekeeping.steps import HousekeepingStep
from postroom.runtime.clock_watch import GAP_S, JUMP_S, REST_S, START_REST_S, ClockWatch, read_boot_time
from postroom.runtime.housekeeping import HousekeepingLoop


class Machine:
    """A clock that can be set, and how long the machine has run, which cannot."""

    def __init__(self) -> None:
        self.clock, self.ran = ManualClock(), ManualClock(1000 * SECOND)

    def run(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.ran.advance(seconds)

    def watch(self, idle_s: float = 0) -> ClockWatch:
        return ClockWatch(self.clock, self.clock.now() - round(idle_s * SECOND), self.ran.now)


def test_after_a_jump_ahead_nothing_is_deleted_for_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    watch = machine.watch()
    assert watch.may_delete()
    machine.clock.advance(3 * 24 * 3600)
    with caplog.at_level(logging.WARNING):
        assert not watch.may_delete()
    assert "jumped ahead by 259200 s" in caplog.text
    machine.run(REST_S - 1)
    assert not watch.may_delete()
    machine.run(2)
    assert watch.may_delete(), "it is believed in the end"


def test_a_clock_that_comes_back_is_believed_at_once() -> None:
    machine = Machine()
    watch = machine.watch()
    machine.clock.advance(7200)
    assert not watch.may_delete()
    machine.clock.advance(-7200)
    assert watch.may_delete()


def test_small_corrections_and_the_time_that_passes_stop_nothing() -> None:
    machine = Machine()
    watch = machine.watch()
    for _ in range(100):
        machine.run(300)
        machine.clock.advance(JUMP_S / 2)
        assert watch.may_delete()


def test_after_more_than_a_day_off_nothing_is_deleted_for_ten_minutes() -> None:
    machine = Machine()
    assert machine.watch(GAP_S - 1).may_delete()
    watch = machine.watch(GAP_S + 1)
    assert not watch.may_delete()
    machine.run(START_REST_S + 1)
    assert watch.may_delete()


def test_a_new_store_is_no_gap_and_the_machine_goes_on() -> None:
    assert ClockWatch(ManualClock(), 0).may_delete()
    before = read_boot_time()
    assert read_boot_time() >= before > 0


def test_the_pruner_alone_rests() -> None:
    machine, ran = Machine(), []

    def execute(command: c.Command) -> object:
        if isinstance(command, c.Housekeep):
            ran.append(command.name)
            return HousekeepingStep(0)
        return True

    roster = (Housekeeper("other", 0, "work"), Housekeeper(PRUNER, 0, "work"))
    loop = HousekeepingLoop(execute, machine.clock, "me", roster, watch=machine.watch())
    loop.round()
    machine.clock.advance(24 * 3600)
    loop.round()
    machine.run(REST_S)
    loop.round()
    assert ran == ["other", PRUNER, "other", "other", PRUNER]
