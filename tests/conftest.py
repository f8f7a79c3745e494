"""Rooms on every store, with a clock that stands still.

A new store is one more entry of `STORES`. What a store cannot do is named by its absence from `can`; a test
says what it needs with `@pytest.mark.needs("…")`, and is skipped where that is missing.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import postroom
from postroom import Room, SyncRoom
from postroom.clock import ManualClock
from postroom.ids import SeededIds
from tests import mariadb_server, postgres_server, redis_server
from tests.conformance.promises import check_promises

OpenRoom = Callable[..., AbstractAsyncContextManager[Room]]
OpenSync = Callable[..., AbstractContextManager[SyncRoom]]


@dataclass(frozen=True)
class StoreKind:
    name: str
    url: Callable[[Path], str]
    can: frozenset[str] = frozenset()
    options: dict[str, Any] = field(default_factory=dict)
    count_from_one: Callable[[], None] = lambda: None
    """Where emptying a room is not enough for its queues to be numbered as in a new one."""
    has_redis: bool = False

    def open_with(self) -> dict[str, Any]:
        """Options of a room."""
        return {**self.options, "redis": redis_url()} if self.has_redis else self.options


def postgres_url(folder: Path) -> str:
    """An empty room for each folder. Where there is no server, the test is skipped and named at the end."""
    server = postgres_server.shared_server()
    if server is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    return server.url_of_empty_room(folder)


def mariadb_url(folder: Path) -> str:
    server = mariadb_server.shared_server()
    if server is None:
        pytest.skip("MariaDB is not installed: apt-get install mariadb-server")
    return server.url_of_empty_room(folder)


def redis_url() -> str:
    server = redis_server.shared_server()
    if server is None:
        pytest.skip("Redis is not installed: apt-get install redis-server")
    return server.url


POSTGRES = StoreKind("postgres", postgres_url, frozenset({"reopen", "share"}))
MARIADB = StoreKind(
    "mariadb", mariadb_url, frozenset({"reopen", "share"}), count_from_one=mariadb_server.count_from_one
)
STORES = (
    StoreKind(
        "sqlite",
        lambda folder: f"sqlite:///{folder / 'room.db'}",
        frozenset({"reopen"}),
        # Behaviour is the same, and power cuts are tried elsewhere: no need to wait for the disk here.
        {"durability": "relaxed"},
    ),
    StoreKind("memory", lambda folder: "memory://"),
    POSTGRES,
    MARIADB,
    replace(POSTGRES, name="postgres+redis", has_redis=True),
    replace(MARIADB, name="mariadb+redis", has_redis=True),
)
# Where Redis has a part: this runs with it always, all others among the slow tests.
WITH_REDIS = ("test_wakeups",)


# A shared machine may be slow at any moment, and a test that fails must fail again.
settings.register_profile(
    "postroom",
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("postroom")
    config.addinivalue_line("markers", "needs(capability): skipped on stores that cannot do this")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        kind = (
            item.callspec.params.get("store_kind")
            if isinstance(item, pytest.Function) and hasattr(item, "callspec")
            else None
        )
        if isinstance(kind, StoreKind) and kind.has_redis and item.path.stem not in WITH_REDIS:
            item.add_marker(pytest.mark.slow)


_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: Any = yield
    if report.when == "call":
        item.stash[_failed] = report.failed
    return report


@pytest.fixture(params=STORES, ids=lambda kind: kind.name)
def store_kind(request: pytest.FixtureRequest) -> StoreKind:
    kind: StoreKind = request.param
    for marker in request.node.iter_markers("needs"):
        missing = sorted(set(marker.args) - kind.can)
        if missing:
            pytest.skip(f"{kind.name} cannot {', '.join(missing)}")
    return kind


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_room(
    request: pytest.FixtureRequest, store_kind: StoreKind, tmp_path: Path, clock: ManualClock
) -> OpenRoom:
    """`async with open_room(limits=…) as room:` whose promises are checked before it is closed."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[Room]:
        async with postroom.open(
            store_kind.url(tmp_path), **_still(clock, {**store_kind.open_with(), **options})
        ) as room:
            yield room
            if not (room._closed or request.node.stash.get(_failed, False)):
                check_promises(room)

    return opened


@pytest.fixture
async def room(open_room: OpenRoom) -> AsyncIterator[Room]:
    async with open_room() as room:
        yield room


@pytest.fixture
async def live_room(open_room: OpenRoom) -> AsyncIterator[Room]:
    """A room as users have it: the real clock, and housekeeping."""
    async with open_room(clock=None, housekeeping=True) as room:
        yield room


@pytest.fixture
def open_sync(
    request: pytest.FixtureRequest, store_kind: StoreKind, tmp_path: Path, clock: ManualClock
) -> OpenSync:
    @contextmanager
    def opened(**options: Any) -> Iterator[SyncRoom]:
        with postroom.open_sync(
            store_kind.url(tmp_path), **_still(clock, {**store_kind.open_with(), **options})
        ) as room:
            yield room
            if not (room._closed or request.node.stash.get(_failed, False)):
                check_promises(room)

    return opened


@pytest.fixture
def sync_room(open_sync: OpenSync) -> Iterator[SyncRoom]:
    with open_sync() as room:
        yield room


def _still(clock: ManualClock, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "clock": clock,
        "ids": SeededIds(),
        "seed": 1,
        "housekeeping": False,
        "actor": "tester",
        **options,
    }
