"""What both kinds of room stand on: the store, the kernel's engine, the committer, and the housekeeping."""

import math
import random
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from postroom.clock import Clock, SystemClock
from postroom.errors import InvalidField, UnknownStore
from postroom.ids import Ids, RandomIds
from postroom.kernel import commands as c
from postroom.kernel.checks import DEFAULT_SCOPE
from postroom.kernel.costly_checks import CheckAnswer, CostlyCheck
from postroom.kernel.engine import Engine
from postroom.kernel.held_rows import HeldRows
from postroom.kernel.housekeeping.housekeepers import ROSTER, Retention
from postroom.kernel.limits import Limits
from postroom.kernel.message_view import MessageViews
from postroom.kernel.ports import Store
from postroom.kernel.reader import Reader
from postroom.kernel.rules.breaker import Breaker, ProcessBreaker, StoreBreaker
from postroom.kernel.transitions.context import KernelEnvironment
from postroom.runtime.clock_watch import ClockWatch
from postroom.runtime.commit import Committer
from postroom.runtime.housekeeping import HousekeepingLoop
from postroom.runtime.wakeups import Wakeups
from postroom.stores.addresses import MARIADB, POSTGRES, REDIS, SERVERS, SQLITE, needing_extra
from postroom.stores.sqlite import SqliteStore
from postroom.stores.sqlite.store import Durability

T = TypeVar("T")


class RoomOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a room is opened. The defaults are the safe ones."""

    actor: str = ""
    tenant: str = "default"
    durability: Durability = "full"
    housekeeping: bool = True
    limits: Limits = Limits()
    retention: Retention = Retention()
    backups: Path | None = None
    clock: Clock | None = None
    ids: Ids | None = None
    seed: int | None = None
    redis: str | None = None


AT_ONCE = 1000
# Who waits looks again, woken or not.
POLL_S = 5.0


def open_store(url: str, options: RoomOptions) -> Store:
    """`sqlite:///relative.db`, `sqlite:////absolute/path.db`, a bare path to a file, `memory://`, or
    the address of a database on a server, `postgresql://user@host/database` or `mariadb://…`."""
    if options.redis:
        return _open_redis(url, options)
    if url == "memory://":
        return SqliteStore(None, clock=options.clock)
    if url.startswith(POSTGRES):
        return _open_postgres(url, options)
    if url.startswith(MARIADB):
        return _open_mariadb(url, options)
    path = url.removeprefix(SQLITE) if url.startswith(SQLITE) else url
    if not path or "://" in path:
        raise UnknownStore(url=url)
    return SqliteStore(
        Path(path).expanduser(),
        durability=options.durability,
        backups=options.backups,
        clock=options.clock,
    )


def _open_postgres(url: str, options: RoomOptions) -> Store:
    with needing_extra("postgres"):
        from postroom.stores.postgres import PostgresStore
    return PostgresStore(url, clock=options.clock)


def _open_mariadb(url: str, options: RoomOptions) -> Store:
    with needing_extra("mariadb"):
        from postroom.stores.mariadb import MariadbStore
    return MariadbStore(url, clock=options.clock)


def _open_redis(url: str, options: RoomOptions) -> Store:
    """Beside a store that several processes have open; others need nobody to wake them."""
    if not url.startswith(SERVERS):
        raise InvalidField("redis", "is for a store on a database server, postgresql://… or mariadb://…")
    redis = options.redis or ""
    if not redis.startswith(REDIS):
        raise InvalidField("redis", f"begins with one of {', '.join(REDIS)}")
    with needing_extra("redis"):
        from postroom.stores.redis import RedisStore
    return RedisStore(open_store(url, msgspec.structs.replace(options, redis=None)), url, redis)


class RoomCore:
    def __init__(self, store: Store, options: RoomOptions) -> None:
        self.store = store
        self.reads_inline = store.capabilities.reads_inline
        self.options = options
        self.clock = options.clock or SystemClock()
        self.actor = options.actor or f"{socket.gethostname()}:{uuid.uuid4().hex[:8]}"
        self.wakeups = Wakeups()
        self.writers = store.capabilities.writers
        rng = random.Random(options.seed)
        breaker = StoreBreaker() if self.writers > 1 else ProcessBreaker()
        held = HeldRows() if store.capabilities.compares_tokens else None
        engines = [self._make_engine(rng, breaker, held) for _ in range(self.writers)]
        self.committer = Committer(store, engines, self.wakeups)
        store.listen(self._hear)
        self.clock_watch = None
        if options.clock is None:
            with store.reader() as reads:
                self.clock_watch = ClockWatch(self.clock, reads.chain().head.time)
        self.housekeeping = HousekeepingLoop(
            self.committer.execute, self.clock, self.actor, watch=self.clock_watch
        )
        self.directory = MessageViews(self._queue_name, self._subscription_name)

    def _make_engine(self, rng: random.Random, breaker: Breaker, held: HeldRows | None) -> Engine:
        options = self.options
        env = KernelEnvironment(
            options.ids or RandomIds(), options.limits, options.retention, rng, self.clock, held
        )
        return Engine(env, breaker)

    def _hear(self, woken: Mapping[int, int]) -> None:
        """Other processes have made messages claimable; something of it is in the ledger too."""
        self.wakeups.wake(woken)
        self.wakeups.wake_followers()

    @classmethod
    def open(cls, url: str, options: RoomOptions) -> "RoomCore":
        """The default scope is there from the beginning; housekeeping starts unless it is not wanted."""
        core = cls(open_store(url, options), options)
        try:
            core.take_over()
            core.committer.execute(
                c.CreateScope(slug=DEFAULT_SCOPE, exist_ok=True, actor=core.actor, tenant=options.tenant)
            )
        except BaseException:
            core.close()
            raise
        if options.housekeeping:
            core.housekeeping.start()
        return core

    def take_over(self) -> None:
        """What a dead owner of the store had in hand is free at once, not after its leases."""
        dead = self.store.left_behind(self.actor)
        while (
            dead and self.committer.execute(c.TakeOver(dead=dead, limit=AT_ONCE, actor=self.actor)) == AT_ONCE
        ):
            pass

    def close(self) -> None:
        self.housekeeping.stop()
        self.committer.close()
        self.wakeups.wake_all()
        self.store.close()

    def housekeep(self, name: str) -> int:
        if name not in {keeper.name for keeper in ROSTER}:
            known = ", ".join(keeper.name for keeper in ROSTER)
            raise InvalidField("name", f"{name!r} is no housekeeper; known are {known}")
        return self.housekeeping.run_one(name)

    def answer_checks(self, checks: Sequence[CostlyCheck]) -> dict[bytes, CheckAnswer]:
        """Blocks until they are answered, or were stopped: never called where others wait."""
        return self.committer.checks.answer(checks)

    def nap(self, next_due: int | None = None, left: float = math.inf) -> float:
        """How long whoever waits for messages may sleep, if nobody wakes it: until time changes something."""
        nap = min(left, POLL_S)
        return nap if next_due is None else min(nap, max(0.001, (next_due - self.clock.now()) / 1e6))

    def read(self, question: Callable[[Reader], T]) -> T:
        with self.store.reader() as reads:
            return question(Reader(reads))

    def _queue_name(self, queue_id: int) -> tuple[str, str]:
        return self.read(lambda reader: reader.queue_names()[queue_id])

    def _subscription_name(self, subscription_id: int) -> str | None:
        return self.read(lambda reader: reader.subscription_name(subscription_id))
