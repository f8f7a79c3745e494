"""A database of the other program, read from a copy: opening the original would write beside it."""

import contextlib
import itertools
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import apsw

from postroom.office.imports.rows import Row

TRIES = 5
PAUSE_S = 0.2
# The log of a database in WAL mode, and the journal of one that is not: what was committed may be in there.
BESIDE = ("", "-wal", "-journal")

# Only what we know is asked for, under our names and never under those of the file.
COLUMNS = {
    "messages": (
        "id message_id channel sender sender_id message agent from_agent files conversation_id status "
        "retry_count last_error created_at"
    ),
    "responses": (
        "id message_id channel sender sender_id message original_message agent files status created_at"
    ),
    "agent_messages": "id agent_id role channel sender message_id content created_at",
    "chat_messages": "id team_id from_agent message created_at",
    "projects": "id name description prefix color status created_at",
    "tasks": ("id number title description status assignee assignee_type project_id sort_order created_at"),
    "comments": "id task_id author author_type content created_at",
}


class Database:
    def __init__(self, connection: apsw.Connection, notes: list[str]) -> None:
        self._connection = connection
        self._notes = notes

    def has(self, table: str) -> bool:
        return bool(self._columns(table))

    def strange_tables(self) -> dict[str, int]:
        """Tables that nobody here knows, with how many rows each has; empty ones are nobody's loss."""
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
        try:
            names = [str(name) for (name,) in self._connection.execute(sql) if name not in COLUMNS]
            counted = {
                name: self._connection.execute(f'SELECT count(*) FROM "{_quoted(name)}"').get  # noqa: S608
                for name in names
            }
        except apsw.Error:
            return {}
        return {name: count for name, count in counted.items() if count}

    def count(self, table: str) -> int:
        try:
            sql = f'SELECT count(*) FROM "{table}"'  # noqa: S608 - a name of ours
            return self._connection.execute(sql).get if self.has(table) else 0
        except apsw.Error:
            return 0

    def rows(self, table: str, *, after: int = 0) -> Iterator[Row]:
        """In the order of entry; what is damaged ends the list, and a person is told."""
        columns = self._columns(table)
        if not columns:
            return
        # As bytes, since a text need not be UTF-8 for SQLite to keep it.
        shown = ", ".join(
            f"""CASE typeof("{name}") WHEN 'text' THEN CAST("{name}" AS BLOB) ELSE "{name}" END"""
            for name in columns
        )
        sql = f'SELECT rowid, {shown} FROM "{table}" WHERE rowid > ? ORDER BY rowid'  # noqa: S608
        try:
            for number, *values in self._connection.execute(sql, (after,)):
                yield {"rowid": number, **dict(zip(columns, values, strict=True))}
        except apsw.Error as error:
            self._notes.append(f"the table {table} is damaged ({error}); what comes after that is left out")

    def _columns(self, table: str) -> list[str]:
        try:
            found = {row[1] for row in self._connection.execute(f'PRAGMA table_info("{table}")')}
        except apsw.Error as error:
            self._tell(f"the database cannot be read ({error}) and is left out")
            return []
        return [name for name in COLUMNS[table].split() if name in found]

    def _tell(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)


def _quoted(name: str) -> str:
    return name.replace('"', '""')


@contextlib.contextmanager
def opened(path: Path, notes: list[str]) -> Iterator[Database | None]:
    """None where it cannot be read at all."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="postroom-import-"))
        try:
            connection = _copied(path, Path(folder), notes)
        except (OSError, apsw.Error) as error:
            notes.append(f"{path.name} cannot be read ({error}) and is left out")
            connection = None
        if connection is None:
            yield None
            return
        stack.callback(connection.close)
        yield Database(connection, notes)


def _copied(path: Path, folder: Path, notes: list[str]) -> apsw.Connection:
    """A copy that nobody wrote into while it was made, as far as that can be had."""
    for number in itertools.count():
        before = _signature(path)
        copy = folder / f"{number}.db"
        for ending in BESIDE:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
        if _signature(path) == before:
            return apsw.Connection(str(copy))
        if number == TRIES:
            notes.append(f"{path.name} changes all the while: stop the other program for a sure copy")
            return apsw.Connection(str(copy))
        time.sleep(PAUSE_S)
    raise AssertionError("numbers do not end")


def _signature(path: Path) -> list[tuple[int, int, int] | None]:
    found: list[tuple[int, int, int] | None] = []
    for ending in BESIDE:
        try:
            seen = Path(f"{path}{ending}").stat()
            found.append((seen.st_ino, seen.st_mtime_ns, seen.st_size))
        except OSError:
            found.append(None)
    return found
