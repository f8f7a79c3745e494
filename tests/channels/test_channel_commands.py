"""What people can ask for in a chat: commands, roles, modes; and a guard against chatting programs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.channels.chat_rules import ChatRules
from postroom.channels.loop_guard import LoopGuard
from postroom.clock import ManualClock, SystemClock
from postroom.kernel.states import OPEN, State
from postroom.office.chat_preferences import BusyMode, NoiseLevel
from postroom.office.guards import pauses
from postroom.office.pairing import SenderRole
from postroom.providers.protocol import Finished, TextChunk, TurnRequest
from postroom.providers.steering import Steering
from postroom.testing import HeldClock
from tests.acceptance.office import until
from tests.channels.chat_platforms import PLATFORMS, ChatOffice, open_chat_office

PLATFORM = PLATFORMS["webhook"]


def echo(request: TurnRequest) -> str:
    return f"echo: {request.prompt}"


@pytest.fixture
async def fake() -> AsyncIterator[Any]:
    async with PLATFORM.make(HeldClock(SystemClock().now())) as fake:
        yield fake


@pytest.fixture
async def office(fake: Any, tmp_path: Path) -> AsyncIterator[ChatOffice]:
    async with open_chat_office(tmp_path, PLATFORM, fake, echo) as office:
        await office.pair()
        yield office


async def test_commands_are_answered_at_once_and_no_agent_sees_them(office: ChatOffice) -> None:
    for words, told in (
        ("/agent", "@coder - Coder"),
        ("!team", "Leader: @lead"),
        ("/reset", "Usage: /reset @agent_id"),
        ("/reset @coder nobody", "Reset @coder (Coder).\nAgent 'nobody' not found."),
        ("/status", "You have 0 open messages."),
        ("/why", "You have not written anything yet."),
        ("/cost", "Nothing was spent."),
        ("/stop", "Nothing of yours is open."),
        ("/mode interrupt steps", "busy: interrupt. What you hear: steps"),
        ("/mode steer", "busy: steer. What you hear: steps. No agent's provider takes a message into a turn"),
        ("/mode loud", "There is no mode “loud”"),
        ("/approve", "Nothing waits for your decision."),
        ("/restart", "cannot restart itself"),
        ("/help", "/agent lists the agents"),
    ):
        await office.write(words)
        await office.hear(told)
    assert office.puppet.asked == []
    await office.write("/unknown thing")
    await office.hear("echo: /unknown thing")
    await office.write("/why")
    await office.hear("@lead is done since")


async def test_an_owner_lets_others_write_from_their_chat_and_a_member_does_not(office: ChatOffice) -> None:
    assert await office.pairings.find_role("webhook", "ann") is SenderRole.OWNER
    await office.write("hello?", office.bob)
    [told] = await office.fake.transcript.wait_for("pairing code", chat="bob")
    code = told.text.split("pairing code: ")[1].split()[0]
    await office.write(f"/approve {code}")
    await office.hear("Bob on webhook may write, as member.")
    await office.write("/pair", office.bob)
    await office.hear("Only an owner can let others write.")
    await office.write("hello", office.bob)
    await office.fake.transcript.wait_for("echo: hello", chat="bob")


async def test_a_guest_writes_to_one_agent_and_has_no_commands(office: ChatOffice) -> None:
    await office.pair(office.bob)
    await office.pairings.change_role("webhook", "bob", SenderRole.GUEST)
    await office.write("/status", office.bob)
    await office.hear("Guests can write to the agent here")
    await office.write("@coder good morning", office.bob)
    await office.hear("good morning")
    page = await office.room.messages(scope="office", message_type="office.mail", sender_id="bob")
    assert [message.agent for message in page.messages] == ["lead"]


async def test_a_default_agent_of_the_channel_gets_what_is_addressed_to_nobody(
    fake: Any, tmp_path: Path
) -> None:
    rules = ChatRules(default_agent="coder", signature=False)
    async with open_chat_office(tmp_path, PLATFORM, fake, echo, rules=rules) as office:
        await office.pair()
        await office.write("hello")
        [answer] = await office.hear("echo: hello")
        assert answer.text == "echo: hello"
        page = await office.room.messages(scope="office", message_type="office.mail")
        assert [message.agent for message in page.messages] == ["coder"]


@pytest.mark.parametrize("mode", list(BusyMode))
async def test_what_becomes_of_messages_while_the_agent_is_busy(
    mode: BusyMode, fake: Any, tmp_path: Path
) -> None:
    gate = asyncio.Event()

    async def wait(request: TurnRequest) -> str:
        if "first" in request.prompt and "second" not in request.prompt:
            await gate.wait()
        return f"echo: {request.prompt}"

    async with open_chat_office(tmp_path, PLATFORM, fake, wait, rules=ChatRules(busy=mode)) as office:
        await office.pair()
        await office.write("the first")
        await until(lambda: len(office.puppet.asked) == 1)
        for word in ("second", "third"):
            await office.write(f"the {word}")
            queued = f"the {word}"

            async def is_there(text: str = queued) -> bool:
                page = await office.room.messages(scope="office", message_type="office.mail")
                return any(message.body["text"] == text for message in page.messages)

            await until(is_there)
        if mode not in (BusyMode.INTERRUPT, BusyMode.STEER):
            gate.set()
        await office.hear("third")
        prompts = [request.prompt for request in office.puppet.asked]
        if mode is BusyMode.QUEUE:
            assert prompts == ["the first", "the second", "the third"]
        elif mode is BusyMode.COLLECT:
            assert len(prompts) == 2
            assert "second" in prompts[1]
            assert "third" in prompts[1]
        else:
            assert prompts[0] == "the first"
            assert any("first" in prompt and "second" in prompt for prompt in prompts[1:])


async def test_each_message_has_a_turn_of_its_own_unless_somebody_asks_otherwise(
    fake: Any, tmp_path: Path
) -> None:
    gate = asyncio.Event()

    async def wait(request: TurnRequest) -> str:
        await gate.wait()
        return f"echo: {request.prompt}"

    async with open_chat_office(tmp_path, PLATFORM, fake, wait, rules=ChatRules()) as office:
        await office.pair()
        for number, word in enumerate(("one", "two", "three"), start=1):
            await office.write(word)
            # Requests that are under way at once may overtake each other.
            await until(lambda count=number: holds(office, count))
        gate.set()
        await office.hear("echo: three")
        assert [request.prompt for request in office.puppet.asked] == ["one", "two", "three"]


async def test_what_is_written_meanwhile_goes_into_the_turn_where_the_provider_takes_it(
    fake: Any, tmp_path: Path
) -> None:
    late = asyncio.Event()

    async def take_words(request: TurnRequest) -> str:
        steering = find_steering(request)
        steering.open()
        words = [request.prompt]
        if "the first" in words:
            async for text in steering.words():
                words.append(text)
                if len(words) == 3:
                    steering.close()
            await late.wait()
        return "heard: " + ", ".join(words)

    rules = ChatRules(busy=BusyMode.STEER)
    async with open_chat_office(tmp_path, PLATFORM, fake, take_words, rules=rules) as office:
        office.puppet.takes_more = True
        await office.pair()
        await office.command("mode steer")
        await office.hear("Into a turn that goes on with @lead, @coder")
        await office.write("the first")
        await until(lambda: len(office.puppet.asked) == 1)
        steering = find_steering(office.puppet.asked[0])
        await until(lambda: steering.is_open)
        await office.write("the second")
        await until(lambda: "the second" in steering.accepted)
        await office.write("the third")
        await until(lambda: steering.is_over)
        # It has its answer: what comes now waits for a turn of its own, and ends nothing.
        await office.write("the fourth")
        await until(lambda: holds(office, 4))
        late.set()
        await office.hear("heard: the first, the second, the third")
        await office.hear("heard: the fourth")
        await until(lambda: holds(office, 0))
        page = await office.room.messages(scope="office", message_type="office.mail")
        assert [message.state for message in page.messages] == [State.COMPLETED] * 4
        assert [request.prompt for request in office.puppet.asked] == ["the first", "the fourth"]


def find_steering(request: TurnRequest) -> Steering:
    assert request.steering is not None
    return request.steering


async def test_progress_is_edited_into_one_message_where_the_platform_can(tmp_path: Path) -> None:
    platform = PLATFORMS["telegram"]

    def work(request: TurnRequest) -> list[Any]:
        parts = [TextChunk(text=f"step {part}", part=part) for part in range(3)]
        return [*parts, TextChunk(text="the answer", part=3), Finished(text="the answer")]

    rules = ChatRules(noise=NoiseLevel.PROGRESS)
    async with (
        platform.make(HeldClock(SystemClock().now())) as telegram,
        open_chat_office(tmp_path, platform, telegram, work, rules=rules) as office,
    ):
        await office.pair()
        await office.write("go")
        await office.hear("the answer")
        [shown] = telegram.transcript.select("step")
        assert [*shown.edits, shown.text][-1].startswith("step 2")
        assert shown.edits


async def test_who_waits_long_is_told_for_what_once_and_after_a_restart_too(
    fake: Any, tmp_path: Path
) -> None:
    rules = ChatRules(long_turn_s=0.1)
    async with open_chat_office(tmp_path, PLATFORM, fake, echo) as office:
        await office.pair()
        await pauses.pause_all(office.room)
        await office.write("is anybody there?")
        await until(lambda: holds(office, 1))
    async with open_chat_office(tmp_path, PLATFORM, fake, echo, rules=rules) as office:
        [told] = await office.hear("Your message is not answered yet.")
        assert "Everybody is paused, until the owner lets them go on." in told.text
        assert "/why tells more" in told.text
        await office.write("hello?")
        [more] = await office.hear("2 messages are not answered yet.")
        assert more.reply_to != told.reply_to
    async with open_chat_office(tmp_path, PLATFORM, fake, echo, rules=rules) as office:
        await pauses.resume_all(office.room)
        await office.hear("echo: is anybody there?")
        assert len(fake.transcript.select("not answered yet")) == 2


async def holds(office: ChatOffice, count: int) -> bool:
    page = await office.room.messages(scope="office", message_type="office.mail", state=list(OPEN))
    return len(page.messages) == count


async def test_a_message_that_the_owner_cancels_is_told_to_who_wrote_it(office: ChatOffice) -> None:
    await pauses.pause_all(office.room)
    await office.write("never mind")
    await until(lambda: holds(office, 1))
    page = await office.room.messages(scope="office", message_type="office.mail")
    await office.room.cancel(page.messages[0].id)
    await office.hear("Your message to @lead was cancelled")


def test_who_writes_too_fast_is_slowed_down_and_loses_nothing() -> None:
    clock = ManualClock()
    guard = LoopGuard(clock, events=3, window_s=60)
    assert [guard.count("bot") for _ in range(4)] == [0, 0, 0, 60]
    assert guard.count("somebody else") == 0
    clock.advance(61)
    assert guard.count("bot") == 0
