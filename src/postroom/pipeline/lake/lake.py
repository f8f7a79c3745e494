"""A lake at a path or an object-store URL: its tables, how far each has come, and the one way they change.

A commit holds new files, the files they replace, and the new positions, so a repeated batch can be told from
a new one, whatever was killed when. Positions are Delta transaction versions of our application ids.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    PostCommitHookProperties,
    RemoveAction,
    Transaction,
    create_table_with_add_actions,
)

from postroom.pipeline.errors import (
    LakeDamaged,
    LakeFull,
    LakeReadOnly,
    LakeTooNew,
    PipelineBusy,
    TableMissing,
)
from postroom.pipeline.lake.files import WrittenFile, local_path, now_ms
from postroom.pipeline.lake.tables import Table

LEDGER_APP = "postroom-ledger"
RECORDS_APP = "postroom-records"
KEPT_APP = "postroom-kept-from"


class Positions(msgspec.Struct, frozen=True):
    """How far a table has come: the last ledger event and the last record that it has taken in."""

    ledger: int = 0
    records: int = 0

    def covers(self, other: "Positions") -> bool:
        return self.ledger >= other.ledger and self.records >= other.records


class LakeFile(msgspec.Struct, frozen=True):
    path: str
    uri: str
    size: int
    rows: int
    cut: str | None
    low: dict[str, Any]
    high: dict[str, Any]


class Lake:
    def __init__(self, location: str, storage_options: dict[str, str] | None = None) -> None:
        self.location = location.rstrip("/")
        self.storage_options = storage_options

    def uri(self, table: Table) -> str:
        return f"{self.location}/{table.name}"

    @property
    def folder(self) -> str | None:
        """The lake's folder when it lies on this machine."""
        return local_path(self.location)

    def exists(self, table: Table) -> bool:
        folder = local_path(self.uri(table))
        return os.path.isdir(f"{folder}/_delta_log") if folder is not None else self.open(table) is not None

    def open(self, table: Table) -> DeltaTable | None:
        folder = local_path(self.uri(table))
        if folder is not None and not os.path.isdir(f"{folder}/_delta_log"):
            return None
        with named(self, table):
            try:
                found = DeltaTable(self.uri(table), storage_options=self.storage_options)
            except TableNotFoundError:
                return None
            protocol = found.protocol()
            if protocol.min_reader_version > 3 or protocol.min_writer_version > 7:
                raise LakeTooNew(table=table.name, problem=f"reader version {protocol.min_reader_version}")
            return found

    def must_open(self, table: Table) -> DeltaTable:
        found = self.open(table)
        if found is None:
            raise TableMissing(lake=self.location, table=table.name)
        return found

    def positions(self, table: Table) -> Positions:
        return positions_of(self.open(table))

    def kept_from(self, table: Table) -> int:
        """The moment before which a table was let go; 0 when it still has everything."""
        found = self.open(table)
        return 0 if found is None else found.transaction_version(KEPT_APP) or 0

    def files(self, table: Table) -> list[LakeFile]:
        found = self.open(table)
        return [] if found is None else files_of(found, self.uri(table), table)

    def commit(
        self,
        table: Table,
        added: Sequence[WrittenFile],
        positions: Positions | None,
        *,
        removed: Sequence[LakeFile] = (),
        about: dict[str, Any] | None = None,
        kept_from: int | None = None,
    ) -> None:
        """All of it, or nothing. Without positions it is upkeep. `kept_from`: what is older has left it."""
        transactions = [Transaction(KEPT_APP, kept_from)] if kept_from is not None else []
        if positions is not None:
            transactions += [
                Transaction(LEDGER_APP, positions.ledger),
                Transaction(RECORDS_APP, positions.records),
            ]
        properties = CommitProperties(
            custom_metadata={name: str(value) for name, value in (about or {}).items()},
            app_transactions=transactions or None,
        )
        adds = [
            AddAction(file.path, file.size, _cut_values(table, file.cut), now_ms(), True, file.stats)
            for file in added
        ]
        with named(self, table):
            found = self.open(table)
            cut = [table.cut] if table.cut else []
            if found is None:
                self._create(table, adds, cut, properties)
            else:
                self._grow(table, found)
                removes = [
                    RemoveAction(file.path, True, now_ms(), file.size, _cut_values(table, file.cut))
                    for file in removed
                ]
                found.create_write_transaction(
                    [*adds, *removes],
                    "append",
                    table.schema,
                    partition_by=cut,
                    commit_properties=properties,
                    post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
                )
        if table.layer == "bronze":
            self._sync_log(table)

    def _grow(self, table: Table, found: DeltaTable) -> None:
        """A column that was declared since is added; rows written before have nothing in it."""
        known = {field.name for field in found.schema().fields}
        declared = Schema.from_arrow(table.schema).fields
        missing = [field for field in declared if field.name not in known]
        if missing:
            found.alter.add_columns(missing)

    def _create(
        self, table: Table, adds: list[AddAction], cut: list[str], properties: CommitProperties
    ) -> None:
        create_table_with_add_actions(
            self.uri(table),
            Schema.from_arrow(table.schema),
            adds,
            mode="error",
            partition_by=cut,
            name=table.short,
            configuration={
                "delta.checkpointInterval": "50",
                "delta.dataSkippingStatsColumns": ",".join(table.tracked or table.key[:1]),
            },
            storage_options=self.storage_options,
            commit_properties=properties,
        )

    def _sync_log(self, table: Table) -> None:
        folder = local_path(self.uri(table))
        if folder is None:
            return
        log = f"{folder}/_delta_log"
        newest = max(name for name in os.listdir(log) if name.endswith(".json") and name[0].isdigit())
        for path in (f"{log}/{newest}", log):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def positions_of(found: DeltaTable | None) -> Positions:
    if found is None:
        return Positions()
    return Positions(found.transaction_version(LEDGER_APP) or 0, found.transaction_version(RECORDS_APP) or 0)


