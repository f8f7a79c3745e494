"""Whether a lake belongs to a store: before anything is added to the one or dropped from the other."""

from postroom.pipeline.errors import LedgerGap, OtherLedger
from postroom.pipeline.lake.compute import pc
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.reading import read_batches
from postroom.pipeline.lake.tables import LEDGER
from postroom.pipeline.sources.sqlite import Snapshot, SqliteSource


def check_same_ledger(
    lake: Lake, source: SqliteSource, snapshot: Snapshot, position: int, *, accept_gap: bool = False
) -> None:
    """The store goes on where the lake ends, at this position: the same event with the same hash."""
    if not position:
        if snapshot.anchor and not accept_gap:
            raise LedgerGap(seq=1, problem="pruned", first=1, last=snapshot.anchor)
        return
    if snapshot.head < position:
        problem = f"it has {position:,} events, the store only {snapshot.head:,} (restored from a backup?)"
        raise OtherLedger(lake=lake.location, problem=problem)
    stored = source.hash_of(position)
    if stored is None:
        if not accept_gap:
            raise LedgerGap(seq=position + 1, problem="pruned", first=position + 1, last=snapshot.anchor)
        return
    kept = _hash_in_lake(lake, position)
    if kept is not None and kept != stored:
        raise OtherLedger(lake=lake.location, problem=f"event {position:,} has another hash there")


def _hash_in_lake(lake: Lake, seq: int) -> bytes | None:
    for file in lake.files(LEDGER):
        low, high = file.low.get("seq"), file.high.get("seq")
        if low is None or high is None or low <= seq <= high:
            for batch in read_batches(file.uri, ["seq", "hash"]):
                found = batch.filter(pc.equal(batch.column("seq"), seq))
                if found.num_rows:
                    return found.column("hash")[0].as_py()
    return None
