"""Groups, threads and slash commands where platforms have them. Telegram's are tried in test_telegram."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.clock import SystemClock
from postroom.providers.protocol import TurnRequest
from postroom.testing import Delivery, FakeDiscord, FakeMatrix, FakeSlack, HeldClock
from postroom.testing.platforms.discord.server import APPLICATION
from postroom.testing.platforms.slack.server import BOT_USER
from tests.channels.chat_platforms import PLATFORMS, ChatOffice, open_chat_office


def echo(request: TurnRequest) -> str:
    return f"echo: {request.prompt}"


@pytest.fixture
async def office(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ChatOffice]:
    platform = PLATFORMS[request.param]
    async with (
        platform.make(HeldClock(SystemClock().now())) as fake,
        open_chat_office(tmp_path, platform, fake, echo) as office,
    ):
        await office.pair()
        yield office


def prompts(office: ChatOffice) -> list[str]:
    return [asked.prompt for asked in office.puppet.asked]


async def hear_in(office: ChatOffice, chat: str, text: str) -> Delivery:
    [heard] = await office.fake.transcript.wait_for(text, chat=chat)
    return heard


@pytest.mark.parametrize("office", ["discord"], indirect=True)
async def test_on_a_discord_server_the_bot_hears_what_mentions_or_answers_it(office: ChatOffice) -> None:
    discord: FakeDiscord = office.fake
    channel = await discord.add_server("Office", office.ann)
    await discord.write(office.ann, "just talking", chat=channel)
    await discord.write(office.ann, f"<@{APPLICATION}> status?", chat=channel)
    answer = await hear_in(office, channel, "echo: status?")
    await discord.write(office.ann, "really?", chat=channel, reply_to=answer.id)
    await hear_in(office, channel, "echo: really?")
    assert prompts(office) == ["status?", "really?"]


@pytest.mark.parametrize("office", ["discord"], indirect=True)
async def test_in_a_discord_thread_the_answer_stays_in_the_thread(office: ChatOffice) -> None:
    discord: FakeDiscord = office.fake
    thread = await discord.add_thread(await discord.add_server("Office", office.ann), "Releases")
    await discord.write(office.ann, f"<@{APPLICATION}> status?", chat=thread)
    await hear_in(office, thread, "echo: status?")


@pytest.mark.parametrize("office", ["discord"], indirect=True)
async def test_a_discord_slash_command_is_answered(office: ChatOffice) -> None:
    await office.fake.command(office.ann, "agent")
    await office.hear("@coder - Coder")
    await office.fake.command(office.ann, "mode", {"words": "steps"})
    await office.hear("What you hear: steps")
    assert prompts(office) == []


@pytest.mark.parametrize("office", ["slack", "slack-requests"], indirect=True)
async def test_in_a_slack_channel_a_mention_is_answered_once_in_its_thread(office: ChatOffice) -> None:
    slack: FakeSlack = office.fake
    channel = slack.add_channel(office.ann)
    await slack.write(office.ann, "just talking", chat=channel)
    asked = await slack.write(office.ann, f"<@{BOT_USER}> status?", chat=channel)
    assert (await hear_in(office, channel, "echo: status?")).thread == asked.message_id
    again = await slack.write(office.ann, f"<@{BOT_USER}> really?", chat=channel, thread=asked.message_id)
    assert (await hear_in(office, channel, "echo: really?")).thread == asked.message_id
    assert again.chat == channel
    assert prompts(office) == ["status?", "really?"]


@pytest.mark.parametrize("office", ["slack", "slack-requests"], indirect=True)
async def test_a_slack_slash_command_is_answered(office: ChatOffice) -> None:
    await office.fake.command(office.ann, "/agent")
    await office.hear("@coder - Coder")
    assert prompts(office) == []


@pytest.mark.parametrize("office", ["matrix"], indirect=True)
async def test_in_a_matrix_room_the_bot_hears_its_name_and_answers_in_the_thread(office: ChatOffice) -> None:
    matrix: FakeMatrix = office.fake
    room = matrix.add_room(office.ann)
    matrix.join(room, office.bob)
    first = await matrix.write(office.ann, "just talking", chat=room)
    await matrix.write(office.ann, f"{matrix.bot} status?", chat=room)
    await hear_in(office, room, "echo: status?")
    await matrix.write(office.ann, f"{matrix.bot} really?", chat=room, thread=first.message_id)
    assert (await hear_in(office, room, "echo: really?")).thread == first.message_id
    assert prompts(office) == ["status?", "really?"]
