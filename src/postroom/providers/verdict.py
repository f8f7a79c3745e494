"""Keeps the promise of every provider: one verdict, at the end, and no exception for what went wrong."""

import logging
from contextlib import aclosing

from postroom.providers.failures import Product, failure
from postroom.providers.protocol import ErrorKind, Failed, Finished, TurnStream

_log = logging.getLogger(__name__)


async def guarded(product: Product, events: TurnStream) -> TurnStream:
    try:
        async with aclosing(events):
            async for event in events:
                yield event
                if isinstance(event, Finished | Failed):
                    return
    except Exception as error:
        _log.exception("%s failed in its adapter", product.label)
        yield failure(product, ErrorKind.CRASHED, detail=f"{type(error).__name__}: {error}")
        return
    yield failure(product, ErrorKind.CRASHED, detail="The stream of events ended without a verdict.")
