"""What pages read: chats whole with what answers took, queues by page, what happened lately."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.errors import MessageNotFound
from postroom.office.agents import TeamNotFound
from postroom.services import callers
from postroom.services.conversations import Draft
from postroom.services.errors import OwnerOnly
from tests.api.house import House, opened

OWNER = callers.owner()
SCRIPT = {
    "pace": 0.01,
    "rules": [
        {"agent": "coder", "match": "forever", "reply": "I begin. ", "seconds": 3600000, "tools": ["Read"]},
        {"reply": "Done.", "tools": ["Bash", "Bash"]},
    ],
}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path, script=SCRIPT) as house:
        yield house


async def answered(house: House, text: str) -> str:
    services = house.deps.services
    sent = await services.conversations.send(
        OWNER, Draft(text=text, channel="web", sender="Ann", sender_id="a")
    )
    await house.until("/api/queue/status", lambda counts: counts["incoming"] == counts["processing"] == 0)
    return f"web:{sent.message_id}"


async def test_a_chat_has_both_sides_and_what_the_answer_took(house: House) -> None:
    talk = await answered(house, "@lead hello")
    mine, theirs = await house.deps.services.chats.read(OWNER, "lead")
    assert (mine.author, mine.text, mine.is_agent, mine.state) == ("Ann", "@lead hello", False, "completed")
    assert (theirs.author, theirs.text, theirs.is_agent) == ("lead", "Done.", True)
    assert theirs.turn is not None
    assert theirs.turn.tools == ("Bash", "Bash")
    assert theirs.conversation == talk
    [older] = await house.deps.services.chats.read(OWNER, "lead", before=theirs.number)
    assert older == mine
    with pytest.raises(OwnerOnly):
        await house.deps.services.chats.read(callers.agent("coder"), "lead")


async def test_a_team_chat_has_every_members_answer_and_nobody_elses_mail(tmp_path: Path) -> None:
    rules = [
        {"agent": "lead", "match": "login", "reply": "I see to it. [@coder: mend the login]"},
        {"agent": "coder", "match": "mend", "reply": "Mended."},
        {"reply": "Done."},
    ]
    async with opened(tmp_path, script={"pace": 0.01, "rules": rules}) as house:
        chats = house.deps.services.chats
        await answered(house, "@dev the login is broken")
        await answered(house, "@lead only you")
        await answered(house, "@dev and now the menu")
        lines = await chats.read_team(OWNER, "dev")
        first, second = lines[0], lines[-2]
        assert [(each.author, each.is_agent) for each in lines] == [
            ("Ann", False),
            ("lead", True),
            ("coder", True),
            ("Ann", False),
            ("lead", True),
        ]
        assert (first.text, second.text) == ("@dev the login is broken", "@dev and now the menu")
        assert await chats.read_team(OWNER, "dev", before=second.number) == lines[:3]
        assert await chats.read_team(OWNER, "dev", limit=1) == lines[3:]
        with pytest.raises(TeamNotFound):
            await chats.read_team(OWNER, "sales")
        with pytest.raises(OwnerOnly):
            await chats.read_team(callers.agent("coder"), "dev")


async def test_a_turn_that_goes_on_tells_what_it_said_and_used(house: House) -> None:
    services = house.deps.services
    await services.conversations.send(OWNER, Draft(text="@coder forever", channel="web"))
    working = await services.chats.working(OWNER, "coder")
    async with asyncio.timeout(60):
        while not working or not working[0].tools:
            await asyncio.sleep(0.01)
            working = await services.chats.working(OWNER, "coder")
    [turn] = working
    assert turn.about == "forever"
    assert turn.tools == ("Read",)
    assert await services.chats.working(OWNER, "lead") == []
    await services.workload.kill(OWNER, turn.number)


async def test_a_conversation_is_found_by_its_id_and_by_a_message_of_it(house: House) -> None:
    services = house.deps.services
    talk = await answered(house, "@lead hello")
    trace = await services.conversations.trace(OWNER, talk)
    assert [step.to for step in trace.roots] == ["@lead"]
    assert await services.conversations.trace(OWNER, trace.roots[0].message_id) == trace
    with pytest.raises(MessageNotFound):
        await services.conversations.trace(OWNER, "web:nobody")


async def test_queues_are_found_by_page_and_counted(house: House) -> None:
    for number in range(5):
        await house.room.create_queue(f"order-{number}")
    await house.room.publish("order-3", {})
    queues = house.deps.services.queues
    page = await queues.search(OWNER, "default", "ORDER", start=2, limit=2)
    assert [each.queue.slug for each in page.items] == ["order-2", "order-3"]
    assert [each.counts.pending for each in page.items] == [0, 1]
    assert page.more
    assert not (await queues.search(OWNER, "default", "order", start=4)).more
    assert (await queues.search(OWNER, None, "no such")).items == []


async def test_activity_counts_what_was_published_lately(house: House) -> None:
    await house.room.create_queue("orders")
    for _ in range(3):
        await house.room.publish("orders", {})
    lately = await house.deps.services.queues.activity(OWNER, buckets=2, bucket_s=3600)
    assert sum(lately["default/orders"]) == 3


async def test_newest_events_come_first_and_are_found_by_words(house: House) -> None:
    await house.room.create_queue("orders")
    await house.room.publish("orders", {})
    audit = house.deps.services.audit
    newest, older = await audit.newest_events(OWNER, limit=2)
    assert newest.seq == older.seq + 1
    found = await audit.newest_events(OWNER, "published ORDERS")
    assert [event.queue for event in found] == ["orders"]
    with pytest.raises(OwnerOnly):
        await audit.newest_events(callers.agent("coder"))


async def test_programs_of_agents_are_found_where_they_are(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = await house.deps.services.providers.find_programs(OWNER)
    assert found == {"claude": None, "codex": str(program), "opencode": None}
