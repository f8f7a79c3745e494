"""Claims on behalf of somebody at the other end of a connection: who has hung up is given nothing."""

import asyncio

from starlette.requests import Request

from postroom.kernel import commands as c
from postroom.kernel.rows import Stored
from postroom.runtime import Room

LOOK_S = 0.5


async def taken(
    room: Room, request: Request, command: c.Claim, wait_s: float, closing: asyncio.Event
) -> list[Stored]:
    """What is claimed for somebody who is gone would be lost until the lease ends, so it is given back.

    Nobody waits any more when the house is `closing`.
    """
    taking = asyncio.ensure_future(room.take(command, wait_s))
    ending = asyncio.ensure_future(closing.wait())
    there = False
    try:
        while not (taking.done() or ending.done() or await request.is_disconnected()):
            await asyncio.wait((taking, ending), timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
        there = taking.done() and not await request.is_disconnected()
    finally:
        ending.cancel()
        if not there:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)
            if not taking.cancelled() and taking.exception() is None:
                _give_back(room, command, taking.result())
    return taking.result() if there else []


def _give_back(room: Room, command: c.Claim, messages: list[Stored]) -> None:
    for stored in messages:
        assert stored.row.token is not None
        release = c.Release(
            message_id=stored.row.id, token=stored.row.token, actor=command.actor, tenant=command.tenant
        )
        # Nobody waits for the answer, and a claim that is lost by now needs none.
        room.run(release).add_done_callback(lambda done: done.cancelled() or done.exception())
