from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.house_process import HouseProcess


@pytest.fixture
def house(tmp_path: Path) -> Iterator[HouseProcess]:
    house = HouseProcess(tmp_path)
    yield house
    house.end()
