"""Queues whose bodies have a type: only what fits is published, and only what fits is handed out."""

import asyncio
import dataclasses
import logging
import threading
from typing import Any

import msgspec
import pydantic
import pytest
from tests.conftest import OpenSync

from postroom import InvalidField, Message, Room, State, SyncRoom

SOON_S = 60.0
ENDS = {State.DEAD, State.COMPLETED}


class Order(msgspec.Struct):
    total: int


@dataclasses.dataclass
class DataOrder:
    total: int


class ModelOrder(pydantic.BaseModel):
    total: int


@pytest.mark.parametrize("kind", [Order, DataOrder, ModelOrder])
async def test_a_body_comes_out_as_the_type_it_went_in_as(room: Room, kind: Any) -> None:
    await room.create_queue("orders")
    orders = room.queue("orders", kind)
    await orders.publish(kind(total=12), labels={"country": "de"})
    await orders.publish_many([kind(total=13)])
    first, second = await orders.claim(limit=2)
    assert (first.body, second.body) == (kind(total=12), kind(total=13))
    assert first.labels == {"country": "de"}
    await room.complete(first)
    assert (await room.get(first.id)).body == {"total": 12}


@pytest.mark.parametrize("wrong", [Order(total="many"), {"totl": 1}, 7])  # type: ignore[arg-type]
async def test_a_body_that_does_not_fit_is_refused_and_nothing_is_published(room: Room, wrong: Any) -> None:
    await room.create_queue("orders")
    with pytest.raises(InvalidField, match=r"^body: is not Order: .+"):
        await room.queue("orders", Order).publish(wrong)
    with pytest.raises(InvalidField):
        await room.queue("orders", Order).publish_many([Order(total=1), wrong])
    assert (await room.counts("orders")).open == 0


async def test_a_body_of_somebody_else_that_does_not_fit_is_a_dead_letter(room: Room) -> None:
    await room.create_queue("orders")
    bad = await room.publish("orders", {"total": "many"})
    good = await room.publish("orders", {"total": 12})
    claimed = await room.queue("orders", Order).claim(limit=2)
    assert [message.id for message in claimed] == [good.id]
    assert claimed[0].body.total == 12
    dead = await room.get(bad.id)
    assert (dead.state, dead.failure_kind, dead.queue) == (State.DEAD, "body", "_dead_letter")
    assert "is not Order" in (dead.failure_reason or "")


async def test_a_typed_worker_never_sees_what_does_not_fit(room: Room) -> None:
    await room.create_queue("orders")
    seen: list[Order] = []
    orders = room.queue("orders", Order)

    @orders.worker(concurrency=2)
    async def handle(message: Message[Order]) -> int:
        seen.append(message.body)
        return message.body.total * 2

    bad = await room.publish("orders", [])
    good = await orders.publish(Order(total=21))
    running = asyncio.create_task(room.run_workers())
    try:
        async with asyncio.timeout(SOON_S):
            while {(await room.get(each.id)).state for each in (bad, good)} != ENDS:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        room.stop_workers()
        await running
    assert seen == [Order(total=21)]
    assert (await room.get(good.id)).result == 42


def test_a_queue_of_threads_is_typed_the_same_way(open_sync: OpenSync) -> None:
    with open_sync(clock=None) as room:
        room.create_queue("orders")
        orders = room.queue("orders", DataOrder)
        with pytest.raises(InvalidField, match="is not DataOrder"):
            orders.publish({"total": None})  # type: ignore[arg-type]
        bad = room.publish("orders", 7)
        orders.publish_many([DataOrder(total=12)])
        [message] = orders.claim(limit=2)
        assert message.body == DataOrder(total=12)
        assert room.get(bad.id).state is State.DEAD
        room.complete(message)
        handled = threading.Event()

        @orders.worker()
        def handle(message: Message[DataOrder]) -> int:
            handled.set()
            room.stop_workers()
            return message.body.total

        sent = orders.publish(DataOrder(total=3))
        room.run_workers(grace=SOON_S)
        assert handled.is_set()
        assert room.get(sent.id).result == 3


async def test_a_misspelt_option_is_refused_by_every_verb(room: Room) -> None:
    await room.create_queue("orders")
    wrong: Any = {"concurency": 4}
    with pytest.raises(InvalidField, match="did you mean concurrency"):
        room.worker("orders", **wrong)(print)
    with pytest.raises(InvalidField, match="concurency"):
        await room.create_queue("other", **wrong)
    with pytest.raises(InvalidField, match="concurency"):
        await room.update_queue("orders", **wrong)
    wrong = {"lables": {"a": 1}}
    with pytest.raises(InvalidField, match="did you mean labels"):
        await room.publish("orders", 1, **wrong)
    with pytest.raises(InvalidField, match="did you mean labels"):
        await room.publish_many("orders", [1], **wrong)
    with pytest.raises(InvalidField, match="did you mean labels"):
        await room.messages(**wrong)
    assert [queue.slug for queue in await room.queues("default") if not queue.system] == ["orders"]
    assert (await room.counts("orders")).open == 0


def test_the_exception_of_a_handler_is_logged_with_its_traceback(
    open_sync: OpenSync, caplog: pytest.LogCaptureFixture
) -> None:
    with open_sync(clock=None) as room, caplog.at_level(logging.WARNING, "postroom.workers"):
        message_id = fail_once(room)
    [record] = [each for each in caplog.records if each.name == "postroom.workers"]
    assert (record.levelno, message_id in record.getMessage()) == (logging.WARNING, True)
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
    assert record.exc_info[2] is not None


def fail_once(room: SyncRoom) -> str:
    room.create_queue("orders")

    @room.worker("orders")
    def handle(message: Message) -> None:
        room.stop_workers()
        raise ZeroDivisionError("divided")

    sent = room.publish("orders", 1)
    room.run_workers(grace=SOON_S)
    return sent.id


async def test_the_exception_of_an_asynchronous_handler_is_logged_too(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    await room.create_queue("orders")

    @room.worker("orders")
    async def handle(message: Message) -> None:
        room.stop_workers()
        raise ZeroDivisionError("divided")

    await room.publish("orders", 1)
    with caplog.at_level(logging.WARNING, "postroom.workers"):
        await room.run_workers(grace=SOON_S)
    [record] = [each for each in caplog.records if each.name == "postroom.workers"]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)
