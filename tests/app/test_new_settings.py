"""A change of the settings takes effect, or the office goes on as it was and tries again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import postroom
from postroom.app import office_reloader
from postroom.app.office_reloader import OfficeReloader
from postroom.clock import SystemClock
from postroom.errors import StoreFull
from postroom.kernel.states import TERMINAL, State
from postroom.office.intake.intake import Incoming
from postroom.office.office import Office
from postroom.runtime import SyncRoom
from postroom.services.shared_settings import SharedSettings
from postroom.settings import SettingsFile
from tests.acceptance.office import until
from tests.conftest import postgres_url

TOKEN = "the-token-of-the-owner"


def document(folder: Path, *agents: str) -> dict[str, Any]:
    return {
        "workspace": {"path": str(folder / "work")},
        "agents": {name: {"provider": "script"} for name in agents},
        "monitoring": {"heartbeat_interval": 0},
    }


async def test_what_could_not_be_furnished_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SettingsFile(tmp_path / "settings.json")
    file.replace(document(tmp_path, "coder"))
    async with postroom.open(str(tmp_path / "postroom.db"), durability="relaxed") as room:
        staff = OfficeReloader(room, file, tmp_path, SystemClock(), works=False, environment={})
        await staff.open()
        file.replace(document(tmp_path, "coder", "tester"))
        furnish = Office.furnish

        async def full(office: Office) -> None:
            raise StoreFull(path="postroom.db")

        monkeypatch.setattr(Office, "furnish", full)
        with pytest.raises(StoreFull):
            await staff.apply()
        assert list(staff.settings.agents) == ["coder"]
        monkeypatch.setattr(Office, "furnish", furnish)
        await staff.apply()
        assert list(staff.settings.agents) == ["coder", "tester"]
        assert "tester" in staff.office.directory.agents
        await staff.close(1)


async def test_a_script_that_cannot_be_read_stops_only_its_own_agents(tmp_path: Path) -> None:
    file = SettingsFile(tmp_path / "settings.json")
    file.replace(document(tmp_path, "coder"))
    for broken in ('{"rules": [{"fail": "sometimes"}]}', '{"rules": [{"match": "("}]}', "{", "\udcff"):
        (tmp_path / "script.json").write_bytes(broken.encode("utf-8", "surrogateescape"))
        async with postroom.open(str(tmp_path / "postroom.db"), durability="relaxed") as room:
            staff = OfficeReloader(room, file, tmp_path, SystemClock(), works=False, environment={})
            await staff.open()
            file.update(lambda found: found.update(default_agent="coder"))
            await staff.apply()
            assert staff.settings.default_agent == "coder"
            await staff.close(1)
        file.replace(document(tmp_path, "coder"))


async def test_an_agent_without_its_script_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    from postroom.providers import Failed, TurnRequest
    from postroom.services.provider_registry import registry_for
    from postroom.settings import parse

    (tmp_path / "script.json").write_text(json.dumps({"rules": [{"match": "("}]}))
    registry = registry_for(parse(document(tmp_path, "coder")), tmp_path, SystemClock(), {})
    request = TurnRequest(agent_id="coder", prompt="hello", workspace=tmp_path, model="")
    [told] = [event async for event in registry.get("script").run(request)]
    assert isinstance(told, Failed)
    assert "script.json" in told.message
    assert "regular expression" in told.message


@pytest.mark.parametrize("removed", ["coder", "tester"])
async def test_a_turn_in_hand_ends_as_it_began_however_often_the_settings_change(
    tmp_path: Path, removed: str
) -> None:
    """The answer is paid for: neither another change nor the end of its agent throws it away."""
    script = {"rules": [{"match": "slow", "reply": "here it is", "seconds": 4}]}
    (tmp_path / "script.json").write_text(json.dumps(script))
    file = SettingsFile(tmp_path / "settings.json")
    file.replace(document(tmp_path, "coder", "tester"))
    async with postroom.open(str(tmp_path / "postroom.db"), durability="relaxed") as room:
        staff = OfficeReloader(room, file, tmp_path, SystemClock(), environment={})
        await staff.open()
        try:
            mail = Incoming(channel="web", sender="Ann", text="@coder slow", platform_id="1")
            [sent] = (await staff.office.take_in(mail)).receipts
            await until(lambda: is_in_hand(room, sent.id))
            file.update(lambda found: found["agents"]["tester"].update(name="Tess"))
            await staff.apply()
            assert (await room.get(sent.id)).state is State.CLAIMED, "the first change came during the turn"
            file.update(lambda found: found["agents"].pop(removed))
            await staff.apply()
            await until(lambda: has_ended(room, sent.id))
            message = await room.get(sent.id)
            assert (message.state, message.attempts) == (State.COMPLETED, 1)
            told = (await room.messages(queue="office/outbox/web")).messages
            assert [each.message_type for each in told] == ["office.reply"]
        finally:
            await staff.close(10)


async def is_in_hand(room: postroom.Room, message_id: str) -> bool:
    return bool(await room.records("turn.started")) and (await room.get(message_id)).state is State.CLAIMED


async def has_ended(room: postroom.Room, message_id: str) -> bool:
    return (await room.get(message_id)).state in TERMINAL


async def test_who_comes_back_while_the_leaving_is_still_settled_is_in_the_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the lane of an agent that is there waits for a subscription that nobody makes any more."""
    (tmp_path / "script.json").write_text(json.dumps({"rules": [{"match": "", "reply": "here"}]}))
    file = SettingsFile(tmp_path / "settings.json")
    team = {"teams": {"dev": {"agents": ["coder", "tester"], "leader_agent": "coder"}}}
    file.replace({**document(tmp_path, "coder", "tester"), **team})
    settling, go_on = asyncio.Event(), asyncio.Event()
    settle = office_reloader.settle

    async def slow_settle(room: Any, before: Any, after: Any) -> int:
        settling.set()
        await go_on.wait()
        return await settle(room, before, after)

    monkeypatch.setattr(office_reloader, "settle", slow_settle)
    async with postroom.open(str(tmp_path / "postroom.db"), durability="relaxed") as room:
        staff = OfficeReloader(room, file, tmp_path, SystemClock(), environment={})
        await staff.open()
        file.replace({**document(tmp_path, "coder"), **team})
        await staff.apply()
        await settling.wait()
        file.replace({**document(tmp_path, "coder", "tester"), **team})
        coming_back = asyncio.create_task(staff.apply())
        await asyncio.wait([coming_back], timeout=1)
        go_on.set()
        await coming_back

        async def all_have_left() -> bool:
            return not staff._leaving

        await until(all_have_left)
        names = [each.name for each in await room.subscriptions("office/room/dev")]
        assert sorted(names) == ["coder", "tester"]
        await staff.office.take_in(Incoming(channel="cli", sender="me", text="@tester hello"))

        async def answered() -> bool:
            found = (await room.messages(scope="office")).messages
            return any(each.queue == "outbox/cli" for each in found)

        await until(answered)
        await staff.close(5)


