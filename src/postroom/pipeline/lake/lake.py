"""A lake at a path or an object-store URL: its tables, how far each has come, and the one way they change.

A commit holds new files, the files they replace, and the new positions, and names the positions it started
from: when those have moved, or files to be replaced are gone, it is refused. Positions are Delta transaction
versions of our application ids.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

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
    LakeMoved,
    LakeReadOnly,
    LakeTooNew,
    TableMissing,
)
from postroom.pipeline.lake.files import WrittenFile, local_path, now_ms
from postroom.pipeline.lake.snapshot import (
    KEPT_APP,
    LEDGER_APP,
    RECORDS_APP,
    SHAPE_APP,
    VACUUMED_APP,
    WRITER_APP,
    LakeFile,
    Positions,
    TableSnapshot,
)
from postroom.pipeline.lake.tables import ALL, Table

if TYPE_CHECKING:
    from postroom.pipeline.lake.lease import LakeLease

__all__ = ["Lake", "LakeFile", "Positions", "TableSnapshot", "named", "translated"]


class Lake:
    def __init__(self, location: str, storage_options: dict[str, str] | None = None) -> None:
        self.location = location.rstrip("/")
        self.storage_options = storage_options
        self.lease: LakeLease | None = None
        self._known: dict[str, tuple[Any, TableSnapshot]] = {}

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

    def snapshot(self, table: Table) -> TableSnapshot:
        """The newest version. Opening a table reads its log, so one that has not changed is not opened
        again."""
        sign = self._sign(table)
        known = self._known.get(table.name)
        if known is not None and known[0] == sign is not None and not self._has_next(known[1]):
            return known[1]
        found = TableSnapshot(table, self.uri(table), self.open(table))
        self._known[table.name] = (sign, found)
        return found

    def _sign(self, table: Table) -> Any:
        """Something that differs when a table has changed; None where that cannot be told without opening it.

        A file that is added to a log changes the time of its folder. On an object store whoever holds the
        lease knows that nobody else changes tables; what it commits itself is forgotten there.
        """
        folder = local_path(self.uri(table))
        if folder is None:
            return self.lease and self.lease.epoch
        try:
            return os.stat(f"{folder}/_delta_log").st_mtime_ns
        except OSError:
            return None

    def _has_next(self, found: TableSnapshot) -> bool:
        """Two changes of a folder within a moment may leave it the same time."""
        folder = local_path(found.uri)
        return folder is not None and os.path.exists(f"{folder}/_delta_log/{found.version + 1:020d}.json")

    def positions(self, table: Table) -> Positions:
        return self.snapshot(table).positions

    def files(self, table: Table) -> list[LakeFile]:
        return self.snapshot(table).files

    def highest_epoch(self) -> int:
        """Of all tables, for a lease that knows of no holder before."""
        return max(self.snapshot(table).epoch for table in ALL)

    def commit(
        self,
        table: Table,
        added: Sequence[WrittenFile],
        positions: Positions | None,
        *,
        base: Positions | None = None,
        removed: Sequence[LakeFile] = (),
        about: dict[str, Any] | None = None,
        kept_from: int | None = None,
        vacuumed_at: int | None = None,
        reshaped: bool = False,
        changes_data: bool = True,
    ) -> None:
        """All of it, or nothing. Without positions it is upkeep. `kept_from`: what is older has left it.

        `base` is where the table stood when its new rows were worked out; `reshaped` says that all of its
        rows have the declared shape now. What another writer commits between the look at the table here and
        our own commit is seen by Delta: the same application ids, or the same files.
        """
        if self.lease is not None:
            self.lease.check()
        with named(self, table):
            if self.folder is None:
                self._known.pop(table.name, None)  # a lease may be lost without a word
            now = self.snapshot(table)
            self._check_base(now, base, removed)
            transactions = [Transaction(KEPT_APP, kept_from)] if kept_from is not None else []
            if vacuumed_at is not None:
                transactions.append(Transaction(VACUUMED_APP, vacuumed_at))
            if positions is not None:
                transactions.append(Transaction(LEDGER_APP, positions.ledger))
                transactions.append(Transaction(RECORDS_APP, positions.records))
            if reshaped or not now.exists:
                transactions.append(Transaction(SHAPE_APP, table.shape))
            if self.lease is not None:
                transactions.append(Transaction(WRITER_APP, self.lease.epoch))
            properties = CommitProperties(
                custom_metadata={name: str(value) for name, value in (about or {}).items()},
                app_transactions=transactions or None,
            )
            adds = [
                AddAction(
                    file.path, file.size, _cut_values(table, file.cut), now_ms(), changes_data, file.stats
                )
                for file in added
            ]
            removes = [
                RemoveAction(file.path, changes_data, now_ms(), file.size, _cut_values(table, file.cut))
                for file in removed
            ]
            self._write(now, adds, removes, properties)
            self._known.pop(table.name, None)
        if table.layer == "bronze":
            self._sync_log(table)

    def _write(
        self,
        now: TableSnapshot,
        adds: list[AddAction],
        removes: list[RemoveAction],
        properties: CommitProperties,
    ) -> None:
        table, cut = now.table, [now.table.cut] if now.table.cut else []
        if now.delta is None:
            self._create(table, adds, cut, properties)
            return
        self._grow(table, now.delta)
        now.delta.create_write_transaction(
            [*adds, *removes],
            "append",
            table.schema,
            partition_by=cut,
            commit_properties=properties,
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
        )

    def _check_base(self, now: TableSnapshot, base: Positions | None, removed: Sequence[LakeFile]) -> None:
        name, stands = now.table.name, now.positions
        if base is not None and stands != base:
            problem = f"it was at event {base.ledger:,} and is at {stands.ledger:,}"
            if base.ledger == stands.ledger:
                problem = f"it was at record {base.records:,} and is at {stands.records:,}"
            raise LakeMoved(table=name, problem=problem)
        if self.lease is not None and now.epoch > self.lease.epoch:
            raise LakeMoved(table=name, problem="another process works on the lake now")
        if removed:
            there = {file.path for file in now.files}
            gone = sum(file.path not in there for file in removed)
            if gone:
                raise LakeMoved(table=name, problem=f"{gone} of its files were replaced")

    def fence(self, table: Table) -> None:
        """Let nobody who held the lake before commit to this table; then its files may be deleted."""
        now = self.snapshot(table)
        if self.lease is not None and now.exists and now.epoch < self.lease.epoch:
            self.commit(table, [], None, about={"reason": "fence"})

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


def _cut_values(table: Table, cut: str | None) -> dict[str, str | None]:
    return {table.cut: cut} if table.cut else {}


@contextlib.contextmanager
def named(lake: Lake, table: Table) -> Iterator[None]:
    """What Delta and the disk say, as our errors."""
    try:
        yield
    except CommitFailedError as error:
        raise LakeMoved(table=table.name, problem="another process changed it at the same moment") from error
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
    if "already exists at that location" in low:
        return LakeMoved(table=table.name, problem="another process made it at the same moment")
    if "no space left" in low or "os error 28" in low:
        return LakeFull(lake=lake.location)
    if "permission denied" in low or "read-only" in low:
        return LakeReadOnly(lake=lake.location, reason="permission denied")
    if ("version" in low and ("unsupported" in low or "not supported" in low)) or "reader version" in low:
        return LakeTooNew(table=table.name, problem=text[:200])
    return LakeDamaged(table=table.name, problem=text[:300])
