"""Whatever happens to a server or on the way to it under load: nothing is lost, and nothing is done twice."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

import postroom
from postroom import SyncRoom
from postroom.errors import PostroomError
from tests import mariadb_server, postgres_server
from tests.conformance.promises import check_promises
from tests.faults.servers.load import LEASE_S
from tests.faults.servers.proxy import SocketProxy, proxy
from tests.redis_server import RedisServer, find_server
from tests.stores.servers.conftest import until
from tests.stores.servers.kinds import KINDS, ServerKind

WORKERS = 3


@dataclass
class Load:
    """The processes at work, and everything a fault may do harm to."""

    kind: ServerKind
    url: str
    way: SocketProxy
    redis: RedisServer | None
    room: SyncRoom
    publisher: "subprocess.Popen[str]"
    workers: "list[subprocess.Popen[str]]"
    start_worker: Callable[[], "subprocess.Popen[str]"]
    published: list[int]
    chance: random.Random


def kill_worker(load: Load) -> None:
    victim = load.chance.choice(load.workers)
    load.workers.remove(victim)
    victim.kill()
    victim.wait()
    load.workers.append(load.start_worker())


def freeze_worker(load: Load) -> None:
    """Longer than its lease; then it goes on as if nothing had been."""
    victim = load.chance.choice(load.workers)
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
                load.room.publish(first, seed)
                load.room.update_queue(second, max_depth=100_000 + chance.randrange(10))

    for name in ("left", "right"):
        load.room.create_queue(name, exist_ok=True)
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
    """Clocks of two workers are ten minutes off, one each way."""
    url = kind.url(folder)
    program = find_server()
    with contextlib.ExitStack() as stack:
        redis = None
        if with_redis:
            if program is None:
                pytest.skip("Redis is not installed: apt-get install redis-server")
            redis = RedisServer(program, folder)
            stack.callback(redis.stop)
        redis_url = redis.url if redis is not None else ""
        way, proxied = stack.enter_context(open_way(kind, folder, url)), way_url(kind, folder, url)
        room = stack.enter_context(postroom.open_sync(url, actor="judge"))
        room.create_queue("jobs", max_retries=50)
        published: list[int] = []
        clocks = itertools.cycle((0, 600, -600))

        def start(role: str, *words: str) -> "subprocess.Popen[str]":
            command = [sys.executable, "-m", "tests.faults.servers.load", proxied, redis_url]
            ahead = str(next(clocks)) if role == "worker" else "0"
            with (folder / f"{role}.err").open("ab") as errors:
                process = subprocess.Popen(
                    [*command, ahead, role, *words], stdout=subprocess.PIPE, stderr=errors, text=True
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout is not None
            stack.callback(process.stdout.close)
            return process

        workers = [start("worker") for _ in range(WORKERS)]
        publisher = start("publisher", str(folder / "stop"))
        hearing = threading.Thread(target=hear, args=(publisher, published))
        hearing.start()
        try:
            yield Load(
                kind,
                url,
                way,
                redis,
                room,
                publisher,
                workers,
                lambda: start("worker"),
                published,
                random.Random(seed),
            )
        finally:
            publisher.kill()
            hearing.join()


def hear(publisher: "subprocess.Popen[str]", published: list[int]) -> None:
    assert publisher.stdout is not None
    for line in publisher.stdout:
        if line.strip().isdigit():
            published.append(int(line))


def open_way(kind: ServerKind, folder: Path, url: str) -> contextlib.AbstractContextManager[SocketProxy]:
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


def go_on(load: Load, more: int = 10) -> None:
    """Until some more are done: what was broken works again."""
    so_far = load.room.counts("jobs").completed
    until(lambda: load.room.counts("jobs").completed >= so_far + more, within=300)


def check(load: Load, folder: Path) -> None:
    """Each message was accepted once, done once, and the ledger and the store tell the same."""
    go_on(load)
    (folder / "stop").touch()
    load.publisher.wait(300)
    room = load.room
    until(lambda: room.counts("jobs").pending == 0 and not room.counts("jobs").claimed, within=300)
    until(lambda: load.published[-1] == len(load.published) - 1)
    count = len(load.published)
    events = list(room.events())
    messages = [message for page in list_pages(room) for message in page]
    assert sorted(message.body for message in messages) == list(range(count))
    completed = [event.message_id or "" for event in events if event.type == "message.completed"]
    assert sorted(completed) == sorted(message.id for message in messages)
    check_promises(room)
    print(f"{load.kind.name}: {count} messages, {len(events)} events, none lost")


def list_pages(room: SyncRoom) -> Iterator[list[postroom.Message]]:
    cursor = None
    while True:
        page = room.messages(queue="jobs", limit=1000, cursor=cursor)
        yield page.messages
        cursor = page.next_cursor
        if cursor is None:
            return


def test_a_sample_of_faults_loses_nothing(tmp_path: Path) -> None:
    with loaded(KINDS[0], tmp_path, seed=1, with_redis=True) as load:
        for name in ("one connection ended by the server", "connections dropped on the way"):
            go_on(load)
            FAULTS[name](load)
        restart_redis(load)
        check(load, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("with_redis", [False, True], ids=["alone", "with Redis"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_fault_loses_nothing(kind: ServerKind, tmp_path: Path, with_redis: bool) -> None:
    """Each twice, in an order nobody chose."""
    faults = [*FAULTS.values(), *(REDIS_FAULTS.values() if with_redis else ())] * 2
    random.Random(f"{kind.name} {with_redis}").shuffle(faults)
    with loaded(kind, tmp_path, seed=2, with_redis=with_redis) as load:
        for strike in faults:
            go_on(load)
            strike(load)
        check(load, tmp_path)
