"""What is written while nobody listens is answered after the connection is back, or after a restart."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import SystemClock
from postroom.providers.protocol import TurnRequest
from postroom.testing import FakeDiscord, FakeSlack, HeldClock
from postroom.testing.platforms.discord.server import APPLICATION
from postroom.testing.platforms.matrix.rooms import TIMELINE_LIMIT
from postroom.testing.platforms.slack.server import BOT_USER
from tests.channels.chat_platforms import PLATFORMS, open_chat_office, wait_until_connected


def echo(request: TurnRequest) -> str:
    return f"echo: {request.prompt}"


def make_fake(name: str) -> Any:
    return PLATFORMS[name].make(HeldClock(SystemClock().now()))


@pytest.mark.parametrize("name", ["discord", "slack", "matrix"])
async def test_what_came_between_two_lives_of_the_office_is_answered_in_order(
    name: str, tmp_path: Path
) -> None:
    platform = PLATFORMS[name]
    async with make_fake(name) as fake:
        async with open_chat_office(tmp_path, platform, fake, echo) as office:
            await office.pair()
            await office.write("before")
            await office.hear("echo: before")
        # More than a page of what the platform tells at once, and of Slack longer than it repeats.
        for number in range(TIMELINE_LIMIT + 3):
            await platform.write(fake, platform.people[0], f"missed {number}")
        if name == "slack":
            await _let_slack_give_up(fake, TIMELINE_LIMIT + 3)
        async with open_chat_office(tmp_path, platform, fake, echo) as office:
            await office.hear(f"missed {TIMELINE_LIMIT + 2}")
            asked = "\n".join(each.prompt for each in office.puppet.asked)
            places = [asked.index(f"missed {number}") for number in range(TIMELINE_LIMIT + 3)]
            assert places == sorted(places)
            assert "before" not in asked


async def _let_slack_give_up(fake: Any, count: int) -> None:
    async with asyncio.timeout(60):
        while len(fake.socket.given_up) < count:
            fake.clock.advance(60)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("name", "break_off"),
    [
        ("discord", lambda fake: fake.gateway.drop_connections()),
        ("discord", lambda fake: (fake.gateway.forget_sessions(), fake.gateway.drop_connections())),
        ("slack", lambda fake: fake.socket.drop_connections()),
    ],
    ids=["discord-resumes", "discord-begins-anew", "slack"],
)
async def test_what_came_while_the_connection_was_broken_is_answered_once(
    name: str, break_off: Callable[[Any], Any], tmp_path: Path
) -> None:
    platform = PLATFORMS[name]
    async with (
        make_fake(name) as fake,
        open_chat_office(tmp_path, platform, fake, echo) as office,
    ):
        await office.pair()
        await office.write("before")
        await office.hear("echo: before")
        break_off(fake)
        await office.write("meanwhile")
        await wait_until_connected(platform, fake)
        await office.write("after")
        await office.hear("after")
        await office.hear("meanwhile")
        asked = "\n".join(each.prompt for each in office.puppet.asked)
        assert [asked.count(word) for word in ("before", "meanwhile", "after")] == [1, 1, 1]


async def test_what_was_missed_on_a_discord_server_counts_only_when_it_mentions_the_bot(
    tmp_path: Path,
) -> None:
    platform = PLATFORMS["discord"]
    discord: FakeDiscord
    async with make_fake("discord") as discord:
        async with open_chat_office(tmp_path, platform, discord, echo) as office:
            await office.pair()
            channel = await discord.add_server("Office", office.ann)
            await discord.write(office.ann, f"<@{APPLICATION}> before", chat=channel)
            await office.hear("echo: before")
        await discord.write(platform.people[0], "just talking", chat=channel)
        await discord.write(platform.people[0], f"<@{APPLICATION}> meanwhile", chat=channel)
        async with open_chat_office(tmp_path, platform, discord, echo) as office:
            await office.hear("echo: meanwhile")
            assert [each.prompt for each in office.puppet.asked] == ["meanwhile"]


async def test_a_mention_in_a_slack_thread_that_was_missed_is_answered_in_it(tmp_path: Path) -> None:
    platform = PLATFORMS["slack"]
    slack: FakeSlack
    async with make_fake("slack") as slack:
        async with open_chat_office(tmp_path, platform, slack, echo) as office:
            await office.pair()
            channel = slack.add_channel(office.ann)
            old = await slack.write(office.ann, "an old thread", chat=channel)
            await slack.write(office.ann, f"<@{BOT_USER}> before", chat=channel)
            await office.hear("echo: before")
        ann = platform.people[0]
        await slack.write(ann, "just talking", chat=channel, thread=old.message_id)
        await slack.write(ann, f"<@{BOT_USER}> in the old thread", chat=channel, thread=old.message_id)
        new = await slack.write(ann, "a new thread", chat=channel)
        await slack.write(ann, f"<@{BOT_USER}> in the new thread", chat=channel, thread=new.message_id)
        await _let_slack_give_up(slack, 6)
        async with open_chat_office(tmp_path, platform, slack, echo) as office:
            [first] = await office.hear("echo: in the old thread")
            [second] = await office.hear("echo: in the new thread")
            assert (first.thread, second.thread) == (old.message_id, new.message_id)
            assert [each.prompt for each in office.puppet.asked] == ["in the old thread", "in the new thread"]
