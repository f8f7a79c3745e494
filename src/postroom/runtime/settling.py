"""What a store was asked to do it does, also when whoever asked is cancelled meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any


async def settle(asked: Awaitable[Any], note: Callable[[Any], None]) -> Any:
    """Its outcome, of which `note` is told if it succeeds. A cancellation waits until that is known: who does
    not know what the store has done is refused by it the next time."""
    outcome = asyncio.ensure_future(asked)
    cancelled: asyncio.CancelledError | None = None
    while not outcome.done():
        try:
            await asyncio.wait([outcome])
        except asyncio.CancelledError as error:
            cancelled = error
    if not outcome.cancelled() and outcome.exception() is None:
        note(outcome.result())
    if cancelled is not None:
        raise cancelled
    return outcome.result()
