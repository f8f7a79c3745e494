"""A claim that is no longer good changes nothing: every verb of a holder, however the claim was lost."""

from collections.abc import Awaitable, Callable

import msgspec
import pytest
from tests.conformance.helpers import one, refused

from postroom import Message, Room, State
from postroom.clock import ManualClock
from postroom.errors import ClaimLost, MessageNotFound
from postroom.kernel import commands as c

Verb = Callable[[Room, Message], Awaitable[object]]

VERBS: dict[str, Verb] = {
    "complete": lambda room, message: room.complete(message, "late"),
    "fail": lambda room, message: room.fail(message, "late"),
    "reject": lambda room, message: room.fail(message, "late", retry=False),
    "release": lambda room, message: room.release(message),
    "extend": lambda room, message: room.extend(message, 10),
    "snooze": lambda room, message: room.snooze(message, 10),
}


async def _taken_over(room: Room, message: Message, clock: ManualClock) -> None:
    clock.advance(31)
    await one(room, "jobs", worker="successor")


async def _swept(room: Room, message: Message, clock: ManualClock) -> None:
    clock.advance(31)
    await room.housekeep("visibility_timeout_enforcer")


async def _released(room: Room, message: Message, clock: ManualClock) -> None:
    await room.release(message)


async def _released_and_reclaimed(room: Room, message: Message, clock: ManualClock) -> None:
    await room.release(message)
    await one(room, "jobs", worker="successor")


async def _failed(room: Room, message: Message, clock: ManualClock) -> None:
    await room.fail(message, "first")


async def _dead(room: Room, message: Message, clock: ManualClock) -> None:
    await room.fail(message, "first", retry=False)


async def _cancelled(room: Room, message: Message, clock: ManualClock) -> None:
    await room.cancel(message.id)


async def _killed(room: Room, message: Message, clock: ManualClock) -> None:
    await room.kill(message.id, "guard")


async def _replayed_and_reclaimed(room: Room, message: Message, clock: ManualClock) -> None:
    await room.kill(message.id, "guard")
    await room.replay(message.id)
    await one(room, "jobs", worker="successor")


LOSSES = [
    _taken_over,
    _released,
    _released_and_reclaimed,
    _failed,
    _dead,
    _cancelled,
    _killed,
    _replayed_and_reclaimed,
]


@pytest.fixture
async def claimed(room: Room) -> Message:
    await room.create_queue("jobs", visibility_timeout_s=30)
    await room.publish("jobs", 1)
    return await one(room, "jobs", worker="first")


@pytest.mark.parametrize("lose", LOSSES, ids=lambda lose: lose.__name__[1:])
async def test_a_stale_token_changes_nothing_and_raises_claim_lost(
    room: Room, claimed: Message, clock: ManualClock, lose: Callable[..., Awaitable[None]]
) -> None:
    await lose(room, claimed, clock)
    for verb in VERBS.values():
        async with refused(room, ClaimLost, claimed.id):
            await verb(room, claimed)


async def test_a_late_holder_that_was_not_replaced_may_complete_and_do_nothing_else(
    room: Room, claimed: Message, clock: ManualClock
) -> None:
    await _swept(room, claimed, clock)
    assert (await room.get(claimed.id)).state is State.PENDING
    for name, verb in VERBS.items():
        if name != "complete":
            async with refused(room, ClaimLost, claimed.id):
                await verb(room, claimed)
    await room.complete(claimed, "late")
    await room.complete(claimed, "late")
    done = await room.get(claimed.id)
    assert (done.state, done.result, done.attempts) == (State.COMPLETED, "late", 1)
    assert await room.claim("jobs") == []


async def test_after_completion_only_the_same_complete_is_forgiven(room: Room, claimed: Message) -> None:
    await room.complete(claimed)
    for name, verb in VERBS.items():
        if name != "complete":
            async with refused(room, ClaimLost, "completed"):
                await verb(room, claimed)
    other = msgspec.structs.replace(claimed, claim_token="2-somebody-else")
    async with refused(room, ClaimLost):
        await room.complete(other)


async def test_a_token_nobody_was_given_is_refused(room: Room, claimed: Message) -> None:
    for token in ("", "1-0000000000000000", f"{claimed.claim_token} ", "1"):
        forged = msgspec.structs.replace(claimed, claim_token=token)
        for verb in VERBS.values():
            async with refused(room, ClaimLost, claimed.id):
                await verb(room, forged)


async def test_the_error_says_who_holds_it_now(room: Room, claimed: Message, clock: ManualClock) -> None:
    await _taken_over(room, claimed, clock)
    async with refused(room, ClaimLost, "successor"):
        await room.complete(claimed)


async def test_a_claim_on_a_message_that_never_was_is_refused(room: Room, claimed: Message) -> None:
    nobody = msgspec.structs.replace(claimed, id="nobody")
    for verb in VERBS.values():
        async with refused(room, MessageNotFound, "nobody"):
            await verb(room, nobody)


async def test_another_tenant_cannot_use_the_token(room: Room, claimed: Message) -> None:
    assert claimed.claim_token is not None
    async with refused(room, MessageNotFound, claimed.id):
        await room.run(c.Complete(message_id=claimed.id, token=claimed.claim_token, tenant="other"))
