"""Short words for what most conformance tests do."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest
from tests.conformance.promises import all_events

from postroom import Message, PostroomError, Room, State, SyncRoom
from postroom.kernel.ledger import Event
from postroom.kernel.model import Counts
from postroom.kernel.ports import Reader

T = TypeVar("T")

LONE_SURROGATE = "half a \ud83d smile"


def read(room: Room | SyncRoom, question: Callable[[Reader], T]) -> T:
    with room._core.store.reader() as reader:
        return question(reader)


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
        subscribers = [0, *reader.subscription_names()]
        return (
            reader.head(),
            reader.folded(),
            [(queue, [reader.counts(queue.id, number) for number in subscribers]) for queue in queues],
            reader.scopes(tenant),
            reader.subscription_names(),
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
