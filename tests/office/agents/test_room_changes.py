"""When agents and teams change, nothing in the room waits for somebody who will not come."""

from pathlib import Path
from typing import Any

import pytest

from postroom import Room, State
from postroom.errors import ClaimLost
from postroom.kernel import commands as c
from postroom.office import queues
from postroom.office.agents import AgentNotFound
from postroom.office.agents.room_changes import reset, settle, sweep
from postroom.office.intake.intake import Incoming, take_in
from postroom.office.intake.routing import OfficeDirectory
from postroom.office.sessions import RESET
from postroom.settings import Settings, parse

TEAMS = {"dev": {"agents": ["lead", "coder"], "leader_agent": "lead"}}


def office(*agents: str, **changes: Any) -> Settings:
    return parse({"agents": {name: {"provider": "script"} for name in agents}, **changes})


BEFORE = office("lead", "coder", teams=TEAMS)


@pytest.fixture
async def furnished(room: Room) -> Room:
    await furnish(room, BEFORE)
    return room


async def furnish(room: Room, settings: Settings) -> None:
    commands = queues.furnish(OfficeDirectory.of(settings), (), attempts=5, depth=100)
    await room.run(c.Unit(commands=tuple(commands), actor=room.actor))


async def write(room: Room, text: str, **fields: Any) -> str:
    mail = Incoming(channel="web", sender="Ann", text=text, **fields)
    return (await take_in(room, OfficeDirectory.of(BEFORE), mail)).receipts[0].id


async def test_mail_of_an_agent_that_left_becomes_a_dead_letter_and_comes_back_with_it(
    furnished: Room,
) -> None:
    room = furnished
    waiting = await write(room, "@coder wait")
    held = (await room.claim(queues.inbox("coder")))[0]
    later = await write(room, "@coder later")
    other = await write(room, "@lead stays")
    after = office("lead", teams={"dev": {"agents": ["lead"], "leader_agent": "lead"}})
    assert await settle(room, BEFORE, after) == 2
    assert held.id == waiting
    for message_id in (waiting, later):
        message = await room.get(message_id)
        assert (message.state, message.failure_reason) == (State.DEAD, "@coder was removed")
    assert (await room.get(other)).state is State.PENDING
    assert await settle(room, BEFORE, after) == 0
    with pytest.raises(ClaimLost):
        await room.complete(held)
    assert await settle(room, after, BEFORE) == 0
    await room.replay(waiting, later)
    assert len(await room.claim(queues.inbox("coder"), limit=None)) == 2


async def test_who_leaves_a_team_leaves_its_room(furnished: Room) -> None:
    room = furnished
    for number in range(3):
        await room.publish(queues.room_of("dev"), {"text": str(number)}, type="office.post")
    (held,) = await room.claim(queues.room_of("dev"), subscription="coder")
    after = office("lead", "coder", teams={"dev": {"agents": ["lead"], "leader_agent": "lead"}})
    assert await settle(room, BEFORE, after) == 0
    assert [found.name for found in await room.subscriptions(queues.room_of("dev"))] == ["lead"]
    with pytest.raises(ClaimLost):
        await room.complete(held)
    assert len(await room.claim(queues.room_of("dev"), subscription="lead", limit=None)) == 3
    await settle(room, after, office("lead", "coder"))
    assert await room.subscriptions(queues.room_of("dev")) == []


async def test_sessions_of_some_or_all_are_forgotten_at_once(furnished: Room) -> None:
    room = furnished
    assert await reset(room, BEFORE, ["CODER", "coder"]) == ["coder"]
    assert await room.latest_record(RESET, "coder") is not None
    assert await room.latest_record(RESET, "lead") is None
    with pytest.raises(AgentNotFound):
        await reset(room, BEFORE, ["lead", "nobody"])
    assert await room.latest_record(RESET, "lead") is None
    assert await reset(room, BEFORE) == ["lead", "coder"]
    assert await room.latest_record(RESET, "lead") is not None


async def test_what_another_ends_meanwhile_is_no_error(furnished: Room, tmp_path: Path) -> None:
    room = furnished
    message = await write(room, "@coder x")
    await room.cancel(message)
    assert await settle(room, BEFORE, office("lead")) == 0


async def test_a_room_without_an_office_has_nothing_to_sweep(room: Room) -> None:
    assert await sweep(room, OfficeDirectory.of(BEFORE)) == 0


async def test_mail_for_a_team_goes_to_the_new_leader_when_the_old_one_is_removed(furnished: Room) -> None:
    room = furnished
    team = await write(room, "@dev the login is broken", platform_id="1")
    own = await write(room, "@lead only you", platform_id="2")
    after = office("coder", teams={"dev": {"agents": ["coder"], "leader_agent": "coder"}})
    await furnish(room, after)
    assert await settle(room, BEFORE, after) == 1
    assert (await room.get(own)).state is State.DEAD
    passed = await room.get(team)
    assert (passed.state, passed.failure_reason) == (
        State.CANCELLED,
        "passed on to @coder, since @lead was removed",
    )
    [mail] = await room.claim(queues.inbox("coder"), limit=None)
    assert (mail.agent, mail.correlation_id, mail.sender, mail.body["team"]) == (
        "coder",
        "web:1",
        "Ann",
        "dev",
    )
    assert mail.body["text"] == "the login is broken"
    told = (await room.messages(queue="office/outbox/web")).messages
    assert [each.correlation_id for each in told] == ["web:2"]
    assert await settle(room, BEFORE, after) == 0, "nothing is passed on twice"
