"""Random histories over every store go as a simple model says, and their ledgers prove it."""

import logging

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from postroom.kernel.ports import Store
from postroom.stores.sqlite import SqliteStore
from tests.faults.crashes import PATH
from tests.faults.disk import Disk
from tests.faults.machine import QueueMachine
from tests.faults.vfs import FaultVFS


class SqliteMachine(QueueMachine):
    def make_store(self) -> Store:
        self.vfs = FaultVFS(Disk())
        return SqliteStore(PATH, vfs=self.vfs.name, clock=self.clock)


class MemoryMachine(QueueMachine):
    def make_store(self) -> Store:
        return SqliteStore(None, clock=self.clock)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "postroom")


def walk(machine: type[QueueMachine], examples: int) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            print_blob=True,
            suppress_health_check=checks,
        ),
    )


@pytest.mark.timeout(1200)  # only a failure takes long: it is made smaller before it is shown
@pytest.mark.parametrize("machine", [SqliteMachine, MemoryMachine])
def test_random_histories_go_as_the_model_says(machine: type[QueueMachine]) -> None:
    walk(machine, 150)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("machine", [SqliteMachine, MemoryMachine])
def test_many_random_histories_go_as_the_model_says(machine: type[QueueMachine]) -> None:
    walk(machine, 2000)
