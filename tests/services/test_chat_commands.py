"""What people ask for in a chat, by words alone: each role gets what is its own, in sentences."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from postroom.clock import SystemClock
from postroom.kernel import commands as c
from postroom.kernel.budgets.model import Charge
from postroom.office.guards import budgets, pauses
from postroom.office.pairing import Pairings, SenderRole
from postroom.office.review_notices import review_code
from postroom.services import callers
from postroom.services.chat_commands import ChatCommands, ChatRequest, read_command
from postroom.services.conversations import Draft
from tests.api.house import House, opened

OWNER = callers.owner()
Say = Callable[..., Awaitable[str | None]]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with opened(tmp_path, works=False) as house:
        yield house


@pytest.fixture
async def say(house: House) -> Say:
    """Speaks as ann, an owner, or as bob, a member."""
    pairings = Pairings(house.room, SystemClock())
    for name, role in (("ann", SenderRole.OWNER), ("bob", SenderRole.MEMBER)):
        await pairings.admit("web", name, name.title())
        [waiting] = await pairings.waiting()
        await pairings.approve(waiting.code, role)
    restarted: list[int] = []

    async def speak(text: str, who: str = "ann", *, restart: bool = False) -> str | None:
        deps = house.deps
        again = (lambda: restarted.append(1)) if restart else None
        commands = ChatCommands(deps.room, deps.control, deps.services.reviews, SystemClock(), again)
        asked = ChatRequest(channel="web", chat=who, sender_id=who, sender=who.title(), text=text)
        return await commands.answer(asked)

    return speak


async def write(house: House, who: str, text: str = "@lead hello") -> None:
    draft = Draft(text=text, channel="web", sender=who.title(), sender_id=who)
    await house.deps.services.conversations.send(OWNER, draft)


async def test_what_is_no_command_is_left_to_the_office(say: Say) -> None:
    assert await say("hello") is None
    assert await say("/nonsense") is None
    assert read_command("!STOP@bot now") == "/stop now"
    assert read_command("/nonsense") == "/nonsense"
    assert await say("/status", "stranger") == "Guests can write to the agent here, and use no commands."


async def test_lists_tell_what_is_special_about_an_agent(house: House, say: Say) -> None:
    changes = {"system_prompt": "Be brief.", "prompt_file": "brief.md"}
    house.settings.update(lambda found: found["agents"]["coder"].update(changes))
    await house.deps.control.apply()
    told = await say("/agents") or ""
    assert "Has custom system prompt" in told
    assert "Prompt file: brief.md" in told
    house.settings.update(lambda found: found.pop("teams"))
    await house.deps.control.apply()
    assert "No teams configured." in (await say("/team") or "")


async def test_only_an_owner_restarts(say: Say) -> None:
    assert await say("/restart", "bob") == "Only an owner can restart this office."
    assert "At the shell" in (await say("/restart") or "")
    assert "Restarting." in (await say("/restart", restart=True) or "")


async def test_the_status_tells_an_owner_of_everybody_and_a_member_of_their_own(
    house: House, say: Say
) -> None:
    await write(house, "bob")
    await house.deps.services.questions.ask(OWNER, "Ship it?", ["yes", "no"])
    await pauses.pause_all(house.room)
    told = await say("/status") or ""
    assert "You have 0 open messages." in told
    assert "Everybody is paused" in told
    assert "@lead waits; 1 open message." in told
    assert "1 decision wait for you" in told
    assert await say("/status", "bob") == "You have 1 open message."
    assert "Everybody is paused, until the owner" in (await say("/why", "bob") or "")


async def test_why_tells_of_every_state_and_of_guards(house: House, say: Say) -> None:
    await write(house, "ann")
    assert "waits in line" in (await say("/why") or "")
    [claimed] = await house.room.claim("office/inbox/lead")
    assert "works on it since" in (await say("/why") or "")
    assert "@lead works; 1 open message." in (await say("/status") or "")
    await house.room.snooze(claimed, 60, reason="the model is busy")
    assert "the model is busy" in (await say("/why") or "")
    await house.room.cancel(claimed.id)
    assert "cancelled" in (await say("/why") or "")
    await write(house, "ann")
    [mail] = await house.room.claim("office/inbox/lead")
    account = budgets.conversation(mail.correlation_id or "")
    await house.room.run(c.Freeze(account=account, reason="cycle"))
    assert "paused by the guard cycle" in (await say("/why") or "")


async def test_costs_are_told_of_the_last_conversation_and_of_budgets(house: House, say: Say) -> None:
    await write(house, "ann")
    now = house.deps.clock.now()
    found = await pauses.budgets(house.room, house.deps.control.office.guards, now)
    account = found[0].account
    charge = (Charge(account, 2_000_000, 5_000_000),)
    await house.room.run(c.Reserve(holder="x", charges=charge, seconds=60))
    await house.room.run(c.Settle(holder="x", charges=charge))
    await house.room.run(c.Freeze(account=account, reason="budget"))
    told = await say("/cost") or ""
    assert "Your last conversation: $0" in told
    assert f"{account}: $2" in told
    assert "used up" in told


async def test_stopping_ends_what_is_open_of_ones_own(house: House, say: Say) -> None:
    await write(house, "ann")
    assert await say("/stop ABC123") is None, "an answer to a guard"
    assert await say("/stop") == "Stopped. 1 message cancelled."


async def test_modes_are_shown_set_and_taken_back(say: Say) -> None:
    assert "There are queue" in (await say("/mode") or "")
    assert "busy: queue" in (await say("/mode queue") or "")
    assert "No agent's provider takes a message" in (await say("/mode steer") or "")
    assert "as the channel does" in (await say("/mode default") or "")


async def test_who_steers_is_told_which_agents_take_it(
    house: House, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house.deps.control.office, "list_steerable", lambda: ["coder"])
    told = await say("/mode steer") or ""
    assert "Into a turn that goes on with @coder; with any other agent the turn begins again" in told


async def test_owners_decide_about_everything_by_code_by_word_or_by_yes(house: House, say: Say) -> None:
    ask = house.deps.services.questions.ask
    first = await ask(OWNER, "Ship it?", ["yes", "no"])
    assert await say("/approve", "bob") == "Nothing waits for your decision."
    second = await ask(OWNER, "Which colour?", ["red", "blue"])
    assert "Which one?" in (await say("/approve") or "")
    assert "red · blue" in (await say(f"/approve {review_code(second)}") or "")
    assert await say(f"/approve {review_code(second)} blue") == "Decided: blue."
    assert await say("/deny") == "Decided: no."
    assert (await house.room.get(first)).result == {"decision": "no"}
    third = await ask(OWNER, "Which size?", ["small", "large"])
    assert await say("/approve large") == "Decided: large."
    assert (await house.room.get(third)).result == {"decision": "large"}


async def test_owners_let_others_write(house: House, say: Say) -> None:
    pairings = Pairings(house.room, SystemClock())
    assert await say("/pair") == "Nobody waits."
    await pairings.admit("web", "cy", "Cy")
    [waiting] = await pairings.waiting()
    assert await say("/pair") == f"{waiting.code}: Cy on web"
    assert await say(f"/pair {waiting.code} guest") == "Cy on web may write, as guest."
    assert await say("/pair", "bob") == "Only an owner can let others write."
    assert await say(f"/approve {'A' * len(waiting.code)}") == "Nothing waits for your decision."
