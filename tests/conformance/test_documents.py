"""Documents: things that change under a name that stays, with a version, a history, and no lost change."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.helpers import LONE_SURROGATE, events, refused
from tests.conftest import OpenRoom

from postroom import Limits, Room
from postroom.clock import ManualClock
from postroom.errors import BodyTooLarge, DocumentChanged, DocumentNotFound, InvalidField
from postroom.kernel import commands as c


async def put(
    room: Room, key: str, data: dict[str, Any], expect: int | None = None, kind: str = "task"
) -> int:
    return await room.run(c.PutDocument(kind=kind, key=key, data=data, expect=expect))


async def drop(room: Room, key: str, expect: int | None = None) -> None:
    await room.run(c.DropDocument(kind="task", key=key, expect=expect))


async def test_a_document_says_what_was_written_last(room: Room, clock: ManualClock) -> None:
    made = clock.now()
    assert await put(room, "a", {"n": 1}) == 1
    clock.advance(5)
    assert await put(room, "a", {"n": 2, "deep": {"ö": [1, None]}}) == 2
    document = await room.document("task", "a")
    assert document is not None
    assert (document.version, document.data) == (2, {"n": 2, "deep": {"ö": [1, None]}})
    assert (document.created_at, document.updated_at) == (made, clock.now())
    assert await room.document("task", "b") is None
    assert await room.document("other", "a") is None


async def test_documents_are_listed_by_key_in_pages(room: Room) -> None:
    for key in ("b/2", "a/1", "b/1", "c", "b"):
        await put(room, key, {"of": key})
    await put(room, "z", {}, kind="other")
    assert [document.key for document in await room.documents("task")] == ["a/1", "b", "b/1", "b/2", "c"]
    assert [document.key for document in await room.documents("task", prefix="b/")] == ["b/1", "b/2"]
    first = await room.documents("task", limit=2)
    rest = await room.documents("task", after=first[-1].key)
    assert [document.data["of"] for document in [*first, *rest]] == ["a/1", "b", "b/1", "b/2", "c"]


async def test_a_write_in_place_of_another_version_is_refused(room: Room) -> None:
    await put(room, "a", {"n": 1}, expect=0)
    async with refused(room, DocumentChanged, "task", "version 1", "not 0"):
        await put(room, "a", {"n": 2}, expect=0)
    await put(room, "a", {"n": 2}, expect=1)
    async with refused(room, DocumentChanged):
        await put(room, "a", {"n": 3}, expect=1)
    async with refused(room, DocumentChanged):
        await drop(room, "a", expect=1)
    async with refused(room, DocumentChanged):
        await put(room, "never", {}, expect=1)


async def test_of_many_writers_one_wins_each_version(room: Room) -> None:
    await put(room, "a", {"n": 0})

    async def add() -> None:
        while True:
            document = await room.document("task", "a")
            assert document is not None
            try:
                await put(room, "a", {"n": document.data["n"] + 1}, expect=document.version)
            except DocumentChanged:
                continue
            return

    await asyncio.gather(*(add() for _ in range(10)))
    document = await room.document("task", "a")
    assert document is not None
    assert (document.data, document.version) == ({"n": 10}, 11)


async def test_what_is_dropped_is_gone_and_its_version_goes_on(room: Room, clock: ManualClock) -> None:
    await put(room, "a", {"n": 1})
    await drop(room, "a", expect=1)
    assert await room.document("task", "a") is None
    assert await room.documents("task") == []
    async with refused(room, DocumentNotFound, "task", "a"):
        await drop(room, "a")
    async with refused(room, DocumentChanged):
        await put(room, "a", {"n": 2}, expect=1)
    clock.advance(1)
    assert await put(room, "a", {"n": 2}, expect=0) == 3, "who knows version 1 must not take it for that"
    document = await room.document("task", "a")
    assert document is not None
    assert document.created_at == clock.now()


async def test_a_unit_stops_when_its_grounds_have_changed(room: Room) -> None:
    await room.create_queue("jobs")
    version = await put(room, "a", {"n": 1})
    publish = c.PublishLike(queue="jobs", bodies=[1], like=_nothing())
    expecting = c.ExpectDocument(kind="task", key="a", version=version)
    await room.run(c.Unit(commands=(publish, expecting)))
    await put(room, "a", {"n": 2})
    async with refused(room, DocumentChanged):
        await room.run(c.Unit(commands=(publish, expecting)))
    async with refused(room, DocumentChanged):
        await room.run(c.ExpectDocument(kind="task", key="b", version=1))
    await room.run(c.ExpectDocument(kind="task", key="b", version=0))


def _nothing() -> Any:
    from postroom.kernel.model import NewMessage

    return NewMessage()


async def test_a_refused_unit_takes_its_documents_back(room: Room) -> None:
    commands = (
        c.PutDocument(kind="task", key="a", data={"n": 1}),
        c.ExpectDocument(kind="task", key="a", version=7),
    )
    async with refused(room, DocumentChanged):
        await room.run(c.Unit(commands=commands))
    assert await room.document("task", "a") is None
    assert await room.records("task") == []


async def test_every_change_is_an_event_and_what_was_said_is_kept(room: Room) -> None:
    before = await room.head()
    await put(room, "a", {"secret": "hunter2"})
    await put(room, "a", {"n": 2})
    await drop(room, "a")
    told = events(room, before.seq)
    assert [event.type for event in told] == ["document.task"] * 3
    assert [event.details["version"] for event in told] == [1, 2, 3]
    assert told[-1].details.get("gone") is True
    assert "hunter2" not in told[0].data, "the ledger says that, not what"
    assert [record.data for record in await room.records("task", "a")] == [{"secret": "hunter2"}, {"n": 2}]


async def test_the_record_an_event_tells_of_is_found(room: Room) -> None:
    await room.record("turn", "same", {"n": 1})
    await room.record("turn", "same", {"n": 2})
    first, second = (event.details["record"] for event in events(room)[-2:])
    found = await room.record_numbered(first)
    assert found is not None
    assert (found.kind, found.key, found.data) == ("turn", "same", {"n": 1})
    assert (await room.record_numbered(second)) == await room.latest_record("turn", "same")
    assert await room.record_numbered(second + 1) is None
    assert await room.record_numbered(0) is None


async def test_another_tenants_documents_are_out_of_reach(room: Room) -> None:
    await room.run(c.PutDocument(kind="task", key="a", data={"of": "theirs"}, tenant="other"))
    assert await room.document("task", "a") is None
    assert await room.documents("task") == []
    number = events(room)[-1].details["record"]
    assert await room.record_numbered(number) is None
    assert await put(room, "a", {}, expect=0) == 1


async def test_what_a_reader_does_with_the_data_stays_with_the_reader(room: Room) -> None:
    data = {"list": [1]}
    await put(room, "a", data)
    data["list"].append(2)
    document = await room.document("task", "a")
    assert document is not None
    document.data["list"].append(3)
    again = await room.document("task", "a")
    assert again is not None
    assert again.data == {"list": [1]}


@pytest.mark.parametrize("field", ["kind", "key"])
async def test_a_bad_name_is_refused(room: Room, field: str) -> None:
    for value in ("", " ", "x" * 513, 5, LONE_SURROGATE):
        names: dict[str, Any] = {"kind": "task", "key": "a", field: value}
        async with refused(room, InvalidField, field):
            await room.run(c.PutDocument(data={}, **names))


async def test_data_must_be_small_json(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(record_bytes=20)) as room:
        async with refused(room, BodyTooLarge, "data"):
            await put(room, "a", {"x": "y" * 13})
        wrong: Any = {"x": object()}
        async with refused(room, InvalidField, "data"):
            await put(room, "a", wrong)


@pytest.mark.needs("reopen")
async def test_documents_survive_a_restart(open_room: OpenRoom) -> None:
    async with open_room() as room:
        await put(room, "a", {"n": 1})
        await put(room, "b", {"n": 1})
        await drop(room, "b")
    async with open_room() as room:
        assert [document.key for document in await room.documents("task")] == ["a"]
        assert await put(room, "b", {}, expect=0) == 3


async def test_what_needs_no_history_leaves_none(room: Room) -> None:
    for n in range(3):
        await room.run(c.PutDocument(kind="task", key="a", data={"n": n}, history=False))
    document = await room.document("task", "a")
    assert document is not None
    assert (document.version, document.data) == (3, {"n": 2})
    assert await room.records("task") == []
    for number, event in enumerate(events(room)[-3:], 1):
        assert "record" not in event.details
        assert event.details["document"]["version"] == event.details["version"] == number


async def test_every_change_counts(room: Room) -> None:
    assert await room.document_changes("task") == 0
    counted = []
    for step in (
        put(room, "a", {}),
        put(room, "b", {}),
        put(room, "a", {"n": 1}),
        drop(room, "a"),
        put(room, "a", {}),
    ):
        await step
        counted.append(await room.document_changes("task"))
    assert counted == [1, 2, 3, 4, 5]
    await put(room, "x", {}, kind="other")
    await room.run(c.PutDocument(kind="task", key="a", data={}, tenant="other"))
    assert await room.document_changes("task") == 5


async def test_a_page_goes_on_within_a_prefix(room: Room) -> None:
    for key in ("a", "b/1", "b/2", "b/3", "c"):
        await put(room, key, {})
    assert [d.key for d in await room.documents("task", prefix="b/", after="b/1")] == ["b/2", "b/3"]
    assert [d.key for d in await room.documents("task", prefix="b/", after="a")] == ["b/1", "b/2", "b/3"]
    assert await room.documents("task", prefix="b/", after="c") == []


async def test_the_page_about_documents_is_true(room: Room) -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts" / "documents.md").read_text("utf-8")
    [block] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = "\n".join(f"    {line}" for line in block.splitlines())
    scope: dict[str, Any] = {}
    exec(f"async def example(room):\n{lines}\n    return version, listed", scope)
    version, listed = await scope["example"](room)
    assert version == 1
    assert [document.data for document in listed] == [{"title": "Fixed"}]
    assert await room.documents("task") == []
