"""`postroom channel test` asks the platform, and sends a first message, without a server."""

import asyncio
import json
from pathlib import Path

import pytest

from postroom.clock import SystemClock
from postroom.terminal.cli.channel_check import FIRST
from postroom.testing import HeldClock
from tests.app.house_process import HouseProcess
from tests.channels.chat_platforms import PLATFORMS

ALWAYS = ("telegram",)
# Whoever gets a first message on these must have written, or shares a room with the bot.
UNTOLD = ("whatsapp", "matrix")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow) for name in PLATFORMS]
)
async def test_a_channel_is_tried_and_a_first_message_sent(name: str, tmp_path: Path) -> None:
    platform = PLATFORMS[name]
    async with platform.make(HeldClock(SystemClock().now())) as fake:
        event = await platform.write(fake, platform.people[0], "hello")
        house = HouseProcess(tmp_path, channels={name: platform.options(fake)})
        words = ("channel", "test", name, "--json")
        if name in UNTOLD:
            done = await asyncio.to_thread(house.cli, *words)
            assert json.loads(done.stdout)["ok"]
            refused = await asyncio.to_thread(house.cli, *words, "--to", platform.people[0].id, check=False)
            assert "The settings are right, but nothing was sent" in refused.stderr
            return
        await asyncio.to_thread(house.cli, *words, "--to", event.chat)
        fake.transcript.exactly_one(FIRST)


async def test_setting_up_tells_a_wrong_token_and_sends_a_first_message_with_a_right_one(
    tmp_path: Path,
) -> None:
    platform = PLATFORMS["telegram"]
    async with platform.make(HeldClock(SystemClock().now())) as fake:
        house = HouseProcess(tmp_path, channels={"telegram": {"base_url": fake.url}})
        wrong = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"
        words = ("channel", "setup", "telegram", "--token", wrong, "--test")
        refused = await asyncio.to_thread(house.cli, *words, check=False)
        assert refused.returncode
        assert "does not know its token" in refused.stderr
        event = await platform.write(fake, platform.people[0], "hello")
        words = ("channel", "setup", "telegram", "--token", fake.token, "--to", event.chat)
        told = await asyncio.to_thread(house.cli, *words)
        assert "A first message is on its way" in told.stdout + told.stderr
        fake.transcript.exactly_one(FIRST, chat=event.chat)
