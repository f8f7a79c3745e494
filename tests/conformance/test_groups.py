"""Requests of many callers in one transaction: each costs what it costs alone, and harms nobody else."""

import asyncio
from typing import Any

import pytest

from postroom import InvalidField, Message, NewMessage, Room, State
from postroom.ids import SeededIds
from postroom.kernel import commands as c
from postroom.kernel import engine
from postroom.stores.sql.messages import MessageReads
from postroom.stores.sqlite.store import SqliteStore

COUNT = 60


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of rows that were fetched many at once."""
    asked: list[str] = []
    rows = MessageReads.rows

    def counted(tx: Any, message_ids: list[str]) -> Any:
        asked.extend(message_ids)
        return rows(tx, message_ids)

    monkeypatch.setattr(MessageReads, "rows", counted)
    return asked


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ids were made, each time."""
    counts: list[int] = []
    make = SeededIds.make

    def counted(ids: SeededIds, count: int, now: int) -> list[str]:
        counts.append(count)
        return make(ids, count, now)

    monkeypatch.setattr(SeededIds, "make", counted)
    return counts


def _read_again(room: Room, claimed: list[Message]) -> list[str]:
    """What a room must read of the messages it has claimed, to know what follows from their end: a store with
    one writer remembers them."""
    return [] if isinstance(room._core.store, SqliteStore) else [each.id for each in claimed]


async def _all_completed(room: Room, messages: list[Message]) -> bool:
    found = [await room.get(message.id) for message in messages]
    return {message.state for message in found} == {State.COMPLETED}


async def test_completions_with_other_requests_between_them(
    room: Room, fetched: list[str], made: list[int]
) -> None:
    for name in ("jobs", "next"):
        await room.create_queue(name)
    await room.publish_many("jobs", list(range(COUNT)))
    claimed = await room.claim("jobs", limit=COUNT)
    made.clear()
    work = [call for each in claimed for call in (room.complete(each), room.publish("next", each.body))]
    await asyncio.gather(*work)
    assert await _all_completed(room, claimed)
    assert (await room.counts("next")).pending == COUNT
    assert len(fetched) <= COUNT
    assert sum(made) <= 2 * COUNT


async def test_completions_of_what_was_broadcast(room: Room, fetched: list[str]) -> None:
    await room.create_queue("news", consumer_mode="broadcast")
    for name in ("ann", "bob"):
        await room.subscribe("news", name)
    sent = await room.publish_many("news", list(range(COUNT)))
    claimed = []
    for name in ("ann", "bob"):
        claimed += await room.claim("news", limit=COUNT, subscription=name)
    await asyncio.gather(*(room.complete(each) for each in claimed))
    assert await _all_completed(room, claimed)
    assert {(await room.get(each.id)).state for each in sent} == {State.COMPLETED}
    # Each delivery and each message that was broadcast, once.
    assert sorted(fetched) == sorted([*_read_again(room, claimed), *(each.id for each in sent)])


async def test_completions_of_messages_that_have_parents(room: Room, fetched: list[str]) -> None:
    await room.create_queue("jobs")
    messages = [NewMessage(body=n, parent_id="parent") for n in range(COUNT)]
    await room.publish_many("jobs", messages)
    claimed = await room.claim("jobs", limit=COUNT)
    await asyncio.gather(*(room.complete(each) for each in claimed))
    assert await _all_completed(room, claimed)
    assert sorted(fetched) == sorted(_read_again(room, claimed))


async def test_completions_go_together_when_nothing_comes_between(room: Room, fetched: list[str]) -> None:
    await room.create_queue("jobs")
    await room.publish_many("jobs", list(range(COUNT)))
    claimed = await room.claim("jobs", limit=COUNT)
    await asyncio.gather(*(room.complete(each) for each in claimed))
    assert await _all_completed(room, claimed)
    # A store that compares tokens need not read what this room has claimed itself either.
    compared = room._core.store.capabilities.compares_tokens
    assert sorted(fetched) == ([] if compared else sorted(_read_again(room, claimed)))


BROKEN: Any = [
    c.Claim(queues=("jobs",), limit="5"),  # type: ignore[arg-type]
    c.Claim(queues=["jobs"], limit=1.5),  # type: ignore[arg-type]
    c.Publish(queue="jobs", messages=None),  # type: ignore[arg-type]
    c.PublishLike(queue="jobs", bodies=7),  # type: ignore[arg-type]
    c.Unit(commands=None),  # type: ignore[arg-type]
    c.Complete(message_id=["x"], token="t"),  # type: ignore[arg-type]
    c.Command(),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda command: type(command).__name__)
async def test_a_request_that_cannot_be_read_is_refused_alone(room: Room, broken: c.Command) -> None:
    await room.create_queue("jobs")
    refused = room.run(broken)
    published = room.run(c.PublishLike(queue="jobs", bodies=["together with it"]))
    async with asyncio.timeout(60):
        with pytest.raises(Exception, match=r"."):
            await refused
        await published
        await room.publish("jobs", "after it")
    assert (await room.counts("jobs")).pending == 2


async def test_whoever_asked_is_told_whatever_was_raised(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(ctx: object, command: object) -> None:
        raise StopIteration

    await room.create_queue("jobs")
    monkeypatch.setitem(engine.HANDLERS, c.SetPosition, stop)
    refused = room.run(c.SetPosition(name="reader", seq=0))
    published = room.run(c.PublishLike(queue="jobs", bodies=["together with it"]))
    async with asyncio.timeout(60):
        with pytest.raises(RuntimeError):
            await refused
        await published
        await room.publish("jobs", "after it")
    assert (await room.counts("jobs")).pending == 2


@pytest.mark.parametrize("wrong", [True, 1.0], ids=repr)
async def test_a_claim_that_only_looks_like_the_one_before_is_refused(room: Room, wrong: Any) -> None:
    await room.create_queue("jobs")
    await room.publish_many("jobs", [1, 2, 3])
    claims = [c.Claim(queues=("default/jobs",), limit=limit) for limit in (1, wrong, 1)]
    outcomes: list[Any] = await asyncio.gather(*map(room.run, claims), return_exceptions=True)
    first, refused, last = outcomes
    assert isinstance(refused, InvalidField)
    assert len({each.messages[0].row.id for each in (first, last)}) == 2
    assert (await room.counts("jobs")).claimed == 2


async def test_publishes_to_several_queues_in_turn_each_reach_their_own(room: Room) -> None:
    for name in ("jobs", "next"):
        await room.create_queue(name)
    work = [room.publish(name, f"{name} {n}") for n in range(5) for name in ("jobs", "next")]
    await asyncio.gather(*work)
    for name in ("jobs", "next"):
        claimed = await room.claim(name, limit=None)
        assert [each.body for each in claimed] == [f"{name} {n}" for n in range(5)]


async def test_a_message_may_wait_for_one_that_is_completed_with_it(room: Room) -> None:
    await room.create_queue("jobs")
    first = await room.publish("jobs", "first")
    [held] = await room.claim("jobs")
    _, second = await asyncio.gather(room.complete(held), room.publish("jobs", "second", after=[first.id]))
    assert second.state is State.PENDING
    assert [each.body for each in await room.claim("jobs", limit=None)] == ["second"]
