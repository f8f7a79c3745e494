"""Several processes on one server, killed at any moment, while the server fails too: what each was told
before it died is what the store says."""

import contextlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import redis_url
from tests.faults.history import History
from tests.faults.kills import Ending, Killed, run_child, sum_up
from tests.stores.servers.conftest import until
from tests.stores.servers.kinds import KINDS, ServerKind

PROCESSES = 3
SESSIONS = {
    "postgres": "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%room-%'",
    "mariadb": "SELECT count(*) FROM information_schema.processlist"
    " WHERE id <> CONNECTION_ID() AND db = 'room'",
}


def run_generation(
    kind: ServerKind, url: str, redis: str | None, seed: int, name: str, rng: random.Random
) -> list[dict[str, object]]:
    """Three at once, until each was killed."""
    endings = [Ending.choose(rng) for _ in range(PROCESSES)]
    fault: Callable[[], None] = rng.choice(
        [
            lambda: None,
            lambda: kind.kill_connections(url),
            lambda: kind.restart(False),
            lambda: kind.restart(True),
        ]
    )
    with ThreadPoolExecutor(PROCESSES) as threads:
        running = [
            threads.submit(run_child, url, seed, f"{name}p{number}", ending, redis)
            for number, ending in enumerate(endings)
        ]
        running[0].exception()
        fault()
        return [line for each in running for line in each.result()]


def wait_for_silence(kind: ServerKind, url: str) -> None:
    until(lambda: kind.fetch(url, SESSIONS[kind.name]) == [(0,)])


def campaign(
    kind: ServerKind, folder: Path, rooms: int, seed: int, *, generations: int = 5, with_redis: bool = False
) -> Killed:
    killed, rng = Killed(), random.Random(seed)
    redis = redis_url() if with_redis else None
    for number in range(rooms):
        url = kind.url(folder / str(number))
        history = History()
        for generation in range(generations):
            name = f"f{number}g{generation}"
            lines = run_generation(kind, url, redis, seed, name, rng)
            killed.kills += PROCESSES
            history.log += [line for line in lines if "op" in line]
            # What a killed process has sent may still be carried out.
            wait_for_silence(kind, url)
            with contextlib.closing(kind.store_class(url)) as store:
                problems = history.check(store, settled=False)
            killed.problems += [f"--seed {seed}, {name}: {problem}" for problem in problems]
            if killed.problems:
                return killed
        sum_up(history, killed)
    return killed


def test_what_a_killed_process_was_told_is_on_the_server(tmp_path: Path) -> None:
    killed = campaign(KINDS[0], tmp_path, 1, 1, generations=2)
    print(killed)
    assert not killed.problems, str(killed)
    assert killed.acknowledged > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("with_redis", [False, True], ids=["alone", "with Redis"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_many_killed_processes_were_told_is_on_the_server(
    kind: ServerKind, tmp_path: Path, with_redis: bool
) -> None:
    killed = campaign(kind, tmp_path, 6, 2, with_redis=with_redis)
    print(kind.name, with_redis, killed)
    assert not killed.problems, str(killed)
