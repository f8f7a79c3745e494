"""Work on behalf of somebody at the other end of a connection: who has hung up is given nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

LOOK_S = 0.5

T = TypeVar("T")


async def unless_gone(
    request: Request, work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]]
) -> T | None:
    """None when nobody is there any more: what was taken for them would be lost, so it is undone."""
    task = asyncio.ensure_future(work)
    there = False
    try:
        await asyncio.wait((task,), timeout=LOOK_S)
        while not (task.done() or await request.is_disconnected()):
            await asyncio.wait((task,), timeout=LOOK_S)
        there = task.done() and not await request.is_disconnected()
    finally:
        if not there:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if not task.cancelled() and task.exception() is None:
                await undo(task.result())
    return task.result() if there else None
