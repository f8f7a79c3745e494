from collections.abc import Iterator

import pytest
from tests.stores.memory.room import Room


@pytest.fixture
def room() -> Iterator[Room]:
    room = Room()
    yield room
    room.close()
