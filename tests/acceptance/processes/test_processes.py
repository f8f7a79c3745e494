"""kill -9 of any process, and of the server, in a team's conversation: the person gets each answer once."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.testing import FakeTelegram
from tests import postgres_server
from tests.acceptance.office import until
from tests.acceptance.processes.office import PROCESSES, OfficeProcesses, open_processes
from tests.acceptance.processes.people import ANN, BOB, CAS, listening, pair, post, received, wait_for_answers
from tests.conftest import postgres_url

SERVER = "server"


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as fake:
        yield fake


def restart_server() -> None:
    server = postgres_server.shared_server()
    assert server is not None
    server.stop("immediate")
    server.start()


async def strike(office: OfficeProcesses, victim: str) -> None:
    if victim == SERVER:
        await asyncio.to_thread(restart_server)
    else:
        await asyncio.to_thread(office.kill, victim)


async def test_a_team_answers_once_while_a_worker_an_api_and_the_server_die(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    """Nobody starts the dead again: the others take over."""
    async with (
        open_processes(tmp_path, postgres_url(tmp_path), telegram) as office,
        listening(office) as listener,
    ):
        await pair(office, telegram, ANN)
        await telegram.write(ANN, "@dev login a1")
        await until(lambda: received(telegram, ANN, "a1")[0], within=120)
        for victim in ("worker-1", "api-1", SERVER):
            await strike(office, victim)
        await post(office, "@dev login w1", "w1")
        await wait_for_answers(telegram, [(ANN, "a1")])
        assert received(telegram, ANN, "a1") == [1, 1, 1, 1]
        await telegram.write(ANN, "@dev login a2")
        await wait_for_answers(telegram, [(ANN, "a2")])
        assert received(telegram, ANN, "a2") == [1, 1, 1, 1]
        heard = list(listener.ids)
        assert heard == await listener.hear_all_again(heard[-1])
        assert listener.connections["api-2"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_any_of_them_may_die_at_any_moment(telegram: FakeTelegram, tmp_path: Path, seed: int) -> None:
    """Each of the six and the server, in an order and at moments nobody chose; the dead are started again."""
    chance = random.Random(seed)
    victims = [*PROCESSES, SERVER]
    chance.shuffle(victims)
    conversations = []
    async with (
        open_processes(tmp_path, postgres_url(tmp_path), telegram) as office,
        listening(office) as listener,
    ):
        await pair(office, telegram, ANN, BOB, CAS)
        for number, victim in enumerate(victims):
            for person in (ANN, BOB, CAS):
                name = f"{person.name.lower()}{number}"
                conversations.append((person, name))
                await telegram.write(person, f"@dev login {name}")
            await asyncio.sleep(chance.uniform(0, 3))
            await strike(office, victim)
            await post(office, f"@dev login web{number}", f"web{number}")
            if victim != SERVER:
                office.start(victim)
                await office.ready(victim)
            await wait_for_answers(telegram, conversations)
        for person, name in conversations:
            assert max(received(telegram, person, name)) == 1, (name, victims)
        heard = list(listener.ids)
        assert heard == await listener.hear_all_again(heard[-1])
