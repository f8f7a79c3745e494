from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom.clock import ManualClock
from tests.api.queue.service import Caller, Service, serving


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def service(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Service]:
    """The service on SQLite, with a clock that stands still."""
    async with serving(tmp_path, clock) as service:
        yield service


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Service]:
    """The service as users have it: the real clock, and housekeeping."""
    async with serving(tmp_path) as service:
        yield service


@pytest.fixture
async def owner(service: Service) -> Caller:
    return service.owner


@pytest.fixture
async def jobs(owner: Caller) -> Caller:
    """The owner of a scope `work` with a queue `jobs`."""
    await owner.post("/scopes", {"slug": "work", "display_name": "Work"})
    queue = {"slug": "jobs", "visibility_timeout_s": 30, "max_retries": 3, "backoff_base_s": 10}
    await owner.post("/scopes/work/queues", queue)
    return owner
