"""An office at work sends what is scheduled, agents answer it, and heartbeats begin to count."""

import time
from pathlib import Path

import postroom
from postroom.office.heartbeats import HEARTBEAT
from postroom.providers.script_rules import ScriptRule
from tests.acceptance.office import opened, staffed, text, until


def soon(seconds: float = 2.0) -> int:
    return time.time_ns() // 1000 + round(seconds * 1_000_000)


async def test_a_scheduled_message_is_answered_to_the_person_it_names(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(agent="lead", reply="Planned.")) as desk:
        await desk.office.schedules.add(
            "dev", "Plan the week.", at=soon(), label="plan", channel="telegram", sender="Ann", sender_id="42"
        )
        [reply] = await desk.replies(1, channel="telegram")
        assert (text(reply), reply.sender_id) == ("Planned.\n\n- [lead]", "42")
        assert not (await desk.office.schedules.show("plan")).enabled


async def test_what_was_scheduled_outlives_the_office(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(reply="ok"), start=False) as desk:
        await desk.office.schedules.add("coder", "once", at=soon())
        await desk.office.schedules.add("coder", "often", cron="* * * * * *", missed="once")
    async with (
        postroom.open(str(tmp_path / "room.db")) as room,
        opened(room, tmp_path, ScriptRule(reply="ok")) as desk,
    ):

        async def sent() -> list[str]:
            page = await room.messages(queue="office/inbox/coder", limit=500)
            return [text(message) for message in page.messages]

        async def enough() -> bool:
            return "once" in (asked := await sent()) and asked.count("often") > 1

        await until(enough)
        await desk.replies(1, channel="schedule")
        asked = await sent()
        assert set(asked) == {"once", "often"}
        assert asked.count("once") == 1


async def test_every_agent_has_a_heartbeat_that_counts_from_the_start(tmp_path: Path) -> None:
    async with staffed(tmp_path, ScriptRule(reply="ok")) as desk:
        async for event in desk.room.events(follow=True):
            if event.type == f"document.{HEARTBEAT}" and len(await desk.room.documents(HEARTBEAT)) == 3:
                break
        assert await desk.office.heartbeats.last_sent() == {}
