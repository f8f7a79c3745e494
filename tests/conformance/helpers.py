"""Short words for what most conformance tests do."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from tests.conformance.promises import all_events

from postroom import Message, PostroomError, Room, State, SyncRoom
from postroom.kernel.ledger import Event
from postroom.kernel.model import Counts
from postroom.kernel.reader import Reader

T = TypeVar("T")

LONE_SURROGATE = "half a \ud83d smile"


def read(room: Room | SyncRoom, question: Callable[[Reader], T]) -> T:
    return room._core.read(question)


def events(room: Room | SyncRoom, after: int = 0) -> list[Event]:
    return [event for event in read(room, all_events) if event.seq > after]


def events_of(room: Room | SyncRoom, message_id: str) -> list[str]:
    """What happened to one message, in short words."""
    return [event.type.removeprefix("message.") for event in events(room) if event.message_id == message_id]


def whole(room: Room | SyncRoom) -> tuple[Any, ...]:
    """Everything a refused request must not change."""

    def ask(reader: Reader) -> tuple[Any, ...]:
        tenant = room._core.options.tenant
        queues = reader.queues(tenant, None)
        subscriptions = reader.subscriptions_of(queue.id for queue in queues)
        subscribers = [0, *(each.id for each in subscriptions)]
        return (
            reader.head(),
            reader.folded(),
            [(queue, [reader.counts(queue.id, number) for number in subscribers]) for queue in queues],
            reader.scopes(tenant),
            subscriptions,
            reader.positions(),
            reader.list_accounts(tenant, "", 0, frozen=False, after="", limit=1000),
        )

    return read(room, ask)


@asynccontextmanager
async def refused(
    room: Room, error: type[PostroomError], *words: str
) -> AsyncIterator[pytest.ExceptionInfo[PostroomError]]:
    """The block must raise this error, in a sentence with these words, and change nothing."""
    before = whole(room)
    with pytest.raises(error) as caught:
        yield caught
    assert type(caught.value) is error
    sentence = str(caught.value)
    assert sentence.endswith((".", ")")), sentence
    for word in words:
        assert word in sentence
    assert whole(room) == before


@asynccontextmanager
async def unchanged(room: Room) -> AsyncIterator[None]:
    before = whole(room)
    yield
    assert whole(room) == before


def waiting_claims(room: Room | SyncRoom) -> int:
    """How many claims wait for messages to come."""
    wakeups = room._core.wakeups
    waiters = {waiter for waiters in wakeups._lines.values() for waiter in waiters}
    return len(waiters) + len({wake for watchers in wakeups._watchers.values() for wake in watchers})


def following_readers(room: Room | SyncRoom) -> int:
    """How many wait for the ledger to go on."""
    return len(room._core.wakeups._tails)


async def until_waiting(room: Room, claims: int = 1) -> None:
    """Until so many claims have looked, found nothing, and wait."""
    async with asyncio.timeout(60):
        while waiting_claims(room) < claims:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    # Whoever waits has asked before: commands are answered in their order.
    await room.set_position("settled", 0)


async def until_following(room: Room) -> None:
    async with asyncio.timeout(60):
        while not following_readers(room):  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def one(room: Room, *queues: str, **options: Any) -> Message:
    """Claim what must be exactly one message."""
    [message] = await room.claim(*queues, **options)
    return message


async def bodies(room: Room, *queues: str, limit: int | None = None, **options: Any) -> list[Any]:
    """The bodies of everything that can be claimed, in the order of claiming."""
    return [message.body for message in await room.claim(*queues, limit=limit, **options)]


async def dead_letter(room: Room, queue: str, body: Any = None, **options: Any) -> str:
    """A message that was published, claimed and rejected; its id."""
    receipt = await room.publish(queue, body, **options)
    claimed = {message.id: message for message in await room.claim(queue, limit=None)}
    await room.fail(claimed.pop(receipt.id), "broken", retry=False)
    for message in claimed.values():
        await room.release(message)
    return receipt.id


async def state_of(room: Room, message_id: str) -> State:
    return (await room.get(message_id)).state


async def counts(room: Room, queue: str, **options: Any) -> dict[str, int]:
    """The counts that are not zero."""
    found: Counts = await room.counts(queue, **options)
    return {name: n for name in Counts.__struct_fields__ if (n := getattr(found, name))}
