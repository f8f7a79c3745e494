"""One version of a table: how far it had come, under which lease it was last changed, and which files it
has."""

from datetime import date
from functools import cached_property
from typing import Any

import msgspec
import pyarrow as pa
from deltalake import DeltaTable

from postroom.pipeline.lake.tables import Table

LEDGER_APP = "postroom-ledger"
RECORDS_APP = "postroom-records"
KEPT_APP = "postroom-kept-from"
WRITER_APP = "postroom-writer"
"""The epoch of the lease under which a table was last changed."""
VACUUMED_APP = "postroom-vacuumed"
"""When files that nobody needs were last deleted."""
SHAPE_APP = "postroom-shape"
"""Which shape of the table its rows have; see `Table.shape`."""


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


class TableSnapshot:
    """It never changes; a table that is not there yet stands at the beginning and has no files."""

    def __init__(self, table: Table, uri: str, found: DeltaTable | None) -> None:
        self.table = table
        self.uri = uri
        self.delta = found

    def _transaction(self, app: str) -> int:
        return 0 if self.delta is None else self.delta.transaction_version(app) or 0

    @property
    def exists(self) -> bool:
        return self.delta is not None

    @property
    def version(self) -> int:
        return -1 if self.delta is None else self.delta.version()

    @cached_property
    def positions(self) -> Positions:
        return Positions(self._transaction(LEDGER_APP), self._transaction(RECORDS_APP))

    @cached_property
    def kept_from(self) -> int:
        """The moment before which it was let go; 0 when it still has everything."""
        return self._transaction(KEPT_APP)

    @cached_property
    def vacuumed_at(self) -> int:
        return self._transaction(VACUUMED_APP)

    @cached_property
    def epoch(self) -> int:
        return self._transaction(WRITER_APP)

    @cached_property
    def outgrown(self) -> bool:
        """Whether its rows have an older shape than is declared today."""
        return self.exists and (self._transaction(SHAPE_APP) or 1) < self.table.shape

    @cached_property
    def files(self) -> list[LakeFile]:
        if self.delta is None:
            return []
        cut = f"partition.{self.table.cut}" if self.table.cut else None
        tracked = self.table.tracked
        files = []
        for row in pa.table(self.delta.get_add_actions(flatten=True)).to_pylist():
            value = row.get(cut) if cut else None
            files.append(
                LakeFile(
                    path=row["path"],
                    uri=f"{self.uri}/{row['path']}",
                    size=row["size_bytes"],
                    rows=row["num_records"],
                    cut=value.isoformat() if isinstance(value, date) else value,
                    low={name: row.get(f"min.{name}") for name in tracked},
                    high={name: row.get(f"max.{name}") for name in tracked},
                )
            )
        return files
