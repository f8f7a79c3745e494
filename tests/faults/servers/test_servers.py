"""Whatever happens to a server or on the way to it under load: nothing is lost, and nothing is done twice."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from postroom.errors import PostroomError
from tests import mariadb_server, postgres_server
from tests.faults.servers.crew import Crew, at_work
from tests.faults.servers.load import LEASE_S
from tests.faults.servers.own_servers import address_of, own_redis
from tests.faults.servers.proxy import SocketProxy, proxy
from tests.redis_server import RedisServer
from tests.stores.servers.kinds import KINDS, ServerKind


@dataclass
class Load:
    """The processes at work, and everything a fault may do harm to."""

    kind: ServerKind
    url: str
    way: SocketProxy
    redis: RedisServer | None
    crew: Crew
    chance: random.Random


def kill_worker(load: Load) -> None:
    victim = load.chance.choice(load.crew.workers)
    load.crew.workers.remove(victim)
    victim.kill()
    victim.wait()
    load.crew.workers.append(load.crew.start_worker())


def freeze_worker(load: Load) -> None:
    """Longer than its lease; then it goes on as if nothing had been."""
    victim = load.chance.choice(load.crew.workers)
    os.kill(victim.pid, signal.SIGSTOP)
    try:
        time.sleep(LEASE_S + 1)
    finally:
        os.kill(victim.pid, signal.SIGCONT)


def kill_one_backend(load: Load) -> None:
    if load.kind.name == "postgres":
        load.kind.fetch(
            load.url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend' ORDER BY random() LIMIT 1",
        )
        return
    server = mariadb_server.shared_server()
    assert server is not None
    others = load.kind.fetch(
        load.url,
        "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND db = 'room'"
        " ORDER BY RAND() LIMIT 1",
    )
    for (number,) in others:
        with contextlib.suppress(Exception):  # it may have gone by itself
            server.execute(f"KILL {number}")


def slow_down(load: Load) -> None:
    load.way.delay_s = 0.05
    time.sleep(2)
    load.way.delay_s = 0.0


def exhaust_connections(load: Load) -> None:
    """All that the server has are taken for a while, and those in use are cut: nobody can come back."""
    taken = []
    try:
        with contextlib.suppress(Exception):
            for _ in range(400):
                taken.append(postgres_connection() if load.kind.name == "postgres" else mariadb_connection())
        load.way.cut()
        time.sleep(1)
    finally:
        for each in taken:
            each.close()


def postgres_connection():
    import psycopg

    server = postgres_server.shared_server()
    assert server is not None
    return psycopg.connect(server.address())


def mariadb_connection():
    import pymysql

    server = mariadb_server.shared_server()
    assert server is not None
    return pymysql.connect(unix_socket=str(server.socket), user="root")


def storm(load: Load) -> None:
    """Many who change the same queues and budgets in different orders."""

    def change(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(10):
            with contextlib.suppress(PostroomError):
                first, second = chance.sample(("left", "right"), 2)
                load.crew.room.publish(first, seed)
                load.crew.room.update_queue(second, max_depth=100_000 + chance.randrange(10))

    for name in ("left", "right"):
        load.crew.room.create_queue(name, exist_ok=True)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(change, range(8)))


def flush_redis(load: Load) -> None:
    assert load.redis is not None
    load.redis.send("FLUSHALL")


def restart_redis(load: Load) -> None:
    assert load.redis is not None
    load.redis.stop()
    time.sleep(1)
    load.redis.start()


FAULTS: dict[str, Callable[[Load], None]] = {
    "worker killed": kill_worker,
    "worker frozen past its lease": freeze_worker,
    "one connection ended by the server": kill_one_backend,
    "all connections ended by the server": lambda load: load.kind.kill_connections(load.url),
    "server restarted": lambda load: load.kind.restart(False),
    "server cut off": lambda load: load.kind.restart(True),
    "connections dropped on the way": lambda load: load.way.cut(),
    "slow network": slow_down,
    "no connection to be had": exhaust_connections,
    "deadlock storm": storm,
}
REDIS_FAULTS = {"Redis emptied": flush_redis, "Redis stopped": restart_redis}


@contextlib.contextmanager
def loaded(kind: ServerKind, folder: Path, seed: int, *, with_redis: bool) -> Iterator[Load]:
    url = kind.url(folder)
    with (
        own_redis(folder, wanted=with_redis) as redis,
        open_way(kind, folder) as way,
        at_work(folder, url, way_url(kind, folder, url), address_of(redis)) as crew,
    ):
        yield Load(kind, url, way, redis, crew, random.Random(seed))


def open_way(kind: ServerKind, folder: Path) -> contextlib.AbstractContextManager[SocketProxy]:
    if kind.name == "postgres":
        server = postgres_server.shared_server()
        assert server is not None
        return proxy(folder / ".s.PGSQL.5432", server.folder / ".s.PGSQL.5432")
    mariadb = mariadb_server.shared_server()
    assert mariadb is not None
    return proxy(folder / "way", mariadb.socket)


def way_url(kind: ServerKind, folder: Path, url: str) -> str:
    if kind.name == "postgres":
        server = postgres_server.shared_server()
        assert server is not None
        return url.replace(quote(str(server.folder), safe=""), quote(str(folder), safe=""))
    mariadb = mariadb_server.shared_server()
    assert mariadb is not None
    return url.replace(quote(str(mariadb.socket), safe=""), quote(str(folder / "way"), safe="")).replace(
        str(mariadb.socket), str(folder / "way")
    )


def test_a_sample_of_faults_loses_nothing(tmp_path: Path) -> None:
    kind = KINDS[0]
    with loaded(kind, tmp_path, seed=1, with_redis=True) as load:
        for name in ("one connection ended by the server", "connections dropped on the way"):
            load.crew.go_on()
            FAULTS[name](load)
        restart_redis(load)
        print(f"{kind.name}: {load.crew.check()}")


@pytest.mark.slow
@pytest.mark.parametrize("with_redis", [False, True], ids=["alone", "with Redis"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_fault_loses_nothing(kind: ServerKind, tmp_path: Path, with_redis: bool) -> None:
    """Each twice, in an order nobody chose."""
    faults = [*FAULTS.values(), *(REDIS_FAULTS.values() if with_redis else ())] * 2
    random.Random(f"{kind.name} {with_redis}").shuffle(faults)
    with loaded(kind, tmp_path, seed=2, with_redis=with_redis) as load:
        for strike in faults:
            load.crew.go_on()
            strike(load)
        print(f"{kind.name}: {load.crew.check()}")
