"""The schema, by numbered steps. An existing file is copied aside before it is changed."""

import time
from pathlib import Path

import apsw

from postroom.errors import StoreCorrupt, StoreTooNew
from postroom.stores.sql.migrations import read_steps
from postroom.stores.sqlite.dialect import HERE

APPLICATION_ID = 0x504F5354  # "POST"


def steps() -> dict[int, str]:
    return read_steps(HERE)


def newest() -> int:
    return max(steps())


def migrate(db: apsw.Connection, path: str, backups: Path | None) -> Path | None:
    """Bring the file to the newest schema; the path of the backup, when one was needed."""
    version = db.pragma("user_version")
    known = newest()
    if version > known:
        raise StoreTooNew(path=path, found=version, known=known)
    empty = not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    if not empty and db.pragma("application_id") != APPLICATION_ID:
        raise StoreCorrupt(path=path, problem="it is a database of another program")
    if version == known:
        return None
    saved = None
    if not empty and backups is not None:
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        saved = backups / f"{Path(path).name}.v{version}.{stamp}.bak"
        copy_to(db, saved)
    with db:
        for number, script in steps().items():
            if number > version:
                db.execute(script)
        db.pragma("user_version", known)
        db.pragma("application_id", APPLICATION_ID)
    return saved


def copy_to(db: apsw.Connection, target: Path) -> None:
    """A consistent copy of a live database, made in small steps."""
    target.parent.mkdir(parents=True, exist_ok=True)
    copy = apsw.Connection(str(target))
    try:
        with copy.backup("main", db, "main") as backup:
            while not backup.done:
                backup.step(1024)
    finally:
        copy.close()
