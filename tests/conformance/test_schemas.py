"""Schemas: named, versioned, never changed; a queue that names one takes only bodies that match."""

import contextlib
import urllib.request
from typing import Any

import msgspec
import pytest
from tests.conformance.helpers import LONE_SURROGATE, bodies, events, refused, unchanged

from postroom import NewMessage, Room
from postroom.errors import (
    InvalidField,
    PostroomError,
    QueueNotFound,
    SchemaNotFound,
    SchemaTaken,
    SchemaViolation,
    ScopeNotFound,
)
from postroom.kernel import commands as c
from postroom.kernel.transitions.queues import QueueSchemaNotFound

ORDER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.fixture
async def orders(room: Room) -> Room:
    await room.register_schema("default", "order", ORDER)
    await room.create_queue("orders", schema="order")
    return room


async def test_versions_are_numbered_and_listed(room: Room) -> None:
    first = await room.register_schema("default", "order", ORDER)
    second = await room.register_schema("default", "order", {"type": "object"})
    ninth = await room.register_schema("default", "order", {}, version=9)
    tenth = await room.register_schema("default", "order", {})
    assert [schema.version for schema in (first, second, ninth, tenth)] == [1, 2, 9, 10]
    assert await room.schemas("default") == [first, second, ninth, tenth]
    assert first.document == ORDER


async def test_a_published_version_never_changes(room: Room) -> None:
    await room.register_schema("default", "order", ORDER, version=1)
    async with refused(room, SchemaTaken, "order", "1"):
        await room.register_schema("default", "order", {}, version=1)
    async with refused(room, SchemaTaken):
        await room.register_schema("default", "order", ORDER, version=1)


async def test_a_body_that_matches_is_taken_and_any_other_is_refused_with_what_is_wrong(orders: Room) -> None:
    await orders.publish("orders", {"n": 1})
    for body, problem in (({"n": "1"}, "n: '1' is not of type 'integer'"), ({}, "'n' is a required")):
        async with refused(orders, SchemaViolation, "order v1", problem):
            await orders.publish("orders", body)
    for body in (None, [], "n"):
        async with refused(orders, SchemaViolation):
            await orders.publish("orders", body)
    assert await bodies(orders, "orders") == [{"n": 1}]


async def test_a_batch_with_one_body_that_does_not_match_is_refused_whole(orders: Room) -> None:
    async with refused(orders, SchemaViolation):
        await orders.publish_many("orders", [{"n": 1}, {"n": 2}, {}])


async def test_without_a_version_the_newest_counts_and_with_one_that_one(orders: Room) -> None:
    await orders.create_queue("pinned", schema="order@1")
    await orders.register_schema("default", "order", {"type": "string"})
    await orders.publish("orders", "text")
    async with refused(orders, SchemaViolation, "v2"):
        await orders.publish("orders", {"n": 1})
    await orders.publish("pinned", {"n": 1})


async def test_a_queue_may_be_bound_and_unbound_later(orders: Room) -> None:
    await orders.update_queue("orders", schema=None)
    await orders.publish("orders", "anything")
    await orders.update_queue("orders", schema="order")
    async with refused(orders, SchemaViolation):
        await orders.publish("orders", "anything")


@pytest.mark.parametrize("schema", ["invoice", "invoice@1", "order@3"])
async def test_a_queue_cannot_ask_for_a_schema_that_is_not_there(orders: Room, schema: str) -> None:
    words = (
        f'"{schema}"',
        "default/bills",
        f"postroom schema add {schema.partition('@')[0]} FILE --scope default",
    )
    async with refused(orders, QueueSchemaNotFound, *words):
        await orders.create_queue("bills", schema=schema)
    await orders.create_queue("bills")
    async with refused(orders, QueueSchemaNotFound, *words):
        await orders.update_queue("bills", schema=schema)
    assert (await orders.queue("bills")).settings.schema is None


async def test_a_queue_cannot_ask_for_the_schema_of_another_scope(orders: Room) -> None:
    await orders.create_scope("office")
    async with refused(orders, QueueSchemaNotFound, '"office"'):
        await orders.create_queue("office/orders", schema="order")


async def test_a_schema_and_its_queue_can_be_made_together(room: Room) -> None:
    async with room.unit() as unit:
        unit.add(c.RegisterSchema(scope="default", name="order", document=ORDER))
        unit.add(c.CreateQueue(queue="orders", settings={"schema": "order"}))
    async with refused(room, SchemaViolation):
        await room.publish("orders", {})


