"""The light engine: DuckDB over the lake's files, in this process, with neither Java nor a server.

Each table is looked up once, when it is first asked for, and answers from that version until the engine closes.
Opening files is what a question costs, so one about some days opens only the files of those days.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa

from postroom.pipeline.errors import LakeMissing, QueryRefused, TableMissing
from postroom.pipeline.lake.lake import Lake, LakeFile
from postroom.pipeline.lake.reading import dataset
from postroom.pipeline.lake.tables import ALL, BY_SHORT, MESSAGES, QUARANTINE, RECORDS, Table

MEMORY_MB = 512
# Names people would look for, over bronze as it is kept.
_VIEWS = {
    "turns": (RECORDS, "SELECT * FROM records WHERE kind = 'turn'"),
    "deliveries": (MESSAGES, "SELECT * FROM messages WHERE subscription IS NOT NULL"),
}

_NAMES = {*BY_SHORT, *_VIEWS}
_WORD = re.compile(r"\w+")
_KINDS = {"day": "DATE", "month": "VARCHAR"}

Days = tuple[date, date]
"""The first and the last day of a question, both included."""


class QueryEngine:
    def __init__(self, lake: Lake, *, threads: int = 2, memory_mb: int = MEMORY_MB) -> None:
        self._lake = lake
        self._there = {table.short for table in ALL if lake.exists(table)}
        if not self._there:
            raise LakeMissing(lake=lake.location)
        # Nothing makes it but a finding: that there was none is an answer.
        self._there.add(QUARANTINE.short)
        self._files: dict[str, list[LakeFile]] = {}
        self._mounted: dict[str, Days | None] = {}
        self._db = duckdb.connect(":memory:")
        self._db.execute(f"SET threads = {int(threads)}; SET memory_limit = '{int(memory_mb)}MB'")
        self._db.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        self._shut_in()

    def files(self, table: Table) -> list[LakeFile]:
        """The files that a table had when it was first asked for."""
        if table.short not in self._files:
            self._files[table.short] = self._lake.files(table)
        return self._files[table.short]

    def narrow(self, table: Table, files: list[LakeFile]) -> None:
        """Let a table be these files and nothing else from now on."""
        self._there.add(table.short)
        self._files[table.short] = files
        self._mounted.pop(table.short, None)

    def _mount(self, name: str, days: Days | None = None) -> None:
        """A table as a view of its files, or of those that hold something of these days."""
        if name in _VIEWS:
            table, sql = _VIEWS[name]
            if table.short in self._there and name not in self._mounted:
                self._mounted[name] = None
                self._mount(table.short)
                self._db.execute(f"CREATE VIEW {name} AS {sql}")
            return
        table = BY_SHORT[name]
        days = days if table.cut else None
        if name not in self._there or (name in self._mounted and self._mounted[name] == days):
            return
        self._mounted[name] = days
        files = [file for file in self.files(table) if days is None or _within(file, days)]
        self._db.unregister(table.short)
        self._db.execute(f"DROP VIEW IF EXISTS {table.short}")
        if not files:
            self._db.register(table.short, table.schema.empty_table())
        elif self._lake.folder is None:
            # DuckDB would have to fetch an extension for that.
            self._db.register(table.short, dataset(files, table))
        else:
            self._view(table, files)

    def _view(self, table: Table, files: list[LakeFile]) -> None:
        cut = ""
        if table.cut:
            cut = f", hive_partitioning = true, hive_types = {{'{table.cut}': {_KINDS[table.cut]}}}"
        names = ", ".join(f'"{each}"' for each in table.schema.names)
        places = ", ".join(_quoted(f"{self._lake.folder}/{table.name}/{file.path}") for file in files)
        rows = f"read_parquet([{places}], union_by_name = true{cut})"
        try:
            self._db.execute(f"CREATE VIEW {table.short} AS SELECT {names} FROM {rows}")  # noqa: S608 - ours
        except duckdb.BinderException:
            # A column was declared since, and no file has it yet.
            self._db.register(f"{table.short}_declared", table.schema.empty_table())
            whole = f"(SELECT * FROM {rows} UNION ALL BY NAME SELECT * FROM {table.short}_declared)"  # noqa: S608
            self._db.execute(f"CREATE VIEW {table.short} AS SELECT {names} FROM {whole}")  # noqa: S608

    def _shut_in(self) -> None:
        """Queries see the lake and nothing else of this machine."""
        if self._lake.folder is not None:
            self._db.execute(f"SET allowed_directories = [{_quoted(self._lake.folder)}]")
        self._db.execute("SET enable_external_access = false")
        self._db.execute("SET lock_configuration = true")

    def has(self, short: str) -> bool:
        return short in self._there

    def rows(
        self, sql: str, parameters: Sequence[Any] = (), days: Days | None = None
    ) -> list[dict[str, Any]]:
        return self.table(sql, parameters, days).to_pylist()

    def table(self, sql: str, parameters: Sequence[Any] = (), days: Days | None = None) -> pa.Table:
        """With `days`, the query itself must ask for nothing outside them: there may be none of it."""
        for name in set(_WORD.findall(sql.lower())) & _NAMES:
            self._mount(name, days)
        try:
            found = self._db.sql(sql, params=list(parameters))
            return pa.table({}) if found is None else found.to_arrow_table()
        except duckdb.CatalogException as error:
            missing = next((name for name in BY_SHORT if f"Table with name {name} " in str(error)), None)
            if missing is not None and missing not in self._there:
                raise TableMissing(lake=self._lake.location, table=missing) from error
            raise QueryRefused(reason=_line(error)) from error
        except duckdb.Error as error:
            raise QueryRefused(reason=_line(error)) from error

    def tables(self) -> list[str]:
        return sorted(
            [*self._there, *(name for name, (table, _) in _VIEWS.items() if table.short in self._there)]
        )

    def close(self) -> None:
        self._db.close()


@contextlib.contextmanager
def engine(lake: Lake) -> Iterator[QueryEngine]:
    opened = QueryEngine(lake)
    try:
        yield opened
    finally:
        opened.close()


def _within(file: LakeFile, days: Days) -> bool:
    """Whether a file may hold rows of these days. A month is as long as the part of a day that names it."""
    if file.cut is None:
        return True
    first, last = (day.isoformat()[: len(file.cut)] for day in days)
    return first <= file.cut <= last


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]
