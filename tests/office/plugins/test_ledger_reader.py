"""Handlers hear every event at least once and in order, over restarts, from one process at a time."""

import asyncio
import inspect
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import OpenRoom
from tests.office.plugins.shop import opened, status, write

import postroom
from postroom import Room
from postroom.clock import ManualClock
from postroom.errors import StoreFailed
from postroom.kernel.housekeeping.housekeepers import Retention
from postroom.kernel.ledger import Event
from postroom.office.plugins import PluginEvent, PluginRegistry, PluginState
from postroom.office.plugins import ledger_reader as readers
from postroom.office.plugins.plugin import Plugin

# Writes each event as a line into a file; fails while a file `fail` is there.
HEARS = """
    import json, pathlib
    def activate(plugin):
        def hear(event):
            if (plugin.home / "fail").exists():
                raise OSError("not now")
            with open(plugin.home / "heard", "a") as file:
                file.write(json.dumps([event.seq, event.type, event.message_id, event.data]) + "\\n")
        plugin.on("{type}", hear)
"""


def heard(home: Path) -> list[list[Any]]:
    path = home / "heard"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def until(condition: Any, within: float = 60.0) -> None:
    """Looks again and again: the plugin's functions run in threads of their own."""
    async with asyncio.timeout(within):
        while True:
            told = condition()
            if await told if inspect.isawaitable(told) else told:
                return
            await asyncio.sleep(0.01)


@asynccontextmanager
async def listening(room: Room, home: Path, **settings: Any) -> AsyncIterator[PluginRegistry]:
    plugins = await opened(home, "hears", **settings)
    await plugins.start(room)
    await until(lambda: status(plugins, "hears").position is not None)
    try:
        yield plugins
    finally:
        await plugins.close()


async def publish(room: Room, count: int) -> list[str]:
    await room.create_queue("work", exist_ok=True)
    return [(await room.publish("work", number)).id for number in range(count)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "SAVE_S", 0.05)


async def test_events_of_a_type_come_in_order_from_now_on(live_room: Room, tmp_path: Path) -> None:
    await publish(live_room, 3)
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    async with listening(live_room, tmp_path):
        ids = await publish(live_room, 20)
        await until(lambda: len(heard(tmp_path)) >= 20)
    told = heard(tmp_path)
    assert [message for _, _, message, _ in told] == ids
    assert [seq for seq, *_ in told] == sorted({seq for seq, *_ in told})
    assert {kind for _, kind, _, _ in told} == {"message.published"}


async def test_nothing_is_missed_while_the_office_is_closed(tmp_path: Path) -> None:
    write(tmp_path, "hears.py", HEARS.replace("{type}", "*"))
    url = f"sqlite:///{tmp_path / 'room.db'}"
    async with postroom.open(url, durability="relaxed") as room, listening(room, tmp_path):
        await publish(room, 2)
    async with postroom.open(url, durability="relaxed") as room:
        await publish(room, 3)
    async with postroom.open(url, durability="relaxed") as room:
        async with listening(room, tmp_path):
            await publish(room, 2)
            head = (await room.head()).seq
            await until(lambda: heard(tmp_path) and heard(tmp_path)[-1][0] >= head)
        told = dict.fromkeys(seq for seq, *_ in heard(tmp_path))
        events = [event.seq async for event in room.events()]
        # All since it first listened, without a gap; what came twice is known by its number.
        assert list(told) == [seq for seq in events if seq >= min(told)]
        (position,) = [found for found in await room.positions() if found.name == "plugin/hears"]
        assert position.hold


async def test_a_handler_that_fails_for_a_while_hears_it_again(live_room: Room, tmp_path: Path) -> None:
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    (tmp_path / "fail").touch()
    async with listening(live_room, tmp_path, failures=50) as plugins:
        ids = await publish(live_room, 3)
        await until(lambda: status(plugins, "hears").failures >= 1)
        (tmp_path / "fail").unlink()
        await until(lambda: len(heard(tmp_path)) >= 3)
        assert status(plugins, "hears").state is PluginState.RUNNING
    assert [message for _, _, message, _ in heard(tmp_path)] == ids


