"""A server for one test, which may do with it what would harm the others."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import mariadb_server, postgres_server


@dataclass
class OwnServer:
    url: str
    """By its socket, from this host."""
    tcp_url: Callable[[str], str]
    """From others, by its address."""
    start: Callable[[], None]
    """If it does not run, as whatever starts services does."""


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


OWN = {"postgres": own_postgres, "mariadb": own_mariadb}
