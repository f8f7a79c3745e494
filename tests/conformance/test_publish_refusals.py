"""What publish refuses: by a named error that says what to do, leaving nothing half-written."""

import asyncio
import math
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from tests.conformance.helpers import LONE_SURROGATE, bodies, one, refused, unchanged
from tests.conftest import OpenRoom

from postroom import Limits, NewMessage, Room
from postroom.clock import SECOND, ManualClock
from postroom.errors import (
    BodyTooLarge,
    InvalidField,
    PostroomError,
    QueueNotFound,
    ScopeNotFound,
)


@pytest.fixture
async def jobs(room: Room) -> Room:
    await room.create_queue("jobs")
    await room.publish("jobs", "there before")
    return room


async def test_an_unknown_queue_is_refused(jobs: Room) -> None:
    async with refused(jobs, QueueNotFound, "default/nowhere"):
        await jobs.publish("nowhere", 1)


async def test_an_unknown_scope_is_refused(jobs: Room) -> None:
    async with refused(jobs, ScopeNotFound, "office"):
        await jobs.publish("office/jobs", 1)


async def test_a_path_that_is_no_text_is_refused(jobs: Room) -> None:
    wrong: list[Any] = ["", None, 5, b"jobs"]
    for path in wrong:
        async with refused(jobs, InvalidField, "queue"):
            await jobs.publish(path, 1)


async def test_a_body_at_the_limit_is_taken_and_one_byte_more_is_refused(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(body_bytes=20)) as room:
        await room.create_queue("jobs")
        await room.publish("jobs", "x" * 18)
        await room.publish("jobs", b"x" * 20, content_type="application/octet-stream")
        async with refused(room, BodyTooLarge, "21 bytes", "20"):
            await room.publish("jobs", "x" * 19)
        async with refused(room, BodyTooLarge, "21 bytes"):
            await room.publish("jobs", b"x" * 21, content_type="application/octet-stream")
        async with refused(room, BodyTooLarge, "22 bytes"):
            await room.publish("jobs", "ö" * 10)


async def test_a_body_that_json_cannot_hold_is_refused(jobs: Room) -> None:
    impossible: list[Any] = [
        math.nan,
        math.inf,
        {"deep": [1, {"er": -math.inf}]},
        {"null": None, "nan": math.nan},
        object(),
        {"f": print},
        LONE_SURROGATE,
        {LONE_SURROGATE: 1},
        [LONE_SURROGATE],
        {None: 1},
        {(1, 2): 1},
    ]
    for body in impossible:
        async with refused(jobs, InvalidField, "body"):
            await jobs.publish("jobs", body)


async def test_a_body_whose_names_are_no_texts_is_refused(jobs: Room) -> None:
    for body in ({1: "one"}, {1.5: "float"}, {math.nan: "nan"}, {"deep": [{2: 2}]}):
        async with refused(jobs, InvalidField, "body"):
            await jobs.publish("jobs", body)


@dataclass
class Point:
    x: float


async def test_a_body_that_json_would_change_is_refused(jobs: Room) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for body in (b"bytes", {1, 2}, Decimal("1.10"), moment, uuid.UUID(int=7), Point(1.0), Point(math.nan)):
        async with refused(jobs, InvalidField, "body"):
            await jobs.publish("jobs", body)


async def test_raw_text_that_is_no_json_is_refused(jobs: Room) -> None:
    async with refused(jobs, InvalidField, "body"):
        await jobs.publish("jobs", msgspec.Raw(b"not json"))


def nested(depth: int) -> Any:
    body: Any = 1
    for _ in range(depth):
        body = [body]
    return body


async def test_a_body_nested_without_end_is_refused(jobs: Room) -> None:
    endless: list[Any] = []
    endless.append(endless)
    for body in (endless, nested(100_000)):
        async with refused(jobs, InvalidField, "body"):
            await jobs.publish("jobs", body)


async def test_what_was_accepted_can_be_read_from_a_deeper_stack(room: Room) -> None:
    """Else a body that is just shallow enough to be published would break every consumer."""
    await room.create_queue("jobs")
    for depth in range(970, 0, -5):
        try:
            await room.publish("jobs", nested(depth))
        except InvalidField:
            continue
        break

    async def deeper(levels: int) -> Any:
        return await deeper(levels - 1) if levels else await one(room, "jobs")

    assert (await deeper(100)).body


async def test_an_opaque_body_must_be_text_or_bytes(jobs: Room) -> None:
    wrong: list[Any] = [{"no": "text"}, 5, 1.5, ["x"]]
    for body in wrong:
        async with refused(jobs, InvalidField, "body", "text/plain"):
            await jobs.publish("jobs", body, content_type="text/plain")


async def test_opaque_text_must_be_text(jobs: Room) -> None:
    async with refused(jobs, InvalidField, "body"):
        await jobs.publish("jobs", LONE_SURROGATE, content_type="text/plain")


