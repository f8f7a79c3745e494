"""Every verb against a message in every state: either the one change the machine allows, or a refusal."""

from collections.abc import Awaitable, Callable

import pytest
from tests.conformance.helpers import dead_letter, events_of, one, refused

from postroom import Message, PostroomError, Room, State
from postroom.clock import ManualClock
from postroom.errors import ClaimLost, WrongState


async def _pending(room: Room, clock: ManualClock) -> str:
    return (await room.publish("jobs", 1)).id


async def _delayed(room: Room, clock: ManualClock) -> str:
    return (await room.publish("jobs", 1, delay=60)).id


async def _claimed(room: Room, clock: ManualClock) -> str:
    await room.publish("jobs", 1)
    return (await one(room, "jobs")).id


async def _completed(room: Room, clock: ManualClock) -> str:
    await room.publish("jobs", 1)
    message = await one(room, "jobs")
    await room.complete(message)
    return message.id


async def _dead(room: Room, clock: ManualClock) -> str:
    return await dead_letter(room, "jobs")


async def _expired(room: Room, clock: ManualClock) -> str:
    receipt = await room.publish("jobs", 1, ttl=1)
    clock.advance(1)
    await room.housekeep("expiry_enforcer")
    return receipt.id


async def _cancelled(room: Room, clock: ManualClock) -> str:
    receipt = await room.publish("jobs", 1)
    await room.cancel(receipt.id)
    return receipt.id


MAKE = {
    State.PENDING: _pending,
    State.DELAYED: _delayed,
    State.CLAIMED: _claimed,
    State.COMPLETED: _completed,
    State.DEAD: _dead,
    State.EXPIRED: _expired,
    State.CANCELLED: _cancelled,
}

Verb = Callable[[Room, str], Awaitable[object]]


def _held(verb: Callable[[Room, Message], Awaitable[object]]) -> Verb:
    """A verb of a holder whose token is not the one that was given out."""

    async def act(room: Room, message_id: str) -> None:
        message = await room.get(message_id)
        held = type(message)(**{**_fields(message), "claim_token": "1-forged"})
        await verb(room, held)

    return act


def _fields(message: Message) -> dict[str, object]:
    return {name: getattr(message, name) for name in Message.__struct_fields__}


# What each verb of somebody without a claim makes of each state; a state that is not named is refused.
FROM_OUTSIDE: dict[str, tuple[Verb, dict[State, tuple[State, str]]]] = {
    "cancel": (
        lambda room, message_id: room.cancel(message_id),
        dict.fromkeys((State.PENDING, State.DELAYED, State.CLAIMED), (State.CANCELLED, "cancelled")),
    ),
    "kill": (
        lambda room, message_id: room.kill(message_id, "guard"),
        dict.fromkeys((State.PENDING, State.DELAYED, State.CLAIMED), (State.DEAD, "dead_lettered")),
    ),
    "replay": (
        lambda room, message_id: room.replay(message_id),
        {State.DEAD: (State.PENDING, "replayed")},
    ),
    "discard": (
        lambda room, message_id: room.discard(message_id),
        {State.DEAD: (State.CANCELLED, "discarded")},
    ),
    "reprioritise": (
        lambda room, message_id: room.reprioritise(message_id, score=700),
        {State.PENDING: (State.PENDING, "reordered"), State.DELAYED: (State.DELAYED, "reordered")},
    ),
    "complete": (_held(lambda room, message: room.complete(message)), {}),
    "fail": (_held(lambda room, message: room.fail(message, "no")), {}),
    "release": (_held(lambda room, message: room.release(message)), {}),
    "extend": (_held(lambda room, message: room.extend(message)), {}),
    "snooze": (_held(lambda room, message: room.snooze(message, 1)), {}),
}


@pytest.mark.parametrize("state", State)
async def test_from_outside_only_the_allowed_changes_happen(
    room: Room, clock: ManualClock, state: State
) -> None:
    await room.create_queue("jobs")
    for name, (verb, changes) in FROM_OUTSIDE.items():
        message_id = await MAKE[state](room, clock)
        assert (await room.get(message_id)).state is state
        if state not in changes:
            error: type[PostroomError] = ClaimLost if "held" in verb.__qualname__ else WrongState
            async with refused(room, error, message_id):
                await verb(room, message_id)
            continue
        before = len(events_of(room, message_id))
        await verb(room, message_id)
        target, event = changes[state]
        assert (await room.get(message_id)).state is target, name
        assert events_of(room, message_id)[before:] == [event], name
        if target in (State.PENDING, State.DELAYED):
            await room.cancel(message_id)


BY_HOLDER: dict[str, tuple[Callable[[Room, Message], Awaitable[object]], State, str]] = {
    "complete": (lambda room, message: room.complete(message), State.COMPLETED, "completed"),
    "fail": (lambda room, message: room.fail(message, "no"), State.DELAYED, "failed"),
    "fail now": (lambda room, message: room.fail(message, "no", delay=0), State.PENDING, "failed"),
    "reject": (lambda room, message: room.fail(message, "no", retry=False), State.DEAD, "dead_lettered"),
    "release": (lambda room, message: room.release(message), State.PENDING, "released"),
    "extend": (lambda room, message: room.extend(message), State.CLAIMED, "extended"),
    "snooze": (lambda room, message: room.snooze(message, 1), State.DELAYED, "snoozed"),
}


async def test_a_holder_makes_each_change_with_one_event(room: Room) -> None:
    await room.create_queue("jobs")
    for name, (verb, target, event) in BY_HOLDER.items():
        receipt = await room.publish("jobs", name)
        message = await one(room, "jobs")
        await verb(room, message)
        assert (await room.get(receipt.id)).state is target, name
        assert events_of(room, receipt.id) == ["published", "claimed", event], name
        if target not in (State.COMPLETED, State.DEAD):
            await room.cancel(receipt.id)


async def test_time_makes_each_change_with_one_event(room: Room, clock: ManualClock) -> None:
    await room.create_queue("jobs", visibility_timeout_s=10, max_retries=2)
    woken = await room.publish("jobs", 1, delay=5)
    expired = await room.publish("jobs", 1, ttl=5)
    never_woken = await room.publish("jobs", 1, delay=50, ttl=5)
    clock.advance(5)
    await room.housekeep("visibility_timeout_enforcer")
    assert events_of(room, woken.id) == ["published", "ready"]
    assert events_of(room, expired.id) == ["published", "expired"]
    assert events_of(room, never_woken.id) == ["published", "expired"]
    for change in ("lease_expired", "dead_lettered"):
        await one(room, "jobs")
        clock.advance(10)
        await room.housekeep("visibility_timeout_enforcer")
        assert events_of(room, woken.id)[-2:] == ["claimed", change]
