"""When one of many messages is refused, none is published, and the error names the one."""

import pickle

import pytest
from tests.conformance.helpers import unchanged

from postroom import Room
from postroom.errors import BodyTooLarge, IdempotencyConflict, InvalidField, PostroomError, SchemaViolation
from postroom.kernel import commands as c
from postroom.kernel.model import NewMessage
from postroom.runtime import wire


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    return room


async def test_a_body_that_cannot_be_taken_is_named_by_its_place(jobs: Room) -> None:
    async with unchanged(jobs):
        with pytest.raises(
            BodyTooLarge, match=r"^Message 3: The body has .* None of them was published\.$"
        ) as caught:
            await jobs.publish_many("jobs", ["a", "b", "c" * 300_000, "d"])
    assert (caught.value.item, caught.value.item_key) == (2, None)


async def test_a_message_is_named_by_its_place_and_its_key(jobs: Room) -> None:
    await jobs.publish("jobs", "first", key="k1")
    messages = [
        NewMessage(body="a", idempotency_key="k0"),
        NewMessage(body="other", idempotency_key="k1"),
    ]
    async with unchanged(jobs):
        with pytest.raises(IdempotencyConflict, match=r'^Message 2 \(key "k1"\): ') as caught:
            await jobs.run(c.Publish(queue="default/jobs", messages=messages))
    assert (caught.value.item, caught.value.item_key) == (1, "k1")


async def test_a_key_that_is_itself_wrong_is_not_shown(jobs: Room) -> None:
    messages = [NewMessage(body="a"), NewMessage(body="b", idempotency_key=7)]  # type: ignore[arg-type]
    with pytest.raises(InvalidField) as caught:
        await jobs.run(c.Publish(queue="default/jobs", messages=messages))
    assert (caught.value.item, caught.value.item_key) == (1, None)


async def test_a_schema_names_the_message_too(room: Room) -> None:
    await room.register_schema("default", "order", {"type": "object", "required": ["n"]})
    await room.create_queue("orders", schema="order")
    with pytest.raises(SchemaViolation, match=r"^Message 2: "):
        await room.publish_many("orders", [{"n": 1}, {}])


async def test_one_message_alone_needs_no_number(jobs: Room) -> None:
    with pytest.raises(BodyTooLarge, match=r"^The body") as caught:
        await jobs.publish("jobs", "c" * 300_000)
    assert caught.value.item is None


@pytest.mark.parametrize(
    "error", [InvalidField("body", "is wrong"), BodyTooLarge(what="body", size=2, limit=1)]
)
def test_the_number_survives_the_way_to_other_processes(error: PostroomError) -> None:
    error.of_item(4, "k")
    for copy in (pickle.loads(pickle.dumps(error)), wire.decode_error(wire.encode_error(error))):
        assert (str(copy), copy.item, copy.item_key, copy.data) == (str(error), 4, "k", error.data)
