"""What can be said of a store that is a file, without its owner's lock."""

import contextlib
from pathlib import Path
from urllib.parse import quote

import apsw

from postroom.errors import StoreMissing
from postroom.stores.sql.info import StoreInfo
from postroom.stores.sql.tables import BOUNDED_BY
from postroom.stores.sqlite.errors import translated


def read_info(path: Path) -> StoreInfo:
    if not path.is_file():
        raise StoreMissing(path=str(path))
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with (
        translated(str(path)),
        contextlib.closing(apsw.Connection(f"file:{quote(str(path))}?mode=ro", flags=flags)) as db,
    ):
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        rows = {
            name: int(str(db.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]))  # noqa: S608 - ours
            for name in BOUNDED_BY
            if name in there
        }
        settings = {"journal_mode": str(db.pragma("journal_mode"))}
    return StoreInfo(
        place=f"sqlite:///{path}",
        kind=f"SQLite {apsw.sqlite_lib_version()}",
        bytes=path.stat().st_size,
        rows=rows,
        settings=settings,
        warnings=[],
    )
