"""A store as it was when it had fewer events, so that one large store serves for runs of every size."""

from typing import Any

import apsw
import msgspec

from postroom.pipeline.sources.sqlite import Snapshot, SqliteSource


class Until(SqliteSource, frozen=True):
    """The store up to an event and a record. Executors read ranges, so they need only the file."""

    head: int = 0
    record: int = 0

    def snapshot(self) -> Snapshot:
        whole = super().snapshot()
        hash_ = self.hash_of(self.head) or b""
        return msgspec.structs.replace(whole, head=self.head, head_hash=hash_, records=self.record)

    def __reduce__(self) -> Any:
        return SqliteSource, (self.path,)


def until(path: str, events: int) -> Until:
    """With the records that there were at that event."""
    db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    [(time,)] = db.execute("SELECT time FROM ledger WHERE seq = ?", (events,))
    db.close()
    return Until(path, head=events, record=SqliteSource(path).record_before(time))
