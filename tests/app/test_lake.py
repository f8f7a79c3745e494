"""A house without a lake has nothing to erase there, and holds nothing back for it."""

import asyncio
from pathlib import Path

import postroom
from postroom.app.lake import StoreLake
from postroom.clock import SystemClock


async def test_no_lake_is_no_obstacle(tmp_path: Path) -> None:
    lake = StoreLake(tmp_path / "lake", SystemClock())
    assert await lake.preview("default", ["m"]) == 0
    assert await lake.erase("default", ["m"]) == 0
    async with postroom.open("memory://") as room:
        await lake.look(room)
        assert await room.positions() == []


async def test_how_far_the_lake_has_come_is_held(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()

    class Filled(StoreLake):
        def committed(self) -> int:
            return 3

    async with postroom.open("memory://") as room:
        await Filled(tmp_path / "lake", SystemClock()).look(room)
        positions = await room.positions()
        assert [(one.name, one.seq, one.hold) for one in positions] == [("pipeline", 3, True)]


async def test_a_lake_that_cannot_be_read_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    asked = asyncio.Event()

    class Broken(StoreLake):
        def committed(self) -> int:
            loop.call_soon_threadsafe(asked.set)
            raise OSError("the disk is gone")

    loop = asyncio.get_running_loop()
    async with postroom.open("memory://") as room:
        holding = asyncio.create_task(Broken(tmp_path / "lake", SystemClock()).hold(room))
        async with asyncio.timeout(60):
            await asked.wait()
        await asyncio.sleep(0.01)
        assert not holding.done()
        holding.cancel()
