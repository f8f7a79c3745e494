"""Facts kept beside the messages and committed with them, and how far readers of the ledger have come."""

import math
from typing import Any

import pytest
from tests.conformance.helpers import LONE_SURROGATE, events, one, refused
from tests.conftest import OpenRoom

from postroom import Limits, Room
from postroom.clock import ManualClock
from postroom.errors import BodyTooLarge, InvalidField
from postroom.kernel import commands as c


async def test_a_record_is_kept_with_its_moment(room: Room, clock: ManualClock) -> None:
    await room.record("turn", "coder", {"tokens": 5, "model": "ö"})
    [record] = await room.records("turn")
    assert (record.kind, record.key, record.data) == ("turn", "coder", {"tokens": 5, "model": "ö"})
    assert record.created_at == clock.now()


async def test_records_are_found_by_kind_and_key_in_order(room: Room) -> None:
    for n in range(5):
        await room.record("turn", "coder" if n % 2 else "writer", {"n": n})
    await room.record("cost", "coder", {"n": 9})
    assert [record.data["n"] for record in await room.records("turn")] == [0, 1, 2, 3, 4]
    assert [record.data["n"] for record in await room.records("turn", "coder")] == [1, 3]
    assert await room.records("nothing") == []


async def test_records_can_be_read_on_from_any_place(room: Room) -> None:
    for n in range(5):
        await room.record("turn", "coder", {"n": n})
    first = await room.records("turn", limit=2)
    rest = await room.records("turn", after=first[-1].id)
    assert [record.data["n"] for record in [*first, *rest]] == [0, 1, 2, 3, 4]


async def test_the_latest_record_of_a_key_is_found(room: Room) -> None:
    assert await room.latest_record("turn", "coder") is None
    for n in range(3):
        await room.record("turn", "coder", {"n": n})
        await room.record("turn", "writer", {"n": -n})
    await room.run(c.AddRecord(kind="turn", key="coder", data={"n": 99}, tenant="other"))
    latest = await room.latest_record("turn", "coder")
    assert latest is not None
    assert latest.data == {"n": 2}
    assert latest == (await room.records("turn", "coder"))[-1]


async def test_a_record_about_a_message_is_an_event_of_its_conversation(room: Room) -> None:
    await room.create_queue("jobs")
    await room.publish("jobs", 1, correlation_id="talk")
    message = await one(room, "jobs")
    await room.record("turn", "coder", {"secret": "hunter2"}, about=message)
    event = events(room)[-1]
    assert (event.type, event.message_id, event.correlation_id) == ("record.turn", message.id, "talk")
    assert "hunter2" not in event.data, "the ledger says that, not what"


@pytest.mark.parametrize("field", ["kind", "key"])
async def test_a_bad_name_is_refused(room: Room, field: str) -> None:
    wrong: list[Any] = ["", "  ", "x" * 513, 5, LONE_SURROGATE]
    for value in wrong:
        names: dict[str, Any] = {"kind": "turn", "key": "coder", field: value}
        async with refused(room, InvalidField, field):
            await room.record(names["kind"], names["key"], {})
    assert await room.records("turn") == []


async def test_data_that_json_cannot_hold_is_refused(room: Room) -> None:
    wrong: list[Any] = [{"n": math.nan}, {"x": object()}, {"x": LONE_SURROGATE}, "text", ["list"]]
    for data in wrong:
        async with refused(room, InvalidField, "data"):
            await room.record("turn", "coder", data)


async def test_data_over_the_limit_is_refused(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(record_bytes=20)) as room:
        await room.record("turn", "coder", {"x": "y" * 12})
        async with refused(room, BodyTooLarge, "data"):
            await room.record("turn", "coder", {"x": "y" * 13})


async def test_what_a_record_is_about_must_be_text(room: Room) -> None:
    for field in ("message_id", "correlation_id"):
        wrong: dict[str, Any] = {field: LONE_SURROGATE}
        async with refused(room, InvalidField, field):
            await room.run(c.AddRecord(kind="turn", key="coder", data={}, **wrong))


async def test_a_readers_position_is_remembered(room: Room, clock: ManualClock) -> None:
    assert await room.positions() == []
    await room.set_position("lake", 4, hold=True)
    await room.set_position("mail", 0)
    clock.advance(1)
    await room.set_position("lake", 6, hold=True)
    lake, mail = await room.positions()
    assert (lake.name, lake.seq, lake.hold, lake.updated_at) == ("lake", 6, True, clock.now())
    assert (mail.name, mail.seq, mail.hold) == ("mail", 0, False)


async def test_a_position_is_no_event(room: Room) -> None:
    """Else a reader that notes how far it came would wake itself for ever."""
    head = await room.head()
    await room.set_position("lake", head.seq)
    assert await room.head() == head


async def test_a_bad_position_is_refused(room: Room) -> None:
    wrong: list[tuple[Any, Any, str]] = [
        ("", 1, "name"),
        (LONE_SURROGATE, 1, "name"),
        ("lake", -1, "seq"),
        ("lake", 1.5, "seq"),
        ("lake", "1", "seq"),
        ("lake", 2**70, "seq"),
    ]
    for name, seq, field in wrong:
        async with refused(room, InvalidField, field):
            await room.set_position(name, seq)