BAD_OPTIONS: dict[str, list[Any]] = {
    "priority": ["urgent", "", 3, []],
    "score": [-1, 1001, 1.5, 500.0, "500", True],
    "ttl": [0, -1, math.nan, math.inf, 367 * 24 * 3600, "60", True],
    "delay": [-1, math.nan, math.inf, 1e30, "60", True],
    "delay_until": [0, 2**56, "tomorrow", 1.5],
    "deadline": [0, -5, 2**70, "tomorrow"],
    "hop": [-1, 1001, "1"],
    "type": ["", "t" * 513, 5],
    "key": ["", "k" * 513, 5],
    "correlation_id": ["c" * 513, 5],
    "parent_id": [[]],
    "source_type": [5],
    "sender": [{}],
    "agent": [b"coder"],
    "content_type": [5],
    "files": ["one.txt", [5], [f"{n}" for n in range(65)], [LONE_SURROGATE]],
    "metadata": ["text", ["a", "list"], {"x": math.nan}],
    "hitl_spec": [["a", "list"]],
    "caused_by": ["an id"],
    "labels": [
        ["a"],
        {"": 1},
        {"k" * 65: 1},
        {1: 1},
        {"v": "v" * 257},
        {"v": []},
        {"v": {}},
        {"v": math.nan},
        {"v": LONE_SURROGATE},
        {f"label{n}": n for n in range(65)},
    ],
    "nonsense": [1],
}


@pytest.mark.parametrize("option", BAD_OPTIONS)
async def test_a_field_out_of_bounds_is_refused_and_named(jobs: Room, option: str) -> None:
    for value in BAD_OPTIONS[option]:
        async with refused(jobs, InvalidField, option):
            await jobs.publish("jobs", 1, **{option: value})


TEXTS = "type content_type key correlation_id causation_id parent_id source_type source_id channel agent"


async def test_a_field_that_is_no_valid_text_is_refused(jobs: Room) -> None:
    for option in (*TEXTS.split(), "sender", "sender_id", "from_agent"):
        wrong: dict[str, Any] = {option: LONE_SURROGATE}
        async with refused(jobs, InvalidField):
            await jobs.publish("jobs", "text", **wrong)


async def test_a_whole_message_without_a_needed_field_is_refused(jobs: Room) -> None:
    for field in ("message_type", "content_type", "source_type"):
        wrong: dict[str, Any] = {field: None}
        async with refused(jobs, InvalidField, field):
            await jobs.publish_many("jobs", [NewMessage(body=None, **wrong)])


async def test_labels_at_their_limits_are_taken(jobs: Room) -> None:
    labels = {f"{n:064}": "v" * 256 for n in range(64)}
    receipt = await jobs.publish("jobs", 1, labels=labels)
    assert (await jobs.get(receipt.id)).labels == labels


async def test_large_metadata_is_refused(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(metadata_bytes=100)) as room:
        await room.create_queue("jobs")
        for option in ("metadata", "labels"):
            large: dict[str, Any] = {option: {"x": "y" * 100}}
            async with refused(room, BodyTooLarge, option):
                await room.publish("jobs", 1, **large)


async def test_a_deadline_in_the_past_is_refused(jobs: Room, clock: ManualClock) -> None:
    for deadline in (clock.now(), clock.now() - SECOND, datetime(2001, 1, 1, tzinfo=UTC)):
        async with refused(jobs, InvalidField, "deadline", "past"):
            await jobs.publish("jobs", 1, deadline=deadline)


async def test_a_chain_of_causes_ends_at_the_hop_limit(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(hops=2)) as room:
        await room.create_queue("jobs")
        await room.publish("jobs", 0)
        for _ in range(2):
            await room.publish("jobs", 0, caused_by=await one(room, "jobs"))
        last = await one(room, "jobs")
        async with refused(room, InvalidField, "hop"):
            await room.publish("jobs", 0, caused_by=last)


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_batch_with_one_bad_message_is_refused_whole(jobs: Room, place: int) -> None:
    batch = [NewMessage(body=n) for n in range(2)]
    batch.insert(place, NewMessage(body=1, priority_score=5000))
    async with refused(jobs, InvalidField, "priority_score"):
        await jobs.publish_many("jobs", batch)


async def test_a_batch_over_the_limit_is_refused(open_room: OpenRoom) -> None:
    async with open_room(limits=Limits(publish_batch=3)) as room:
        await room.create_queue("jobs")
        await room.publish_many("jobs", range(3))
        async with refused(room, InvalidField, "messages", "3"):
            await room.publish_many("jobs", range(4))


async def test_a_refused_message_does_not_harm_those_committed_with_it(jobs: Room) -> None:
    outcomes = await asyncio.gather(
        jobs.publish("jobs", "first"),
        jobs.publish("jobs", "bad", correlation_id=LONE_SURROGATE),
        jobs.publish("jobs", math.nan),
        jobs.publish("jobs", "last"),
        return_exceptions=True,
    )
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, True, True, False]
    assert await bodies(jobs, "jobs") == ["there before", "first", "last"]
    assert isinstance(outcomes[1], PostroomError)


async def test_a_message_that_failed_to_publish_can_be_published_again_with_its_key(jobs: Room) -> None:
    async with unchanged(jobs):
        with pytest.raises(InvalidField):
            await jobs.publish("jobs", math.nan, key="k")
    assert (await jobs.publish("jobs", 1, key="k")).created