async def test_one_that_goes_on_failing_is_switched_off_and_goes_on_there_after_a_restart(
    live_room: Room, tmp_path: Path
) -> None:
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    async with listening(live_room, tmp_path):
        first = await publish(live_room, 1)
        await until(lambda: len(heard(tmp_path)) == 1)
    (tmp_path / "fail").touch()
    async with listening(live_room, tmp_path, failures=2) as plugins:
        missed = await publish(live_room, 4)
        await until(lambda: status(plugins, "hears").state is PluginState.STOPPED)
        assert "not now" in (status(plugins, "hears").last_error or "")

        async def held_nothing() -> bool:
            return not any(found.hold for found in await live_room.positions())

        await until(held_nothing)  # a plugin that is off keeps nothing from being pruned
        assert len(await live_room.records("plugin.stopped", "hears")) == 1
    (tmp_path / "fail").unlink()
    async with listening(live_room, tmp_path):
        await until(lambda: len(heard(tmp_path)) >= 5)
    assert [message for _, _, message, _ in heard(tmp_path)] == first + missed


async def test_a_hanging_handler_stops_neither_mail_nor_other_plugins(
    live_room: Room, tmp_path: Path
) -> None:
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    hangs = """
        import time
        def activate(plugin):
            plugin.on("*", lambda event: time.sleep(30))
        """
    write(tmp_path, "hangs.py", hangs)
    plugins = await opened(tmp_path, "hangs", "hears", timeout_s=1.5, failures=2)
    await plugins.start(live_room)
    await until(lambda: status(plugins, "hears").position is not None)
    await publish(live_room, 5)
    await until(lambda: len(heard(tmp_path)) == 5)
    await until(lambda: status(plugins, "hangs").state is PluginState.STOPPED)
    await plugins.close()


async def test_of_several_offices_one_tells_the_plugin(live_room: Room, tmp_path: Path) -> None:
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    one, two = await opened(tmp_path, "hears"), await opened(tmp_path, "hears")
    await one.start(live_room)
    await until(lambda: status(one, "hears").position is not None)
    await two.start(live_room)
    ids = await publish(live_room, 10)
    await until(lambda: len(heard(tmp_path)) >= 10)
    assert status(two, "hears").position is None
    await one.close()
    await two.close()
    assert [message for _, _, message, _ in heard(tmp_path)] == ids