def files_of(found: DeltaTable, uri: str, table: Table) -> list[LakeFile]:
    rows = pa.table(found.get_add_actions(flatten=True)).to_pylist()
    cut = f"partition.{table.cut}" if table.cut else None
    files = []
    for row in rows:
        value = row.get(cut) if cut else None
        low = {name: row.get(f"min.{name}") for name in table.tracked}
        high = {name: row.get(f"max.{name}") for name in table.tracked}
        text = value.isoformat() if isinstance(value, date) else value
        path = row["path"]
        files.append(LakeFile(path, f"{uri}/{path}", row["size_bytes"], row["num_records"], text, low, high))
    return files


def _cut_values(table: Table, cut: str | None) -> dict[str, str | None]:
    return {table.cut: cut} if table.cut else {}


@contextlib.contextmanager
def named(lake: Lake, table: Table) -> Iterator[None]:
    """What Delta and the disk say, as our errors."""
    try:
        yield
    except CommitFailedError as error:
        raise PipelineBusy(lake=lake.location, pid="unknown", since="a moment ago") from error
    except DeltaError as error:
        raise translated(lake, table, error) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise LakeFull(lake=lake.location) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise LakeReadOnly(lake=lake.location, reason=error.strerror) from error
        raise


def translated(lake: Lake, table: Table, error: Exception) -> Exception:
    text = " ".join(str(error).split())
    low = text.lower()
    if "no space left" in low or "os error 28" in low:
        return LakeFull(lake=lake.location)
    if "permission denied" in low or "read-only" in low:
        return LakeReadOnly(lake=lake.location, reason="permission denied")
    if ("version" in low and ("unsupported" in low or "not supported" in low)) or "reader version" in low:
        return LakeTooNew(table=table.name, problem=text[:200])
    return LakeDamaged(table=table.name, problem=text[:300])
