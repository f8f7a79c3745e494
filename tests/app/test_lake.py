"""A house erases in its lake too, also what only the lake has; without one nothing is held back."""

import asyncio
from pathlib import Path

import postroom
from postroom.app.lake import StoreLake
from postroom.clock import SystemClock
from postroom.kernel.erasure.subject import Subject
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import MESSAGES
from postroom.services import callers
from postroom.services.container import Services
from tests.pipeline.tiny import put, rows

OFFICER = callers.owner(actor="officer")


async def test_no_lake_is_no_obstacle(tmp_path: Path) -> None:
    lake = StoreLake(tmp_path / "lake", SystemClock())
    assert await lake.search("default", "default", Subject(field="sender_id", value="ada"), None) == []
    assert await lake.preview("default", ["m"]) == 0
    assert await lake.erase("default", ["m"]) == 0
    async with postroom.open("memory://") as room:
        await lake.look(room)
        assert await room.positions() == []


async def test_what_was_pruned_from_the_store_is_erased_from_the_lake(tmp_path: Path) -> None:
    """The store knows nothing of it any more. Other tenants and scopes are left alone."""
    folder = tmp_path / "lake"

    def message(name: str, tenant: str, scope: str, sender: str) -> dict[str, object]:
        place = {"tenant": tenant, "scope": scope, "sender_id": sender}
        return {"id": name, "seq": 1, "ended_seq": 1, "created_at": 1, "body": f"of {name}", **place}

    put(
        Lake(str(folder)),
        MESSAGES,
        message("pruned", "default", "default", "ada"),
        message("other-sender", "default", "default", "bob"),
        message("other-tenant", "acme", "default", "ada"),
        message("other-scope", "default", "shop", "ada"),
    )
    clock = SystemClock()
    subject = Subject(field="sender_id", value="ada")
    async with postroom.open("memory://") as room:
        erasures = Services(room, clock=clock, lake=StoreLake(folder, clock)).erasures
        assert (await erasures.count(OFFICER, "default", subject)).found == 1
        done = await erasures.erase(OFFICER, "default", subject)
    assert (done.status, done.erased, done.in_lake) == ("completed", 1, 1)
    kept = {row["id"]: row["body"] for row in rows(Lake(str(folder)), MESSAGES)}
    assert kept.pop("pruned") == '{"erased":true}'
    assert all(body == f"of {name}" for name, body in kept.items())


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
