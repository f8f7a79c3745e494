"""Making room in the hot store: what has ended and is safe in the lake goes, then the file shrinks.

Nothing leaves before the lake has it: the bound is the position that bronze has committed, and the lake must
be one of this store.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from postroom.clock import Clock, micros
from postroom.kernel.ledger import EventDraft
from postroom.kernel.model import Position
from postroom.pipeline.jobs.ledger_identity import check_same_ledger
from postroom.pipeline.jobs.run import committed
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import LEDGER
from postroom.pipeline.sources.sqlite import open_source
from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite.owner import OwnerLock

HOLD = "pipeline"
AT_ONCE = 1000
PAGES_AT_ONCE = 500


class Pruned(msgspec.Struct, frozen=True):
    up_to: int
    messages: int
    events: int
    pages: int


def hold(store: SqliteStore, lake: Lake, clock: Clock) -> int:
    """Tell the store's own pruner how far the lake has come; it drops nothing after that."""
    seq = committed(lake)
    tx: Any = store.begin()
    try:
        now = max(clock.now(), tx.last_time())
        tx.set_position(Position(name=HOLD, seq=seq, hold=True, updated_at=now))
    except BaseException:
        store.rollback(tx)
        raise
    store.commit(tx)
    return seq


def prune(
    path: Path, lake: Lake, clock: Clock, *, keep_s: float, told: Callable[[str, int], None] | None = None
) -> Pruned:
    """Ended messages and events older than `keep_s`, in short transactions; then free pages, bit by bit."""
    if committed(lake):
        source = open_source(str(path))
        check_same_ledger(lake, source, source.snapshot(), lake.positions(LEDGER).ledger)
    store = SqliteStore(path)
    try:
        up_to = hold(store, lake, clock)
        messages = _until_done(
            store, clock, lambda tx, now: _messages(tx, now, keep_s, up_to), told, "messages"
        )
        events = _until_done(store, clock, lambda tx, now: _events(tx, now, keep_s, up_to), told, "events")
    finally:
        store.close()
    return Pruned(up_to, messages, events, _shrink(path))


def _until_done(
    store: SqliteStore,
    clock: Clock,
    step: Callable[[Any, int], int],
    told: Callable[[str, int], None] | None,
    name: str,
) -> int:
    total = 0
    while True:
        tx: Any = store.begin()
        try:
            done = step(tx, max(clock.now(), tx.last_time()))
        except BaseException:
            store.rollback(tx)
            raise
        store.commit(tx)
        total += done
        if told is not None:
            told(name, total)
        if done < AT_ONCE:
            return total


def _messages(tx: Any, now: int, keep_s: float, up_to: int) -> int:
    done = 0
    for queue in tx.all_queues(deleted=True):
        if done >= AT_ONCE:
            break
        ids = tx.prunable(queue.id, now - micros(keep_s), up_to, AT_ONCE - done)
        if ids:
            tx.prune_archive(ids)
            data = f'{{"messages":{len(ids)}}}'
            place = (queue.tenant, queue.scope, queue.slug)
            tx.append(EventDraft(now, "archive.pruned", *place, None, None, None, HOLD, data))
            done += len(ids)
    return done


def _events(tx: Any, now: int, keep_s: float, up_to: int) -> int:
    dropped = tx.prune_ledger(now - micros(keep_s), up_to, AT_ONCE)
    if dropped:
        data = f'{{"events":{dropped}}}'
        tx.append(EventDraft(now, "ledger.pruned", "default", None, None, None, None, None, HOLD, data))
    return dropped


def _shrink(path: Path) -> int:
    """Give pages back to the disk in small steps, so that nobody waits long."""
    lock = OwnerLock(path)
    try:
        db = apsw.Connection(str(path))
        try:
            free = before = db.pragma("freelist_count")
            while free:
                db.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})").fetchall()
                left = db.pragma("freelist_count")
                if left >= free:
                    break
                free = left
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            db.close()
    finally:
        lock.release()
    return before - free
