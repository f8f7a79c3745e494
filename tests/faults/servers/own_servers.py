"""A server for one test, which may do with it what would harm the others."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import mariadb_server, postgres_server, redis_server
from tests.redis_server import RedisServer


@dataclass
class OwnServer:
    url: str
    """By its socket, from this host."""
    tcp_url: Callable[[str], str]
    """From others, by its address."""
    start: Callable[[], bool]
    """If it does not run, as whatever starts services does. Says whether it did not."""


@contextlib.contextmanager
def own_postgres(folder: Path | None = None, within: Sequence[str] = ()) -> Iterator[OwnServer]:
    programs = postgres_server.find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = postgres_server.Server(programs, folder, within)
    try:
        yield OwnServer(
            server.address(), lambda host: f"postgresql://postgres@{host}/postgres", server.start_if_down
        )
    finally:
        server.remove()


@contextlib.contextmanager
def own_mariadb(folder: Path | None = None, within: Sequence[str] = ()) -> Iterator[OwnServer]:
    program = mariadb_server.find_server()
    if program is None:
        pytest.skip("MariaDB is not installed: apt-get install mariadb-server")
    server = mariadb_server.MariadbServer(program, folder, within)
    try:
        yield OwnServer(server.url("room"), lambda host: f"mariadb://root@{host}/room", server.start_if_down)
    finally:
        server.remove()


@contextlib.contextmanager
def own_redis(folder: Path, *, wanted: bool) -> Iterator[RedisServer | None]:
    if not wanted:
        yield None
        return
    program = redis_server.find_server()
    if program is None:
        pytest.skip("Redis is not installed: apt-get install redis-server")
    with contextlib.ExitStack() as stack:
        server = RedisServer(program, folder)
        stack.callback(server.stop)
        yield server


def address_of(redis: RedisServer | None) -> str:
    return "" if redis is None else redis.url


OWN = {"postgres": own_postgres, "mariadb": own_mariadb}