async def test_settings_that_another_process_changed_in_the_store_are_heard_of(tmp_path: Path) -> None:
    """Not by looking again after a while: that is far off here."""
    url = postgres_url(tmp_path)
    async with (
        postroom.open(url, actor="one", housekeeping=False) as room,
        postroom.open(url, actor="two", housekeeping=False) as other,
    ):
        files = [
            SharedSettings(tmp_path / each.actor, lambda each=each: SyncRoom(each._core), lambda _: TOKEN)
            for each in (room, other)
        ]
        files[0].establish(document(tmp_path, "coder"))
        reloader = OfficeReloader(room, files[0], tmp_path, SystemClock(), works=False, environment={})
        await reloader.open()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(office_reloader, "LOOK_S", 3600)
            watching = asyncio.create_task(reloader.watch())
            await asyncio.to_thread(files[1].merge, {"default_agent": "coder"})
            await until(lambda: reloader.settings.default_agent == "coder")
            watching.cancel()
        await reloader.close(1)


async def test_what_is_wrong_with_the_settings_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(office_reloader, "LOOK_S", 0.01)
    file = SettingsFile(tmp_path / "settings.json")
    file.replace(document(tmp_path, "coder"))
    looks: list[None] = []
    load = file.load

    def count() -> Any:
        looks.append(None)
        return load()

    async with postroom.open(str(tmp_path / "postroom.db"), durability="relaxed") as room:
        reloader = OfficeReloader(room, file, tmp_path, SystemClock(), works=False, environment={})
        await reloader.open()
        monkeypatch.setattr(file, "load", count)
        watching = asyncio.create_task(reloader.watch())
        file.path.write_text('{"budgets": {"daily_usd": "much"}}')
        await until(lambda: "the settings are not used" in caplog.text)
        seen = len(looks)
        await until(lambda: len(looks) > seen + 2)
        file.replace(document(tmp_path, "coder", "tester"))
        await until(lambda: "tester" in reloader.settings.agents)
        watching.cancel()
        await reloader.close(1)
    assert caplog.text.count("the settings are not used") == 1
