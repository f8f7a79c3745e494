"""A disk that is full in the middle of a transaction: SQLite undoes all of it, and nothing of it may stay."""

from pathlib import Path

import pytest

import postroom
from postroom import Room, State
from postroom.errors import StoreFull
from postroom.kernel.ports import MessageFilter
from postroom.stores.sqlite import SqliteStore
from tests.conformance.helpers import read
from tests.conformance.promises import check_promises
from tests.conformance.test_rules import add_rule

LONG = "x" * 200_000


def _pages_left(room: Room, count: int) -> None:
    store = room._core.store
    assert isinstance(store, SqliteStore)
    with store._writer_use:
        db = store._db
        db.pragma("max_page_count", db.pragma("page_count") + count)


def _messages(room: Room) -> int:
    return len(read(room, lambda reader: reader.page(MessageFilter(deliveries=True), None, 1000)))


@pytest.mark.parametrize("left", [5, 60, 110])
async def test_a_rule_that_fills_it_leaves_nothing_behind(tmp_path: Path, left: int) -> None:
    options = {"durability": "relaxed", "housekeeping": False}
    async with postroom.open(f"sqlite:///{tmp_path / 'room.db'}", **options) as room:
        for name in ("orders", "one", "two"):
            await room.create_queue(name)
        copies = {"type": "fan_out", "target_queue_ids": ["one", "two"]}
        await add_rule(room, source_queue_id="orders", action=copies)
        before = read(room, lambda reader: reader.head())
        _pages_left(room, left)
        with pytest.raises(StoreFull):
            await room.publish("orders", LONG)
        assert read(room, lambda reader: reader.head()) == before
        assert _messages(room) == 0
        check_promises(room)
        _pages_left(room, 1 << 20)
        receipt = await room.publish("orders", LONG)
        assert receipt.state is State.COMPLETED
        check_promises(room)
