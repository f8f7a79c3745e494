"""A unit of work: everything in it happens in one moment, or nothing does."""

import asyncio
import contextlib
from typing import Any

import pytest
from tests.conformance.helpers import bodies, counts, events, one, refused, state_of, unchanged

from postroom import Message, PostroomError, Room, State
from postroom.clock import ManualClock
from postroom.errors import ClaimLost, IdempotencyConflict, InvalidField, QueueNotFound, SlugTaken
from postroom.kernel import commands as c


@pytest.fixture
async def office(room: Room) -> Room:
    for name in ("inbox", "outbox", "mate"):
        await room.create_queue(name)
    await room.publish("inbox", "question", correlation_id="talk")
    return room


async def test_completing_with_reply_handoff_and_record_is_one_moment(
    office: Room, clock: ManualClock
) -> None:
    question = await one(office, "inbox")
    head = (await office.head()).seq
    clock.advance(1)
    async with office.unit() as unit:
        unit.complete(question, "answered")
        unit.publish("outbox", "reply", caused_by=question)
        unit.publish("mate", "please help", caused_by=question)
        unit.record("turn", "coder", {"tokens": 5}, about=question)
    assert unit.results[0] is None
    assert [receipt.created for [receipt] in unit.results[1:3]] == [True, True]
    made = events(office, head)
    assert [event.type for event in made] == [
        "message.completed",
        "message.published",
        "message.published",
        "record.turn",
    ]
    assert {event.time for event in made} == {clock.now()}
    assert {event.correlation_id for event in made} == {"talk"}
    assert (await office.get(question.id)).result == "answered"
    assert await bodies(office, "outbox") == ["reply"]
    [record] = await office.records("turn")
    assert (record.key, record.data) == ("coder", {"tokens": 5})


BREAKERS: dict[str, tuple[type[PostroomError], Any]] = {
    "a lost claim": (ClaimLost, lambda unit, stale: unit.complete(stale)),
    "an unknown queue": (QueueNotFound, lambda unit, stale: unit.publish("nowhere", 1)),
    "a bad body": (InvalidField, lambda unit, stale: unit.publish("outbox", float("nan"))),
    "a taken name": (SlugTaken, lambda unit, stale: unit.add(c.CreateQueue(queue="mate"))),
    "a bad record": (InvalidField, lambda unit, stale: unit.record("", "key", {})),
}


@pytest.mark.parametrize("breaker", BREAKERS)
async def test_one_refused_part_undoes_every_other(office: Room, breaker: str) -> None:
    await office.publish("inbox", "other")
    question, stale = await office.claim("inbox", limit=2)
    await office.release(stale)
    error, add = BREAKERS[breaker]
    async with refused(office, error), office.unit() as unit:
        unit.publish("outbox", "first", key="k")
        unit.complete(question, "done")
        unit.record("turn", "coder", {"tokens": 5})
        unit.add(c.CreateQueue(queue="made-here"))
        unit.publish("made-here", 1)
        add(unit, stale)
        unit.publish("mate", "last")
    assert await office.records("turn") == []
    async with office.unit() as unit:
        unit.complete(question)
        unit.publish("outbox", "again", key="k")
    assert await bodies(office, "outbox") == ["again"], "the key was not taken by what was undone"


async def test_a_part_sees_what_the_parts_before_it_did(office: Room) -> None:
    async with office.unit() as unit:
        unit.add(c.CreateQueue(queue="new", settings={"max_depth": 2}))
        unit.publish("new", 1, key="a")
        unit.publish("new", 1, key="a")
        unit.publish("new", 2)
    assert [receipt.created for [receipt] in unit.results[1:]] == [True, False, True]
    assert await counts(office, "new") == {"pending": 2}


async def test_a_conflict_between_two_parts_refuses_both(office: Room) -> None:
    async with refused(office, IdempotencyConflict), office.unit() as unit:
        unit.publish("outbox", 1, key="a")
        unit.publish("outbox", 2, key="a")


async def test_a_claim_is_settled_once_in_a_unit(office: Room) -> None:
    question = await one(office, "inbox")
    async with refused(office, ClaimLost), office.unit() as unit:
        unit.fail(question, "no")
        unit.complete(question)
    assert await state_of(office, question.id) is State.CLAIMED


async def test_every_verb_of_a_holder_can_be_part_of_a_unit(office: Room) -> None:
    await office.publish_many("inbox", range(3))
    claimed = await office.claim("inbox", limit=4)
    async with office.unit() as unit:
        unit.complete(claimed[0])
        unit.fail(claimed[1], "no")
        unit.release(claimed[2])
        unit.snooze(claimed[3], 5)
    states = [await state_of(office, message.id) for message in claimed]
    assert states == [State.COMPLETED, State.DELAYED, State.PENDING, State.DELAYED]


async def test_a_block_that_raises_asks_for_nothing(office: Room) -> None:
    async with unchanged(office):
        with contextlib.suppress(ZeroDivisionError):
            async with office.unit() as unit:
                unit.publish("outbox", 1)
                raise ZeroDivisionError


async def test_an_empty_unit_is_no_error_and_no_event(office: Room) -> None:
    async with unchanged(office):
        async with office.unit() as unit:
            pass
        assert unit.results == []


@pytest.mark.parametrize(
    "command",
    [c.Claim(queues=("inbox",)), c.Unit(commands=()), c.Housekeep(name="pruner")],
    ids=lambda command: type(command).__name__,
)
async def test_a_unit_cannot_hold_what_could_not_be_undone(office: Room, command: c.Command) -> None:
    async with refused(office, InvalidField, type(command).__name__), office.unit() as unit:
        unit.publish("outbox", 1)
        unit.add(command)


async def test_a_message_that_was_only_read_is_refused_before_anything_is_sent(office: Room) -> None:
    question = await one(office, "inbox")
    seen: Message = await office.get(question.id)
    async with refused(office, ClaimLost), office.unit() as unit:
        unit.publish("outbox", 1)
        unit.complete(seen)


async def test_a_refused_unit_harms_no_other_request_of_its_moment(office: Room) -> None:
    question = await one(office, "inbox")

    async def refused_unit() -> None:
        async with office.unit() as unit:
            unit.complete(question)
            unit.add(c.CreateQueue(queue="made-here"))
            unit.publish("outbox", "undone", key="k")
            unit.publish("nowhere", 1)

    async def accepted_unit(name: str) -> None:
        async with office.unit() as unit:
            unit.publish("outbox", name)
            unit.record("turn", name, {})

    outcomes = await asyncio.gather(
        office.publish("outbox", "first"),
        refused_unit(),
        accepted_unit("second"),
        office.publish("outbox", "third", key="k"),
        office.create_queue("other"),
        refused_unit(),
        accepted_unit("fourth"),
        return_exceptions=True,
    )
    assert [isinstance(outcome, PostroomError) for outcome in outcomes] == [
        False,
        True,
        False,
        False,
        False,
        True,
        False,
    ]
    assert await bodies(office, "outbox") == ["first", "second", "third", "fourth"]
    assert "made-here" not in {queue.slug for queue in await office.queues()}
    assert [record.key for record in await office.records("turn")] == ["second", "fourth"]
    await office.complete(question)
