"""Telegram in a real Postroom process: set up, paired with a person, killed, and still answering."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.channels.delivery_worker import REMARK
from postroom.testing import FakeTelegram, Person
from tests.acceptance.office import until
from tests.app.house_process import HouseProcess

ANN = Person("1001", "Ann Archer", "ann")
WRONG = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"
ANSWER = "I have read your message"


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


@pytest.fixture
async def house(telegram: FakeTelegram, tmp_path: Path) -> AsyncIterator[HouseProcess]:
    house = HouseProcess(tmp_path, channels={"telegram": {"base_url": telegram.url}})
    house.env["TELEGRAM_TOKEN"] = telegram.token
    yield house
    house.end()


async def ask(house: HouseProcess, *words: str) -> str:
    return (await asyncio.to_thread(house.cli, *words)).stdout


async def set_up_and_pair(house: HouseProcess, telegram: FakeTelegram) -> None:
    told = await ask(house, "channel", "setup", "telegram", "--token", "env:TELEGRAM_TOKEN")
    assert "telegram is switched on, and runs" in told
    await telegram.write(ANN, "hello?")
    [said] = await telegram.transcript.wait_for("pairing code", chat=ANN.id)
    await ask(house, "pairing", "approve", said.text.split("pairing code: ")[1].split()[0])


async def test_an_owner_sets_it_up_at_the_second_try_and_a_person_is_paired_and_answered(
    house: HouseProcess, telegram: FakeTelegram
) -> None:
    await asyncio.to_thread(house.start)
    told = await ask(house, "channel", "setup", "telegram", "--token", WRONG)
    assert "Telegram does not know its token. Ask @BotFather" in told
    assert "does not know its token" in await ask(house, "channel", "list")
    await set_up_and_pair(house, telegram)
    asked = await telegram.write(ANN, "what is new?")
    [answer] = await telegram.transcript.wait_for(ANSWER, chat=ANN.id)
    assert answer.reply_to == asked.message_id
    listed = json.loads(await ask(house, "channel", "list", "--json"))
    assert listed["telegram"] == {"enabled": True, "token": True, "running": True}
    refused = await asyncio.to_thread(house.cli, "channel", "start", "telegram", check=False)
    assert "runs already" in refused.stderr
    assert "telegram: stopped" in await ask(house, "channel", "stop", "telegram")
    await telegram.write(ANN, "are you there?")
    assert json.loads(await ask(house, "channel", "list", "--json"))["telegram"]["running"] is False
    await ask(house, "channel", "start", "telegram")
    await wait_for_answers(telegram, 2)
    await ask(house, "stop")
    logs = [path.read_text() for path in house.home.logs.iterdir() if path.is_file()]
    assert any(logs)
    assert not any(telegram.token in log for log in logs)


@pytest.mark.slow
async def test_a_killed_process_loses_nothing_and_repeats_nothing(
    house: HouseProcess, telegram: FakeTelegram
) -> None:
    await asyncio.to_thread(house.start)
    await set_up_and_pair(house, telegram)
    first = await telegram.write(ANN, "one")
    await wait_for_answers(telegram, 1)
    held = telegram.faults.hold("sendMessage", "after")
    await telegram.write(ANN, "two")
    await held.reached.wait()
    await asyncio.to_thread(house.kill)
    held.release()
    telegram.redeliver(first)
    await telegram.write(ANN, "three")
    await asyncio.to_thread(house.start)
    await wait_for_answers(telegram, 3)
    telegram.transcript.exactly_one(REMARK)
    assert len(answers(telegram)) == 3
    assert telegram.unconfirmed == []


def answers(telegram: FakeTelegram) -> list[Any]:
    return telegram.transcript.select(ANSWER, chat=ANN.id)


async def wait_for_answers(telegram: FakeTelegram, count: int) -> None:
    await until(lambda: len(answers(telegram)) >= count, within=150)
