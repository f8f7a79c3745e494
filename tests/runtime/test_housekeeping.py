"""The rounds: each housekeeper when its time has come, if this process leads; one's error stops no other."""

from collections.abc import Callable
from typing import Any

import pytest

from postroom.clock import ManualClock
from postroom.errors import StoreClosed, StoreFailed
from postroom.kernel import commands as c
from postroom.kernel.housekeeping.housekeepers import ROSTER, Housekeeper
from postroom.kernel.housekeeping.steps import HousekeepingStep
from postroom.runtime.housekeeping import STEPS_AT_ONCE, HousekeepingLoop

TWO = (Housekeeper("first", 1000, "work"), Housekeeper("second", 1000, "work"))


class Kernel:
    """Answers the commands of the rounds, and remembers them."""

    def __init__(self) -> None:
        self.leads: Callable[[], bool] = lambda: True
        self.steps: dict[str, Callable[[c.Housekeep], HousekeepingStep]] = {}
        self.asked: list[c.Command] = []

    def __call__(self, command: c.Command) -> Any:
        self.asked.append(command)
        if isinstance(command, c.Lead):
            return command.seconds > 0 and self.leads()
        if isinstance(command, c.Housekeep):
            return self.steps.get(command.name, lambda command: HousekeepingStep(0))(command)
        return None

    def ran(self) -> list[str]:
        return [command.name for command in self.asked if isinstance(command, c.Housekeep)]

    def reports(self) -> list[c.ReportRun]:
        return [command for command in self.asked if isinstance(command, c.ReportRun)]


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


def rounds_of(kernel: Kernel, roster: tuple[Housekeeper, ...] = TWO) -> HousekeepingLoop:
    return HousekeepingLoop(kernel, ManualClock(), "me", roster)


def failing(error: Exception) -> Callable[[c.Housekeep], HousekeepingStep]:
    def step(command: c.Housekeep) -> HousekeepingStep:
        raise error

    return step


def test_the_leader_runs_everybody_and_then_waits_for_the_next(kernel: Kernel) -> None:
    rounds = rounds_of(kernel)
    assert 900 < rounds.round() <= 1000
    assert kernel.ran() == ["first", "second"]
    rounds.round()
    assert kernel.ran() == ["first", "second"], "not before its time has come"


def test_who_does_not_lead_does_nothing(kernel: Kernel) -> None:
    kernel.leads = lambda: False
    assert rounds_of(kernel).round() > 0
    assert kernel.ran() == []


def test_leadership_is_renewed_now_and_then_not_with_every_round(kernel: Kernel) -> None:
    rounds = rounds_of(kernel)
    for _ in range(5):
        rounds.round()
    assert sum(isinstance(command, c.Lead) for command in kernel.asked) == 1


@pytest.mark.parametrize("error", [StoreFailed(path="x", reason="y"), KeyError("unforeseen")], ids=repr)
def test_the_error_of_one_never_stops_the_others(kernel: Kernel, error: Exception) -> None:
    kernel.steps["first"] = failing(error)
    rounds_of(kernel).round()
    assert kernel.ran() == ["first", "second"]
    failed, fine = kernel.reports()
    assert (failed.name, fine.name, fine.error) == ("first", "second", None)
    assert failed.error


@pytest.mark.parametrize("error", [StoreFailed(path="x", reason="y"), KeyError("unforeseen")], ids=repr)
def test_a_leadership_that_cannot_be_asked_for_is_asked_for_again(kernel: Kernel, error: Exception) -> None:
    def fail() -> bool:
        raise error

    rounds = rounds_of(kernel)
    kernel.leads = fail
    assert 0 < rounds.round() <= 5
    assert kernel.ran() == []
    kernel.leads = lambda: True
    rounds.round()
    assert kernel.ran() == ["first", "second"]


def test_a_closed_store_ends_the_rounds(kernel: Kernel) -> None:
    def fail() -> bool:
        raise StoreClosed

    kernel.leads = fail
    rounds = rounds_of(kernel)
    rounds.start()
    assert rounds._thread is not None
    rounds._thread.join(5)
    assert not rounds._thread.is_alive()
    rounds.stop()


def test_work_in_steps_goes_on_from_where_it_stopped_until_it_is_done(kernel: Kernel) -> None:
    pages = {0: HousekeepingStep(10, 7), 7: HousekeepingStep(10, 9), 9: HousekeepingStep(3)}
    kernel.steps["first"] = lambda command: pages[command.cursor]
    assert rounds_of(kernel).run_one("first") == 23
    assert [command.cursor for command in kernel.asked if isinstance(command, c.Housekeep)] == [0, 7, 9]
    assert kernel.reports()[-1].items == 23


def test_work_without_end_is_cut_so_that_the_others_get_their_turn(kernel: Kernel) -> None:
    kernel.steps["first"] = lambda command: HousekeepingStep(1, 0)
    rounds_of(kernel).round()
    assert kernel.ran() == ["first"] * STEPS_AT_ONCE + ["second"]


def test_idle_runs_are_reported_together(kernel: Kernel) -> None:
    rounds = rounds_of(kernel)
    for _ in range(5):
        rounds.run_one("first")
    assert [report.runs for report in kernel.reports()] == [1]
    kernel.steps["first"] = lambda command: HousekeepingStep(2)
    rounds.run_one("first")
    assert [(report.runs, report.items) for report in kernel.reports()] == [(1, 0), (5, 2)]


def test_stopping_gives_the_leadership_up(kernel: Kernel) -> None:
    rounds = rounds_of(kernel)
    rounds.start()
    rounds.stop()
    last = [command for command in kernel.asked if isinstance(command, c.Lead)][-1]
    assert (last.holder, last.seconds) == ("me", 0)


def test_who_never_led_gives_nothing_up(kernel: Kernel) -> None:
    kernel.leads = lambda: False
    rounds = rounds_of(kernel)
    rounds.start()
    rounds.stop()
    assert all(command.seconds > 0 for command in kernel.asked if isinstance(command, c.Lead))


def test_a_leadership_that_cannot_be_given_up_does_not_keep_the_room_open(kernel: Kernel) -> None:
    rounds = rounds_of(kernel)
    assert rounds._lead()

    def fail(command: c.Command) -> Any:
        raise StoreClosed

    rounds._execute = fail
    rounds._give_up()


def test_the_roster_names_the_agents_of_the_reference() -> None:
    assert {keeper.name: keeper.every_s for keeper in ROSTER} == {
        "visibility_timeout_enforcer": 1,
        "expiry_enforcer": 60,
        "message_archiver": 300,
        "dead_letter_monitor": 60,
        "priority_aging_worker": 300,
        "pruner": 300,
        "queue_scheduler": 1,  # our own
        "audit_digester": 300,
    }
    assert all(keeper.work for keeper in ROSTER)