async def test_a_queue_that_lost_its_schema_can_be_changed_and_refuses_every_body(orders: Room) -> None:
    """As a room has it in which queues could still ask for what was not there."""
    queue = await orders.queue("orders")
    settings = msgspec.structs.replace(queue.settings, schema="order@3")
    store = orders._core.store
    tx = store.begin()
    tx.save_queue(msgspec.structs.replace(queue, settings=settings))
    store.commit(tx)
    async with refused(orders, SchemaNotFound, "order", "3"):
        await orders.publish("orders", {"n": 1})
    changed = await orders.update_queue("orders", max_retries=2)
    assert (changed.settings.max_retries, changed.settings.schema) == (2, "order@3")


async def test_an_opaque_body_does_not_match_a_schema_for_objects(orders: Room) -> None:
    async with refused(orders, SchemaViolation):
        await orders.publish("orders", '{"n": 1}', content_type="text/plain")


async def test_a_schema_belongs_to_its_scope(orders: Room) -> None:
    await orders.create_scope("office")
    await orders.register_schema("office", "order", {"type": "string"})
    assert len(await orders.schemas("default")) == 1
    await orders.publish("orders", {"n": 1})
    async with refused(orders, ScopeNotFound, "nowhere"):
        await orders.register_schema("nowhere", "order", {})


BAD_DOCUMENTS: list[Any] = [
    [],
    "text",
    None,
    {"type": "nonsense"},
    {"type": 5},
    {"properties": []},
    {"required": "n"},
    {"minimum": "1"},
]


async def test_what_is_no_schema_is_refused(room: Room) -> None:
    for document in BAD_DOCUMENTS:
        async with refused(room, InvalidField, "document"):
            await room.register_schema("default", "order", document)


async def test_a_bad_name_or_version_is_refused(room: Room) -> None:
    names: list[Any] = ["", " ", "a@b", "n" * 513, 5, LONE_SURROGATE]
    for name in names:
        async with refused(room, InvalidField, "name"):
            await room.register_schema("default", name, {})
    versions: list[Any] = [0, -1, 1.5, "1", 10**10]
    for version in versions:
        async with refused(room, InvalidField, "version"):
            await room.register_schema("default", "order", {}, version=version)


@pytest.mark.parametrize(
    "document", [{"$ref": "#/$defs/missing"}, {"$ref": "#"}, {"$ref": "urn:nobody"}], ids=repr
)
async def test_a_reference_that_leads_nowhere_never_breaks_a_publisher(
    room: Room, document: dict[str, Any]
) -> None:
    """Refused when it is registered, or when a body meets it: by a named error either way."""
    try:
        await room.register_schema("default", "order", document)
    except InvalidField:
        return
    await room.create_queue("orders", schema="order")
    async with unchanged(room):
        with pytest.raises(PostroomError):
            await room.publish("orders", {"n": 1})


async def test_a_schema_never_makes_the_room_call_out(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def urlopen(request: Any, *args: object, **kwargs: object) -> object:
        asked.append(request)
        raise OSError("no network in tests")

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    with contextlib.suppress(Exception):
        await room.register_schema("default", "order", {"$ref": "http://127.0.0.1:9/secret"})
        await room.create_queue("orders", schema="order")
        await room.publish("orders", {"n": 1})
    assert not asked


async def test_one_tenants_schema_is_never_used_for_another(room: Room) -> None:
    """Registered in one moment, under the same names."""
    await room.register_schema("default", "order", {"type": "string"})
    await room.create_queue("orders", schema="order")
    other: dict[str, Any] = {"tenant": "other"}
    await room.run(c.CreateScope(slug="default", **other))
    await room.run(c.RegisterSchema(scope="default", name="order", document=ORDER, **other))
    await room.run(c.CreateQueue(queue="orders", settings={"schema": "order"}, **other))
    await room.publish("orders", "text")
    with pytest.raises(SchemaViolation):
        await room.run(c.Publish(queue="orders", messages=[NewMessage(body="text")], **other))
    await room.run(c.Publish(queue="orders", messages=[NewMessage(body={"n": 1})], **other))


async def test_a_schema_that_was_undone_is_forgotten(room: Room) -> None:
    make = c.CreateQueue(queue="orders", settings={"schema": "order"})
    async with refused(room, QueueNotFound), room.unit() as unit:
        unit.add(c.RegisterSchema(scope="default", name="order", document={"type": "string"}))
        unit.add(make)
        unit.publish("orders", "text")
        unit.publish("nowhere", 1)
    await room.register_schema("default", "order", ORDER)
    await room.run(make)
    await room.publish("orders", {"n": 1})
    async with refused(room, SchemaViolation):
        await room.publish("orders", "text")


async def test_registering_is_one_event(room: Room) -> None:
    head = (await room.head()).seq
    await room.register_schema("default", "order", ORDER)
    [event] = events(room, head)
    assert (event.type, event.details) == ("schema.registered", {"name": "order", "version": 1})
