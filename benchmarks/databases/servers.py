"""Servers of the benchmark's own, in temporary folders, durable: what they call committed is on the disk."""

import contextlib
import itertools
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
from tests import mariadb_server, postgres_server, redis_server

# What the tests switch off is on again; all else is the server's default.
POSTGRES = {
    "fsync": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "deadlock_timeout": "1s",
    "shared_buffers": "128MB",
}
MARIADB = ("--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1", "--innodb-buffer-pool-size=128M")


class Postgres:
    def __init__(self, server: postgres_server.Server) -> None:
        self._server = server
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The address of an empty one, gone afterwards."""
        name = f"bench_{next(self._numbers)}"
        with psycopg.connect(self._server.address(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield f"postgresql://postgres@/{name}?host={quote(str(self._server.folder), safe='')}"
        finally:
            with psycopg.connect(self._server.address(), autocommit=True) as db:
                db.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
                db.execute("CHECKPOINT")

    def version(self) -> str:
        with psycopg.connect(self._server.address()) as db:
            return db.execute("SHOW server_version").fetchall()[0][0].split()[0]


class Mariadb:
    def __init__(self, server: mariadb_server.MariadbServer) -> None:
        self._server = server
        self._numbers = itertools.count(1)

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        name = f"bench_{next(self._numbers)}"
        try:
            yield self._server.url(name)
        finally:
            self._server.execute(f"DROP DATABASE {name}")

    def version(self) -> str:
        return self._server.execute("SELECT version()")[0][0].split("-")[0]


@contextlib.contextmanager
def start_postgres() -> Iterator[Postgres]:
    programs = postgres_server.find_programs()
    if programs is None:
        raise SystemExit("PostgreSQL is not installed. On Debian: apt install postgresql")
    server = postgres_server.Server(programs)
    try:
        server.stop("fast")
        server.start(**POSTGRES)
        yield Postgres(server)
    finally:
        server.remove()


@contextlib.contextmanager
def start_mariadb() -> Iterator[Mariadb]:
    program = mariadb_server.find_server()
    if program is None:
        raise SystemExit("MariaDB is not installed. On Debian: apt install mariadb-server")
    server = mariadb_server.MariadbServer(program)
    try:
        # One that has only just started may not hear that it should end.
        server.stop(kill=True)
        server.start(*MARIADB)
        yield Mariadb(server)
    finally:
        server.remove()


def find_redis() -> redis_server.RedisServer:
    """A running one."""
    server = redis_server.shared_server()
    if server is None:
        raise SystemExit("Redis is not installed. On Debian: apt install redis-server")
    return server
