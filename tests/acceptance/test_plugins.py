"""Plugins change what people write and read, and hear of it; whatever they do, mail moves."""

import json
from pathlib import Path
from typing import Any

import postroom
from postroom import Message, Room, State
from postroom.app.office_reloader import OfficeReloader
from postroom.clock import SystemClock
from postroom.office.agents import Staff
from postroom.office.intake.intake import Incoming
from postroom.office.plugins import PluginState
from postroom.settings import SettingsFile
from tests.acceptance.office import text, until
from tests.office.plugins.shop import status, write

POLITE = """
    import json

    def transform_incoming(text, context):
        return text.replace("secret", "******") + " please"

    async def transform_outgoing(text, context):
        return {"text": text + f" ({context.agent} for {context.sender})",
                "metadata": {"parseMode": "HTML", "thread": "mine now"}}

    def activate(plugin):
        def hear(event):
            with open(plugin.home / "heard", "a") as file:
                file.write(json.dumps([event.type, event.data.get("messageId")]) + "\\n")
        plugin.on("message:incoming", hear)
        plugin.on("message:done", hear)
"""


def settings(tmp_path: Path, *plugins: str, timeout_s: float = 60.0, **changes: Any) -> SettingsFile:
    file = SettingsFile(tmp_path / "settings.json")
    agents = {name: {"name": name.title(), "provider": "script"} for name in ("lead", "coder")}
    file.replace(
        {
            "workspace": {"path": str(tmp_path / "work")},
            "agents": agents,
            "plugins": {"allowed": list(plugins), "timeout_s": timeout_s, "failures": 3},
            **changes,
        }
    )
    return file


async def replies(room: Room, count: int) -> list[Message]:
    found: list[Message] = []

    async def enough() -> bool:
        page = await room.messages(scope="office", limit=500)
        found[:] = [message for message in page.messages if message.queue == "outbox/web"]
        return len(found) >= count

    await until(enough)
    return found


def mail(words: str, **fields: Any) -> Incoming:
    return Incoming(**{"channel": "web", "sender": "Ann", "sender_id": "ann", "text": words, **fields})


async def test_texts_are_changed_on_the_way_in_and_out(tmp_path: Path) -> None:
    write(tmp_path, "polite.py", POLITE)
    file = settings(tmp_path, "polite")
    async with postroom.open(str(tmp_path / "room.db")) as room:
        house = OfficeReloader(room, file, tmp_path, SystemClock(), environment={})
        await house.open()
        await until(lambda: status(house.plugins, "polite").position is not None)
        incoming = mail("@coder the secret", platform_id="7", metadata={"thread": "t1"})
        taken = await house.office.take_in(incoming)
        again = await house.office.take_in(incoming)
        assert again.repeated
        assert text(await room.get(taken.receipts[0].id)) == "the ****** please"
        [reply] = await replies(room, 1)
        assert "(coder for Ann)\n\n- [coder]" in text(reply)
        assert reply.metadata == {"parseMode": "HTML", "thread": "t1"}
        events = tmp_path / "heard"
        await until(lambda: events.exists() and len(events.read_text().splitlines()) >= 2)
        assert status(house.plugins, "polite").failures == 0
        await house.close(2)
    told = [json.loads(line) for line in events.read_text().splitlines()]
    assert [name for name, *_ in told] == ["message:incoming", "message:done"]


async def test_what_plugins_say_of_answers_goes_out_with_a_combined_one(tmp_path: Path) -> None:
    write(tmp_path, "polite.py", POLITE)
    file = settings(tmp_path, "polite", replies={"mode": "combined"})
    async with postroom.open(str(tmp_path / "room.db")) as room:
        house = OfficeReloader(room, file, tmp_path, SystemClock(), environment={})
        await house.open()
        incoming = mail("Both: [@coder: one] [@lead: two]", platform_id="7", metadata={"thread": "t1"})
        await house.office.take_in(incoming)
        [reply] = await replies(room, 1)
        assert "(coder for Ann)" in text(reply)
        assert "(lead for Ann)" in text(reply)
        assert reply.metadata == {"parseMode": "HTML", "thread": "t1"}
        await house.close(2)


async def test_mail_moves_whatever_plugins_do(tmp_path: Path) -> None:
    write(tmp_path, "hangs.py", "import time\ndef transform_incoming(text, context):\n    time.sleep(30)\n")
    write(tmp_path, "raises.py", "def transform_outgoing(text, context):\n    raise SystemExit(1)\n")
    write(tmp_path, "junk.py", "async def transform_outgoing(text, context):\n    return 42\n")
    write(tmp_path, "broken.py", "def transform_incoming(:\n")
    blocks = """
        import time
        async def hear(event):
            time.sleep(30)
        def activate(plugin):
            plugin.on("*", hear)
        """
    write(tmp_path, "blocks.py", blocks)
    names = ("hangs", "raises", "junk", "broken", "blocks")
    file = settings(tmp_path, *names, timeout_s=0.3)
    async with postroom.open(str(tmp_path / "room.db")) as room:
        house = OfficeReloader(room, file, tmp_path, SystemClock(), environment={})
        await house.open()
        for number in range(5):
            await house.office.take_in(mail(f"@coder {number}", sender_id=f"p{number}"))
        assert len(await replies(room, 5)) == 5
        for name in ("hangs", "raises", "junk"):
            assert status(house.plugins, name).state is PluginState.STOPPED
        assert status(house.plugins, "broken").state is PluginState.BROKEN
        await until(lambda: status(house.plugins, "blocks").state is PluginState.STOPPED)
        # The record follows the switch, so it may still be on its way.

        async def told() -> bool:
            stopped = {record.key for record in await room.records("plugin.stopped")}
            return {"raises", "junk", "blocks"} <= stopped

        await until(told)
        await house.close(2)


async def test_mail_of_an_agent_that_is_removed_ends_and_its_sender_is_told(tmp_path: Path) -> None:
    file = settings(tmp_path)
    async with postroom.open(str(tmp_path / "room.db")) as room:
        idle = OfficeReloader(room, file, tmp_path, SystemClock(), works=False, environment={})
        await idle.open()
        waiting = (await idle.office.take_in(mail("@coder wait"))).receipts[0].id
        await idle.close(0)
        Staff(file, tmp_path).remove_agent("coder")
        house = OfficeReloader(room, file, tmp_path, SystemClock(), environment={})
        await house.open()
        [reply] = await replies(room, 1)
        assert (await room.get(waiting)).state is State.DEAD
        assert "@coder was removed" in text(reply)
        await house.close(2)


async def test_a_removal_is_taken_over_by_a_running_house(tmp_path: Path) -> None:
    file = settings(tmp_path)
    async with postroom.open(str(tmp_path / "room.db")) as room:
        house = OfficeReloader(room, file, tmp_path, SystemClock(), environment={})
        await house.open()
        await house.office.take_in(mail("@coder one"))
        await replies(room, 1)
        Staff(file, tmp_path).remove_agent("coder")
        await house.apply()
        assert set(house.office.directory.agents) == {"lead"}
        Staff(file, tmp_path).restore_agent("coder")
        await house.apply()
        await house.office.take_in(mail("@coder two"))
        assert {reply.agent for reply in await replies(room, 2)} == {"coder"}
        await house.close(2)
