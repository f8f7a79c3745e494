"""A store from one address to another, and what can be said of one. The store it comes from is only read."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from postroom.errors import InvalidField, UnknownStore
from postroom.stores.addresses import MARIADB, POSTGRES, SQLITE, needing_extra
from postroom.stores.sql.info import StoreInfo, StoreState
from postroom.stores.sql.transfer import MovedTable, Progress, StoreTables, transfer
from postroom.stores.sqlite import info as sqlite_info
from postroom.stores.sqlite.transfer import SqliteTables


def move_store(source: str, target: str, progress: Progress) -> list[MovedTable]:
    """Every row, compared with what it was copied from. Cut off, it goes on where it was when run again."""
    with _open_tables(source, is_source=True) as left:
        if source == target:
            raise InvalidField("TO", "is where the store is already; name another address")
        with _open_tables(target, is_source=False) as right:
            return transfer(left, right, progress)


def describe_store(url: str) -> StoreInfo:
    if url.startswith(POSTGRES):
        with needing_extra("postgres"):
            from postroom.stores.postgres import info as postgres_info
        return postgres_info.read_info(url)
    if url.startswith(MARIADB):
        with needing_extra("mariadb"):
            from postroom.stores.mariadb import info as mariadb_info
        return mariadb_info.read_info(url)
    return sqlite_info.read_info(_path(url))


def read_state(url: str) -> StoreState:
    """Of a store on a server."""
    if url.startswith(POSTGRES):
        with needing_extra("postgres"):
            from postroom.stores.postgres import info as postgres_info
        return postgres_info.read_state(url)
    if not url.startswith(MARIADB):
        raise UnknownStore(url=url)
    with needing_extra("mariadb"):
        from postroom.stores.mariadb import info as mariadb_info
    return mariadb_info.read_state(url)


@contextlib.contextmanager
def _open_tables(url: str, *, is_source: bool) -> Iterator[StoreTables]:
    tables = _find_tables(url, is_source=is_source)
    try:
        yield tables
    except Exception as error:
        found = tables.classify(error)
        if found is error:
            raise
        raise found from error
    finally:
        tables.close()


def _find_tables(url: str, *, is_source: bool) -> StoreTables:
    if url.startswith(POSTGRES):
        with needing_extra("postgres"):
            from postroom.stores.postgres.transfer import PostgresTables
        return PostgresTables(url, is_source=is_source)
    if url.startswith(MARIADB):
        with needing_extra("mariadb"):
            from postroom.stores.mariadb.transfer import MariadbTables
        return MariadbTables(url, is_source=is_source)
    return SqliteTables(_path(url), is_source=is_source)


def _path(url: str) -> Path:
    path = url.removeprefix(SQLITE)
    if not path or "://" in path:
        raise UnknownStore(url=url)
    return Path(path).expanduser().absolute()
