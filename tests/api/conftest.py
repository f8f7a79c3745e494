from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.clock import ManualClock, SystemClock
from tests.api.house import House, opened


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path) as house:
        yield house


@pytest.fixture
async def still(tmp_path: Path) -> AsyncIterator[House]:
    """A house whose agents do not work, so that mail stays where it is put."""
    async with opened(tmp_path, works=False) as house:
        yield house


@pytest.fixture
async def timeless(tmp_path: Path) -> AsyncIterator[House]:
    """As `still`, and its clock stands: nobody's measure grows again, however long the test takes."""
    async with opened(tmp_path, works=False, clock=ManualClock(SystemClock().now())) as house:
        yield house
