"""A turn is watched while it spends: what is set aside grows with what it reports, or it is stopped.

Not every provider reports on the way. Those that take a limit are given one; what the others spend is known
when they are done.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from postroom.office.guards.admissions import TurnAdmission
from postroom.providers.protocol import Cause, ErrorKind, Failed, Finished, TurnEvent, TurnStream, Usage

# After the last step of a turn its verdict comes at once; later, it has gone on to the next step.
PATIENCE_S = 3.0
USED_UP = (
    "This turn was stopped: its budget is used up. Raise the limit (`/raise`, or `budgets` in the settings), "
    "or wait for tomorrow's."
)


async def metered(stream: TurnStream, admission: TurnAdmission) -> TurnStream:
    """The same events, until more was used than can be had. What is paid for and finished is kept."""
    usages: list[Usage] = []
    async with aclosing(stream) as events:
        while (event := await _next(events, None)) is not None:
            yield event
            if isinstance(event, Usage):
                usages.append(event)
                if not await admission.affords(usages):
                    break
        else:
            return
        until = time.monotonic() + PATIENCE_S
        while (event := await _next(events, max(0.0, until - time.monotonic()))) is not None:
            if not isinstance(event, Usage | Finished | Failed):
                break
            yield event
            if not isinstance(event, Usage):
                return
    yield Failed(kind=ErrorKind.INVALID, cause=Cause.BUDGET, message=USED_UP)


async def _next(events: AsyncGenerator[TurnEvent, None], seconds: float | None) -> TurnEvent | None:
    """None at the end, or when nothing comes in time; then the stream can only be closed."""
    if seconds is None:
        return await anext(events, None)
    coming = asyncio.ensure_future(anext(events, None))
    try:
        await asyncio.wait({coming}, timeout=seconds)
    finally:
        if not coming.done():
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await coming
    return None if coming.cancelled() else coming.result()
