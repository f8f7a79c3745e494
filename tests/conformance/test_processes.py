"""Processes tell of themselves through the store; how long ago is told by its clock, and no event is made."""

import pytest

from postroom import Room
from postroom.clock import SECOND, ManualClock
from postroom.errors import PostroomError
from postroom.kernel.service_commands import ListProcesses
from postroom.kernel.transitions.processes import FORGOTTEN, SILENT, KnownProcess

A, B = ({"host": name, "roles": ["worker"]} for name in "ab")


async def listed(room: Room, **told: object) -> list[tuple[str, int]]:
    found: list[KnownProcess] = await room.run(ListProcesses(**told))  # type: ignore[arg-type]
    return [(each.name, each.age) for each in found]


async def test_a_process_is_known_until_it_ends(room: Room, clock: ManualClock) -> None:
    before = await room.head()
    assert await listed(room) == []
    assert await listed(room, process="1", data=A) == [("1", 0)]
    clock.advance(5)
    assert await listed(room, process="2", data=B) == [("1", 5 * SECOND), ("2", 0)]
    assert await listed(room, process="1", data=A) == [("1", 0), ("2", 0)]
    assert await listed(room, process="2", ended=True) == [("1", 0)]
    assert await listed(room, process="2", ended=True) == [("1", 0)]
    assert await room.head() == before
    [found] = await room.run(ListProcesses())
    assert (found.data, found.is_silent) == (A, False)


async def test_one_that_was_killed_is_known_until_another_takes_its_place(
    room: Room, clock: ManualClock
) -> None:
    await listed(room, process="1", data=A)
    await listed(room, process="2", data=B)
    assert len(await listed(room, process="3", data=A)) == 3, "there may be two of a kind"
    clock.advance(SILENT / SECOND + 1)
    [found, *_] = await room.run(ListProcesses())
    assert found.is_silent
    assert [name for name, _ in await listed(room, process="4", data={**A, "roles": ["api"]})] == list("1234")
    assert [name for name, _ in await listed(room, process="5", data=A)] == list("245")


async def test_what_was_silent_for_a_month_is_forgotten(room: Room, clock: ManualClock) -> None:
    await listed(room, process="1", data=A)
    clock.advance(FORGOTTEN / SECOND + 1)
    assert [name for name, _ in await listed(room)] == ["1"]
    assert [name for name, _ in await listed(room, process="2", data=B)] == ["2"]


@pytest.mark.parametrize("wrong", [{"process": ""}, {"process": "1", "data": {"x": "y" * 300_000}}])
async def test_what_cannot_be_kept_is_refused(room: Room, wrong: dict[str, object]) -> None:
    with pytest.raises(PostroomError):
        await listed(room, **wrong)
    assert await listed(room) == []
