"""Making room in the hot store: what has ended and is safe in the lake goes, then the file shrinks.

Nothing leaves before the lake has it: the bound is the position that bronze has committed, and the lake must
be one of this store.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec

from postroom.clock import Clock
from postroom.ids import RandomIds
from postroom.kernel import commands as c
from postroom.kernel.engine import Engine
from postroom.kernel.limits import Limits
from postroom.kernel.retention import Retention
from postroom.kernel.transitions.context import KernelEnvironment
from postroom.pipeline.jobs.ledger_identity import check_same_ledger
from postroom.pipeline.jobs.run import committed
from postroom.pipeline.lake.lake import Lake
from postroom.pipeline.lake.tables import LEDGER
from postroom.pipeline.sources.sqlite import open_source
from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite.owner import OwnerLock

HOLD = "pipeline"
PAGES_AT_ONCE = 500


class Pruned(msgspec.Struct, frozen=True):
    up_to: int
    messages: int
    events: int
    pages: int


class _Kernel:
    """Commands to a store that nobody else has open."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._engine = Engine(KernelEnvironment(RandomIds(), Limits(), Retention(), random.Random()))

    def do(self, command: c.Command) -> Any:
        tx = self._store.begin()
        try:
            value = self._engine.apply(tx, [command]).outcomes[0].result()
            self._store.commit(tx)
        except BaseException:
            self._store.rollback(tx)
            raise
        return value


def hold(store: SqliteStore, lake: Lake) -> int:
    """Tell the store's own pruner how far the lake has come; it drops nothing after that."""
    seq = committed(lake)
    _Kernel(store).do(c.SetPosition(name=HOLD, seq=seq, hold=True, actor=HOLD))
    return seq


def prune(
    path: Path, lake: Lake, clock: Clock, *, keep_s: float, told: Callable[[str, int], None] | None = None
) -> Pruned:
    """Ended messages and events older than `keep_s`, in short transactions; then free pages, bit by bit."""
    if committed(lake):
        source = open_source(str(path))
        check_same_ledger(lake, source, source.snapshot(), lake.positions(LEDGER).ledger)
    store = SqliteStore(path, clock=clock)
    try:
        up_to, kernel = hold(store, lake), _Kernel(store)
        messages, events = (
            _until_done(kernel, c.PruneHistory(what=what, keep_s=keep_s, up_to=up_to, actor=HOLD), told)
            for what in ("messages", "events")
        )
    finally:
        store.close()
    return Pruned(up_to, messages, events, _shrink(path))


def _until_done(kernel: _Kernel, step: c.PruneHistory, told: Callable[[str, int], None] | None) -> int:
    total = 0
    while True:
        done: int = kernel.do(step)
        total += done
        if told is not None:
            told(step.what, total)
        if done < step.limit:
            return total


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
