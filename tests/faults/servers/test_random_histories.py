"""Random histories on database servers go as a simple model says, and their ledgers prove it."""

import itertools
import logging
from pathlib import Path

import pytest

from postroom.kernel.ports import Store
from postroom.stores.mariadb import MariadbStore
from postroom.stores.postgres import PostgresStore
from postroom.stores.redis import RedisStore
from tests.conftest import mariadb_url, postgres_url, redis_url
from tests.faults.machine import QueueMachine
from tests.faults.test_state_machine import walk

_numbers = itertools.count()


def empty_place() -> Path:
    """Only its name is used: a room is emptied for each new one."""
    return Path(f"history-{next(_numbers)}")


class PostgresMachine(QueueMachine):
    def make_store(self) -> Store:
        return PostgresStore(postgres_url(empty_place()), clock=self.clock)


class MariadbMachine(QueueMachine):
    def make_store(self) -> Store:
        return MariadbStore(mariadb_url(empty_place()), clock=self.clock)


class PostgresRedisMachine(QueueMachine):
    def make_store(self) -> Store:
        url = postgres_url(empty_place())
        return RedisStore(PostgresStore(url, clock=self.clock), url, redis_url())


class MariadbRedisMachine(QueueMachine):
    def make_store(self) -> Store:
        url = mariadb_url(empty_place())
        return RedisStore(MariadbStore(url, clock=self.clock), url, redis_url())


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "postroom")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("machine", [PostgresMachine, MariadbMachine])
def test_a_sample_of_random_histories_goes_as_the_model_says(machine: type[QueueMachine]) -> None:
    walk(machine, 2)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "machine", [PostgresMachine, PostgresRedisMachine, MariadbMachine, MariadbRedisMachine]
)
def test_many_random_histories_go_as_the_model_says(machine: type[QueueMachine]) -> None:
    walk(machine, 100)
