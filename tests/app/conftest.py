from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.app.hosts import Ended, HostProcess
from tests.app.house_process import HouseProcess


@pytest.fixture
def house(tmp_path: Path) -> Iterator[HouseProcess]:
    house = HouseProcess(tmp_path)
    yield house
    house.end()


@pytest.fixture
def ended() -> Iterator[Ended]:
    """Whatever happens, the processes of these hosts end with the test."""
    with ExitStack() as stack:

        def note(host: HostProcess) -> HostProcess:
            stack.callback(host.end)
            return host

        yield note
