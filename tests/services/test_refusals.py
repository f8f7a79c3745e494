"""What services refuse besides what every entrance can say: the code is right, and nothing has changed."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from postroom.errors import NotFound, PostroomError
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.erasure.subject import Subject
from postroom.kernel.model import NewMessage
from postroom.services import callers
from postroom.services.callers import Caller
from postroom.services.container import ServiceRequest, Services, UnknownMethod
from postroom.services.errors import AclDenied, OwnerOnly
from postroom.services.keys import KeyDraft
from postroom.services.rates import WINDOW, RateMeter
from postroom.services.webhooks import WebhookDraft
from tests.services.conftest import ServedRoom
from tests.services.lists import close_queue

INVALID = "VALIDATION_ERROR"
ONE = [NewMessage(body=1)]
URL = "https://example.org/"
Ask = Callable[[Services, Caller, dict[str, str]], Awaitable[Any]]

REFUSED: dict[str, tuple[str, Ask]] = {
    "no messages": (INVALID, lambda s, o, i: s.messages.publish(o, "work", "jobs", [])),
    "too many messages": (INVALID, lambda s, o, i: s.messages.publish(o, "work", "jobs", ONE * 1001)),
    "an unknown schema": (
        "SCHEMA_NOT_FOUND",
        lambda s, o, i: s.messages.publish(o, "work", "jobs", ONE, schemas=["nope"]),
    ),
    "an unknown filter": (INVALID, lambda s, o, i: s.messages.list_page(o, "work", moon="full")),
    "a cursor that is none": (INVALID, lambda s, o, i: s.messages.list_page(o, "work", cursor="nope")),
    "a subscriber where consumers compete": (
        INVALID,
        lambda s, o, i: s.messages.peek(o, "work", "jobs", subscription="me"),
    ),
    "nobody's copy of a broadcast": (INVALID, lambda s, o, i: s.messages.peek(o, "work", "news")),
    "a subscriber that is none": (
        "SUBSCRIPTION_NOT_FOUND",
        lambda s, o, i: s.messages.peek(o, "work", "news", subscription="nobody"),
    ),
    "a claim from nowhere": (INVALID, lambda s, o, i: s.claims.claim(o, [])),
    "an endless wait": (INVALID, lambda s, o, i: s.claims.claim(o, [("work", "jobs")], wait_s=61)),
    "an unknown filter of the audit": (INVALID, lambda s, o, i: s.audit.list_page(o, "work", moon="full")),
    "an unknown change of a scope": (INVALID, lambda s, o, i: s.scopes.set_state(o, "work", "dance")),
    "an unknown change of a queue": (INVALID, lambda s, o, i: s.queues.set_state(o, "work", "jobs", "dance")),
    "an unknown principal": (
        INVALID,
        lambda s, o, i: s.lists.add(o, "work", principal_type="x", principal_id="x", permissions=["view"]),
    ),
    "an entry without permissions": (
        INVALID,
        lambda s, o, i: s.lists.add(o, "work", principal_type="user", principal_id="x", permissions=[]),
    ),
    "an entry with an unknown permission": (
        INVALID,
        lambda s, o, i: s.lists.add(o, "work", principal_type="user", principal_id="x", permissions=["x"]),
    ),
    "trust in nothing": ("SCOPE_NOT_FOUND", lambda s, o, i: s.trusts.create(o, "work", "nowhere", ["route"])),
    "trust in itself": (INVALID, lambda s, o, i: s.trusts.create(o, "work", "work", ["route"])),
    "trust for nothing": (INVALID, lambda s, o, i: s.trusts.create(o, "work", "default", [])),
    "trust for the unknown": (INVALID, lambda s, o, i: s.trusts.create(o, "work", "default", ["dance"])),
    "a built-in role": (INVALID, lambda s, o, i: s.roles.create(o, "tenant_admin", ["view"])),
    "a role with an unknown permission": (INVALID, lambda s, o, i: s.roles.create(o, "r", ["dance"])),
    "a role that is not there": ("ROLE_NOT_FOUND", lambda s, o, i: s.roles.delete(o, "nope")),
    "a key that ended before it began": (
        INVALID,
        lambda s, o, i: s.keys.create(o, KeyDraft(name="k", permissions=["view"], expires_at=1)),
    ),
    "a grace of years": (INVALID, lambda s, o, i: s.keys.rotate(o, i["key"], grace_s=10**9)),
    "a rate that is none": (INVALID, lambda s, o, i: s.tenants.set_rates(o, "default", {"moon": 1})),
    "rates of no tenant": ("TENANT_NOT_FOUND", lambda s, o, i: s.tenants.set_rates(o, "nope", {"key": 1})),
    "rules tried on two things": (
        INVALID,
        lambda s, o, i: s.rules.test(o, "work", message_id="x", last=1),
    ),
    "rules tried at no moment": (INVALID, lambda s, o, i: s.rules.test(o, "work", last=1, trigger="never")),
    "an erasure in no mode": (
        INVALID,
        lambda s, o, i: s.erasures.create(o, "work", Subject(field="sender_id", value="x"), mode="burn"),
    ),
    "a webhook in no status": (
        INVALID,
        lambda s, o, i: s.webhooks.create(o, WebhookDraft(url=URL, status="x")),
    ),
    "a webhook with a short secret": (
        INVALID,
        lambda s, o, i: s.webhooks.create(o, WebhookDraft(url=URL, secret="x")),
    ),
    "a webhook that nobody lets out": (
        "WEBHOOK_ADDRESS",
        lambda s, o, i: Services(s._context.room).webhooks.create(o, WebhookDraft(url=URL)),
    ),
    "deliveries in no status": (
        INVALID,
        lambda s, o, i: s.webhooks.list_deliveries(o, i["hook"], status="x"),
    ),
    "what is no command": (INVALID, lambda s, o, i: s.units.apply(o, ["dance"])),  # type: ignore[list-item]
}


@pytest.fixture
async def stocked(served: ServedRoom) -> ServedRoom:
    """With a broadcast queue, and webhooks that may lead anywhere."""
    await served.room.create_queue("work/news", consumer_mode="broadcast")
    return ServedRoom(served.room, Services(served.room, check_address=lambda url: None), served.clock)


@pytest.mark.parametrize("name", REFUSED)
async def test_it_is_refused_with_its_code_and_changes_nothing(stocked: ServedRoom, name: str) -> None:
    services, owner = stocked.services, stocked.owner
    code, ask = REFUSED[name]
    key = await services.keys.create(owner, KeyDraft(name="k", permissions=["view"]))
    hook = await services.webhooks.create(owner, WebhookDraft(url=URL))
    ids = {"key": key.key.id, "hook": hook.id}
    head = await stocked.room.head()
    with pytest.raises(PostroomError) as caught:
        await ask(services, owner.with_request("req-1"), ids)
    assert caught.value.code == code, str(caught.value)
    assert await stocked.room.head() == head


async def test_what_is_about_everything_is_for_the_owner(served: ServedRoom) -> None:
    admin = await served.key(role="tenant_admin")
    for ask in (
        served.services.messages.list_page(admin),
        served.services.audit.list_page(admin),
        served.services.housekeepers.run(admin, "visibility"),
        served.services.units.apply(admin, [c.CreateScope(slug="mine")]),
    ):
        with pytest.raises(OwnerOnly):
            await ask
    assert (await served.services.messages.list_page(served.owner)).items == []
    assert (await served.services.audit.list_page(served.owner)).entries == []


async def test_a_unit_of_commands_is_whole_or_nothing(served: ServedRoom) -> None:
    made, again = c.CreateScope(slug="made"), c.CreateScope(slug="work")
    with pytest.raises(PostroomError):
        await served.services.units.apply(served.owner, [made, again])
    with pytest.raises(NotFound):
        await served.room.scope("made")
    [scope] = await served.services.units.apply(served.owner, [made])
    assert scope.slug == "made"


async def test_a_list_that_names_a_caller_for_less_refuses_the_rest_openly(served: ServedRoom) -> None:
    """Who may look is told why it may not do more."""
    services = served.services
    message = await served.room.publish("work/jobs", 1)
    stream = await services.streams.open(served.owner, "work", queue="jobs")
    await close_queue(served, "work/jobs", ("user", "bob"), Permission.VIEW)
    bob = await served.key(*Permission, user_id="bob")
    assert (await services.messages.read(bob, message.id)).message.id == message.id
    for ask in (
        services.messages.cancel(bob, message.id),
        services.messages.publish(bob, "work", "jobs", ONE),
        services.claims.claim(bob, [("work", "jobs")]),
        services.streams.append(bob, "work", stream.stream.id, [(0, b"x")]),
        services.rules.create(
            bob, "work", {"name": "r", "source_queue_id": "jobs", "action": {"type": "archive"}}
        ),
    ):
        with pytest.raises(AclDenied):
            await ask
    await services.streams.abort(served.owner, "work", stream.stream.id, reason="enough")
    assert (await services.streams.read(bob, "work", stream.stream.id)).of.state == "aborted"


async def test_the_archive_of_a_deleted_scope_is_the_owners(served: ServedRoom) -> None:
    services = served.services
    await served.room.create_scope("old")
    await served.room.create_queue("old/jobs")
    message = await served.room.publish("old/jobs", "kept")
    await served.room.complete((await served.room.claim("old/jobs"))[0])
    key = await served.key(*Permission)
    await services.queues.delete(served.owner, "old", "jobs")
    await services.scopes.delete(served.owner, "old")
    assert (await services.messages.read(served.owner, message.id)).message.body == "kept"
    story = await services.messages.explain(served.owner, message.id)
    assert (story.queue, story.message.id) == (None, message.id)
    with pytest.raises(NotFound):
        await services.messages.read(key, message.id)
    with pytest.raises(NotFound):
        await services.messages.read(served.owner, message.id, scope="work")


async def test_trust_is_switched_and_ends(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    await served.room.create_scope("mill")
    made = await services.trusts.create(owner, "work", "mill", ["route", "publish"])
    assert [each.enabled for each in await services.trusts.list_all(owner, "work")] == [True]
    assert not (await services.trusts.switch(owner, "work", made.id, False)).enabled
    await services.trusts.delete(owner, "work", made.id)
    assert await services.trusts.list_all(owner, "work") == []
    with pytest.raises(NotFound):
        await services.trusts.switch(owner, "work", made.id, True)


async def test_a_role_gives_and_takes_at_once(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    await services.roles.create(owner, "readers", ["view"])
    secret = (await services.keys.create(owner, KeyDraft(name="k", role="readers"))).secret
    holder = await services.authentication.find_holder(secret)
    assert holder is not None
    assert holder.permissions == {Permission.VIEW}
    assert [role.name for role in await services.roles.list_all(owner)] == ["readers"]
    await services.roles.delete(owner, "readers")
    assert (await services.authentication.require_holder(secret)).permissions == frozenset()
    for wrong in ("", "nonsense", secret[:-1] + "?"):
        assert await services.authentication.find_holder(wrong) is None


async def test_a_key_that_has_ended_is_not_rotated_nor_found_elsewhere(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    made = await services.keys.create(owner, KeyDraft(name="k", permissions=["view"]), scope="work")
    with pytest.raises(NotFound):
        await services.keys.revoke(owner, made.key.id, scope="default")
    assert [each.key.id for each in await services.keys.list_all(owner, scope="work")] == [made.key.id]
    await services.keys.revoke(owner, made.key.id, scope="work")
    with pytest.raises(NotFound):
        await services.keys.rotate(owner, made.key.id)


@pytest.mark.parametrize(
    "request_", [("moon", "rise"), ("queues", "_counted"), ("queues", "CREATE"), ("public_ids", "x")]
)
async def test_only_public_methods_of_services_can_be_asked_for(
    served: ServedRoom, request_: tuple[str, str]
) -> None:
    with pytest.raises(UnknownMethod):
        served.services.find_method(ServiceRequest(*request_))


async def test_requests_of_long_ago_are_not_remembered(served: ServedRoom) -> None:
    meter = RateMeter(served.clock)
    for number in range(10_002):
        meter.spend([("key", str(number), 5)])
    served.clock.advance(WINDOW)
    assert meter.spend([("key", "new", 5)]).remaining == 4
    assert len(meter._seen) == 1


async def test_messages_are_listed_past_what_is_closed(served: ServedRoom) -> None:
    """A page is full although most of what was found in the store is not for the caller."""
    for number in range(9):
        await served.room.publish("work/jobs", number)
    await served.room.publish("work/open", "seen")
    await close_queue(served, "work/jobs", ("user", "bob"), Permission.VIEW)
    holder = await served.key(*Permission)
    page = await served.services.messages.list_page(holder, "work", limit=1)
    assert ([each.message.body for each in page.items], page.more) == (["seen"], False)
    assert callers.agent("x").scope == "default"
