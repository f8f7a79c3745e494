"""A home of TinyAGI goes on here: its channels start with the tokens it had, and its people may write."""

import asyncio
import json
from pathlib import Path
from typing import Any

from postroom.testing import FakeDiscord, FakeTelegram, Person
from tests.acceptance.office import until
from tests.app.house_process import HouseProcess

ANN, BOB = Person("1001", "Ann Archer", "ann"), Person("2002", "Bob", "bob")
ANSWER = "I have read your message"


def make_old_home(folder: Path, telegram: FakeTelegram, discord: FakeDiscord) -> Path:
    old = folder / ".tinyagi"
    (old / "whatsapp-session").mkdir(parents=True)
    settings = {
        "channels": {
            "enabled": ["telegram", "discord", "whatsapp"],
            "telegram": {"bot_token": telegram.token},
            "discord": {"bot_token": discord.token},
            "whatsapp": {},
        },
        "agents": {"coder": {"name": "Coder", "provider": "script", "model": ""}},
    }
    (old / "settings.json").write_text(json.dumps(settings))
    approved = [
        {"channel": channel, "senderId": sender_id, "sender": name, "approvedCode": "ABCD2345"}
        for channel, sender_id, name in (
            ("telegram", ANN.id, ANN.name),
            ("discord", BOB.id, BOB.name),
            ("whatsapp", "491700001@c.us", "Cid"),
        )
    ]
    (old / "pairing.json").write_text(json.dumps({"pending": [], "approved": approved}))
    return old


async def test_an_imported_home_starts_its_channels_with_the_tokens_it_had(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram, FakeDiscord() as discord:
        old = make_old_home(tmp_path, telegram, discord)
        house = HouseProcess(tmp_path)

        async def ask(*words: str) -> str:
            return (await asyncio.to_thread(house.cli, *words)).stdout

        try:
            moved: dict[str, Any] = json.loads(await ask("import", "tinyagi", str(old), "--yes", "--json"))
            [told] = [note for note in moved["notes"] if "login of WhatsApp" in note]
            assert "cannot be carried over" in told
            assert "postroom channel setup whatsapp_personal" in told
            for name, url in (
                ("telegram.base_url", telegram.url),
                ("discord.base_url", discord.api_url),
                ("discord.gateway_url", discord.gateway_url),
            ):
                await ask("settings", "set", f"channels.{name}", url)
            await asyncio.to_thread(house.start)
            await until(lambda: discord.gateway.connected, within=150)
            await telegram.write(ANN, "are you there?")
            await discord.write(BOB, "and here?")
            for fake in (telegram, discord):
                await until(lambda fake=fake: bool(fake.transcript.select(ANSWER)), within=150)
            paired = json.loads(await ask("pairing", "list", "--json"))["approved"]
            there = {(each["channel"], each["senderId"]) for each in paired}
            assert {("whatsapp", "491700001"), ("whatsapp_personal", "491700001")} <= there
            listed = json.loads(await ask("channel", "list", "--json"))
            assert "postroom channel setup whatsapp" in listed["whatsapp"]["problem"]
        finally:
            house.end()
