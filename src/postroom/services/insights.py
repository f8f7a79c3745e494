"""What the lake says: history, traces, figures, and the runs of the pipeline that fill it.

How a lake is read is for whoever puts the process together to know; here is who may ask.
"""

import asyncio
from collections.abc import Callable
from datetime import date
from typing import Any, Protocol, TypeVar

from postroom.errors import NotFound
from postroom.services.callers import Caller
from postroom.services.office_context import OfficeContext, OfficeService, require_viewer

T = TypeVar("T")
Row = dict[str, Any]


class LakeReader(Protocol):
    """The lake and the store beside it. Every method may take long, and is called in a thread."""

    def state(self) -> Row: ...

    def start_run(self, by: str, *, full_refresh: bool) -> int: ...

    def stop_run(self) -> bool: ...

    def report(self, since: date | None, until: date | None) -> str: ...

    def insight(self, topic: str, since: date | None, until: date | None) -> Any: ...

    def traces(self, since: date | None, until: date | None, limit: int) -> list[Row]: ...

    def trace(self, trace_id: str, tenant: str | None) -> Row: ...

    def search(
        self,
        words: tuple[str, ...],
        *,
        agent: str | None,
        channel: str | None,
        sender: str | None,
        since: date | None,
        limit: int,
    ) -> list[Row]: ...


class NoLakeReader(NotFound):
    """There is no lake here. Start a run yourself: postroom pipeline run"""

    code = "NO_RUNS"


class InsightService(OfficeService):
    def __init__(self, context: OfficeContext, lake: LakeReader | None = None) -> None:
        super().__init__(context)
        self._lake = lake

    async def _ask(self, caller: Caller, question: Callable[[LakeReader], T]) -> T:
        require_viewer(caller)
        if self._lake is None:
            raise NoLakeReader
        return await asyncio.to_thread(question, self._lake)

    async def state(self, caller: Caller) -> Row:
        """How far the lake has come, and what a run that goes on now has done and has left to do."""
        return await self._ask(caller, lambda lake: lake.state())

    async def start_run(self, caller: Caller, *, full_refresh: bool = False) -> int:
        """In a process of its own, whose id is returned. Another one that goes on is a conflict."""
        return await self._ask(caller, lambda lake: lake.start_run("api", full_refresh=full_refresh))

    async def stop_run(self, caller: Caller) -> bool:
        """What it committed stays."""
        return await self._ask(caller, lambda lake: lake.stop_run())

    async def report(self, caller: Caller, since: date | None = None, until: date | None = None) -> str:
        """A page of everything, in HTML."""
        return await self._ask(caller, lambda lake: lake.report(since, until))

    async def insight(
        self, caller: Caller, topic: str, since: date | None = None, until: date | None = None
    ) -> Any:
        return await self._ask(caller, lambda lake: lake.insight(topic, since, until))

    async def traces(
        self, caller: Caller, since: date | None = None, until: date | None = None, *, limit: int = 50
    ) -> list[Row]:
        """Conversations, the newest first."""
        return await self._ask(caller, lambda lake: lake.traces(since, until, limit))

    async def trace(self, caller: Caller, trace_id: str, tenant: str | None = None) -> Row:
        """Everything of one conversation."""
        return await self._ask(caller, lambda lake: lake.trace(trace_id, tenant))

    async def search(
        self,
        caller: Caller,
        words: tuple[str, ...],
        *,
        agent: str | None = None,
        channel: str | None = None,
        sender: str | None = None,
        since: date | None = None,
        limit: int = 50,
    ) -> list[Row]:
        """What was said, by words."""
        return await self._ask(
            caller,
            lambda lake: lake.search(
                words, agent=agent, channel=channel, sender=sender, since=since, limit=limit
            ),
        )
