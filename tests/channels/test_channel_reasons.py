"""Whoever starts, stops or restarts a channel over HTTP hears the true reason why it cannot be."""

import asyncio
from pathlib import Path

import httpx2

from postroom.testing import FakeTelegram, Person
from tests.app.house_process import HouseProcess

ANN = Person("1001", "Ann Archer", "ann")
UNKNOWN_TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"
MISSING = "raise ModuleNotFoundError(\"No module named 'slack_sdk'\", name='slack_sdk')\n"


async def test_the_reasons_of_a_channel_that_cannot_start_are_the_true_ones(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram, FakeTelegram() as another:
        channels = {
            "telegram": {"base_url": telegram.url, "bot_token": telegram.token},
            "sales": {"platform": "telegram", "base_url": another.url, "bot_token": another.token},
            "wrong": {"platform": "telegram", "base_url": telegram.url, "bot_token": UNKNOWN_TOKEN},
            "slack": {"bot_token": "xoxb-0123456789", "app_token": "xapp-0123456789"},
            "pager": {"platform": "pager"},
        }
        house = HouseProcess(tmp_path, channels=channels)
        blocked = tmp_path / "blocked"
        blocked.mkdir()
        (blocked / "slack_sdk.py").write_text(MISSING)
        house.env["PYTHONPATH"] = str(blocked)
        try:
            await asyncio.to_thread(house.start)
            async with httpx2.AsyncClient(base_url=house.url, headers=house.headers, timeout=120) as http:

                async def ask(channel: str, action: str) -> tuple[int, str]:
                    answer = await http.post(f"/api/services/channel/{channel}/{action}")
                    return answer.status_code, answer.text

                assert (await ask("telegram", "start"))[0] == 200
                for channel, action, reason in (
                    ("telegram", "start", "runs already. To begin anew: postroom channel restart telegram"),
                    ("wrong", "start", "Telegram does not know its token. Ask @BotFather"),
                    ("wrong", "restart", "Telegram does not know its token. Ask @BotFather"),
                    ("icq", "start", "There is no platform"),
                    ("pager", "start", "There is no platform"),
                    ("icq", "stop", "icq is not running"),
                    (
                        "slack",
                        "start",
                        "slack_sdk is not installed. Install it: pip install 'postroom[slack]'",
                    ),
                    ("slack", "restart", "slack_sdk is not installed"),
                    ("discord", "start", "it has no bot token. See: postroom channel setup discord"),
                ):
                    status, said = await ask(channel, action)
                    assert status == 400, (channel, action, said)
                    assert reason in said, (channel, action, said)
                # A second bot of the platform has chats and people of its own.
                assert (await ask("sales", "start"))[0] == 200
                await another.write(ANN, "hello?")
                await another.transcript.wait_for("pairing code", chat=ANN.id)
                assert telegram.transcript.deliveries == []
                assert (await ask("telegram", "restart"))[0] == 200
                assert (await ask("telegram", "stop"))[0] == 200
                assert (await ask("telegram", "stop"))[0] == 400
        finally:
            house.end()