async def test_when_one_office_ends_another_goes_on(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room's clock stands, so that the lead is given up and never lost."""
    monkeypatch.setattr(readers, "LEASE_S", 0.3)
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    one, two = await opened(tmp_path, "hears"), await opened(tmp_path, "hears")
    await one.start(room)
    await until(lambda: status(one, "hears").position is not None)
    await two.start(room)
    first = await publish(room, 2)
    await until(lambda: len(heard(tmp_path)) == 2)
    await one.close()
    second = await publish(room, 2)
    await until(lambda: len(heard(tmp_path)) >= 4)
    await two.close()
    assert [message for _, _, message, _ in heard(tmp_path)] == first + second


async def test_events_can_have_other_names(live_room: Room, tmp_path: Path) -> None:
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message:incoming"))

    async def translate(event: Event) -> list[PluginEvent]:
        if event.type != "message.published":
            return []
        told = PluginEvent(
            type="message:incoming", timestamp=event.time // 1000, seq=event.seq, data={"a": 1}
        )
        return [told]

    plugins = await opened(tmp_path, "hears")
    await plugins.start(live_room, translate)
    await until(lambda: status(plugins, "hears").position is not None)
    await publish(live_room, 1)
    await until(lambda: len(heard(tmp_path)) == 1)
    await plugins.close()
    assert heard(tmp_path)[0][1:] == ["message:incoming", None, {"a": 1}]


async def test_while_the_store_fails_a_plugin_waits_and_hears_events_by_their_names(
    live_room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.runtime.leader.PAUSE_S", 0.01)
    write(tmp_path, "hears.py", HEARS.replace("{type}", "*"))
    failures = 3

    async def translate(event: Event) -> list[PluginEvent]:
        nonlocal failures
        if event.type != "message.published":
            return []
        if failures:
            failures -= 1
            raise StoreFailed(path="db", reason="the server is away")
        return [PluginEvent(type="message:incoming", timestamp=0, seq=event.seq, data={})]

    plugins = await opened(tmp_path, "hears")
    await plugins.start(live_room, translate)
    await until(lambda: status(plugins, "hears").position is not None)
    await publish(live_room, 1)
    await until(lambda: len(heard(tmp_path)) == 1)
    await plugins.close()
    assert heard(tmp_path)[0][1] == "message:incoming"


async def test_a_plugin_that_is_gone_keeps_nothing_from_being_pruned(live_room: Room, tmp_path: Path) -> None:
    write(tmp_path, "hears.py", HEARS.replace("{type}", "*"))
    async with listening(live_room, tmp_path):
        pass
    assert [found.hold for found in await live_room.positions()] == [True]
    plugins = await opened(tmp_path)
    await plugins.start(live_room)
    assert [found.hold for found in await live_room.positions()] == [False]
    await plugins.close()


async def test_a_plugin_whose_events_were_pruned_goes_on_with_what_is_left(
    open_room: OpenRoom, tmp_path: Path, clock: ManualClock
) -> None:
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    async with open_room(retention=Retention(ledger_s=0)) as room:
        async with listening(room, tmp_path):
            await publish(room, 1)
            await until(lambda: len(heard(tmp_path)) == 1)
        plugins = await opened(tmp_path)
        await plugins.start(room)  # without it: its hold is let go
        await plugins.close()
        await publish(room, 3)
        clock.advance(10)
        assert await room.housekeep("pruner") > 0
        async with listening(room, tmp_path) as plugins:
            kept = await publish(room, 2)
            await until(lambda: [message for _, _, message, _ in heard(tmp_path)][-2:] == kept)
            assert status(plugins, "hears").failures == 0


DIES = """
import asyncio, os, sys
from pathlib import Path
import postroom
from postroom.office.plugins import PluginRegistry
from postroom.office.plugins import ledger_reader as reader
from postroom.settings.sections import PluginSettings
reader.SAVE_S = 0.01
reader.LEASE_S = 0.5
async def main():
    home = Path(sys.argv[1])
    async with postroom.open(f"sqlite:///{home / 'room.db'}") as room:
        plugins = PluginRegistry()
        await plugins.load(PluginSettings(allowed=["hears"]), home)
        await plugins.start(room)
        while not (home / "heard").exists():
            if plugins.statuses()[0].position is not None:
                await room.create_queue("work", exist_ok=True)
                await room.publish_many("work", list(range(300)))
            await asyncio.sleep(0.01)
        while len((home / "heard").read_text().splitlines()) < 20:
            await asyncio.sleep(0)
        os._exit(9)
asyncio.run(main())
"""


async def test_a_killed_process_loses_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "LEASE_S", 0.3)
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    died = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES, str(tmp_path))
    assert await died.wait() == 9
    async with postroom.open(f"sqlite:///{tmp_path / 'room.db'}") as room:
        published = [event.seq async for event in room.events() if event.type == "message.published"]
        plugins = await opened(tmp_path, "hears")
        await plugins.start(room)
        await until(lambda: len({seq for seq, *_ in heard(tmp_path)}) >= len(published), 200)
        await plugins.close()
    assert list(dict.fromkeys(seq for seq, *_ in heard(tmp_path))) == published


async def test_whoever_is_told_that_a_plugin_is_off_is_told_to_the_end(
    live_room: Room, tmp_path: Path
) -> None:
    """Also when the store is slow: the reader, which looks now and then, must not break it off."""
    write(tmp_path, "hears.py", HEARS.replace("{type}", "message.published"))
    (tmp_path / "fail").touch()
    plugins = await opened(tmp_path, "hears", failures=1)
    told: list[str] = []

    async def slowly(plugin: Plugin) -> None:
        told.append("begun")
        await asyncio.sleep(10 * readers.SAVE_S)
        told.append("done")

    reader = readers.PluginLedgerReader(live_room, plugins._plugins[0], stopped=slowly)
    running = asyncio.create_task(reader.run())
    await until(lambda: status(plugins, "hears").position is not None)
    await publish(live_room, 1)
    await running
    await plugins.close()
    assert told == ["begun", "done"]
