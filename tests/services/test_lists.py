"""Access lists, and names: whoever is let in sees and does what the list says, under either kind of name."""

import uuid

import pytest

from postroom.clock import SECOND
from postroom.errors import InvalidField, PostroomError, QueueNotFound, ScopeNotFound
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import NewMessage
from postroom.services.container import Services
from postroom.services.errors import AclDenied, NoSuchThing, PermissionMissing, TrustRequired
from tests.services.conftest import ServedRoom
from tests.services.lists import close_queue


async def test_an_entry_lets_in_until_it_ends_and_the_last_one_opens_the_place(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    holder = await served.key("view", user_id="ann")
    until = served.clock.now() + 60 * SECOND
    entry = await services.lists.add(
        owner,
        "work",
        "jobs",
        principal_type="user",
        principal_id="ann",
        permissions=["view"],
        expires_at=until,
    )
    stays = await services.lists.add(
        owner, "work", "jobs", principal_type="user", principal_id="bob", permissions=["view"]
    )
    listed = await services.lists.list_all(owner, "work", "jobs")
    assert {each.id for each in listed} == {entry.id, stays.id}
    assert (await services.queues.read(holder, "work", "jobs")).queue.slug == "jobs"
    served.clock.advance(60 * SECOND)
    with pytest.raises(QueueNotFound):
        await services.queues.read(holder, "work", "jobs")
    for each in (entry, stays):
        await services.lists.remove(owner, "work", each.id, "jobs")
    assert (await services.queues.read(holder, "work", "jobs")).queue.slug == "jobs"
    with pytest.raises(NoSuchThing):
        await services.lists.remove(owner, "work", entry.id, "jobs")


async def test_an_entry_of_the_past_and_one_beyond_its_maker_are_refused(served: ServedRoom) -> None:
    services = served.services
    manager = await served.key("manage", "view")
    with pytest.raises(InvalidField, match="expires_at"):
        await services.lists.add(
            manager, "work", principal_type="user", principal_id="x", permissions=["view"], expires_at=1
        )
    with pytest.raises(PermissionMissing, match="consume"):
        await services.lists.add(
            manager, "work", principal_type="user", principal_id="x", permissions=["view", "consume"]
        )
    assert await services.lists.list_all(served.owner, "work") == []


async def test_a_grant_closes_the_scope_and_a_queue_may_open_it_for_one(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    await services.lists.add(owner, "work", principal_type="user", principal_id="ann", permissions=["view"])
    await services.lists.add(
        owner, "work", "jobs", principal_type="user", principal_id="bob", permissions=["view"]
    )
    bob, carl = await served.key("view", user_id="bob"), await served.key("view", user_id="carl")
    work, elsewhere = await served.room.scope("work"), await served.room.scope("default")
    inside = await served.key("view", scope_id=work.id, user_id="bob")
    for caller in (bob, inside):
        assert (await services.queues.read(caller, "work", "jobs")).queue.slug == "jobs"
        seen = [each.queue.path for each in await services.queues.list_all(caller)]
        assert [path for path in seen if path.startswith("work/")] == ["work/jobs"]
        with pytest.raises(AclDenied):
            await services.queues.list_all(caller, "work")
    bound = await served.key("view", scope_id=elsewhere.id, user_id="bob")
    for caller in (carl, bound):
        with pytest.raises(ScopeNotFound):
            await services.queues.read(caller, "work", "jobs")


async def test_everything_has_an_id_that_works_as_its_name_does(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    message = await served.room.publish("work/jobs", 1)
    scope, queue = await served.room.scope("work"), await served.room.queue("work/jobs")
    for name in (str(uuid.uuid4()), "x" * 36):
        with pytest.raises(ScopeNotFound):
            await services.queues.list_all(owner, name)
    ids = await services.public_ids()
    assert await services.public_ids() is ids
    scope_id, queue_id = ids.scope(scope.id), ids.queue(queue.id)
    assert (await services.queues.read(owner, scope_id, queue_id)).queue.path == "work/jobs"
    page = await services.messages.list_page(owner, scope_id, queue_id)
    assert [each.message.id for each in page.items] == [message.id]
    for names, error in (
        ((str(uuid.uuid4()), queue_id), ScopeNotFound),
        ((scope_id, scope_id), QueueNotFound),
    ):
        with pytest.raises(error):
            await services.queues.read(owner, *names)
    again = await Services(served.room).public_ids()
    assert again.scope(scope.id) == scope_id, "they are the store's, not the process's"


async def test_a_rule_leads_to_a_queue_by_its_id_if_its_maker_may_know_of_it(served: ServedRoom) -> None:
    services = served.services
    await served.room.create_scope("mill")
    await served.room.create_queue("mill/grain")
    ids = await services.public_ids()
    here = ids.queue((await served.room.queue("work/open")).id)
    there = ids.queue((await served.room.queue("mill/grain")).id)
    scope = await served.room.scope("work")
    bound = await served.key("manage", "view", "publish", scope_id=scope.id)
    for caller in (served.owner, bound):
        document = {"name": "r", "action": {"type": "route", "target_queue_id": here}}
        assert (await services.rules.create(caller, "work", document)).rule.action.target is not None
    other = {"name": "r", "action": {"type": "route", "target_queue_id": there}}
    with pytest.raises(TrustRequired):
        await services.rules.create(served.owner, "work", other)
    for target in (there, "mill/grain", "nowhere/grain"):
        with pytest.raises(InvalidField, match="there is no queue"):
            await services.rules.create(
                bound, "work", {"name": "r", "action": {"type": "route", "target_queue_id": target}}
            )
    with pytest.raises(InvalidField, match="there is no queue"):
        await services.rules.create(
            served.owner,
            "work",
            {"name": "r", "action": {"type": "route", "target_queue_id": "nowhere/grain"}},
        )


async def test_trust_cannot_be_asked_of_a_scope_one_may_not_know_of(served: ServedRoom) -> None:
    services = served.services
    await served.room.create_scope("secret")
    await services.lists.add(
        served.owner, "secret", principal_type="user", principal_id="ann", permissions=["view"]
    )
    manager = await served.key("manage", "view")
    with pytest.raises(ScopeNotFound):
        await services.trusts.create(manager, "work", "secret", ["route"])


async def test_a_queue_of_events_tells_only_those_who_see_everything(served: ServedRoom) -> None:
    """Of a scope that has none yet, nothing is hidden but what is closed."""
    services = served.services
    holder = await served.key("view")
    await close_queue(served, "work/jobs", ("user", "bob"), Permission.VIEW)
    seen = {each.queue.slug for each in await services.queues.list_all(holder, "work")}
    assert "open" in seen
    assert not seen & {"jobs", "_events", "_integrity"}


async def test_a_page_goes_on_past_dead_letters_of_closed_queues(served: ServedRoom) -> None:
    """What died in a closed queue lies in one that is open, and is left out of the page all the same."""
    services, room = served.services, served.room
    for number in range(5):
        await room.publish("work/jobs", number)
        [claimed] = await room.claim("work/jobs")
        await room.fail(claimed, "no", retry=False)
    await room.publish("work/open", "seen")
    await close_queue(served, "work/jobs", ("user", "bob"), Permission.VIEW)
    holder = await served.key("view")
    page = await services.messages.list_page(holder, "work", limit=1)
    assert [each.message.body for each in page.items] == ["seen"]


async def test_a_rule_whose_queue_is_gone_says_so_when_it_is_changed(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    document = {"name": "r", "action": {"type": "route", "target_queue_id": "open"}}
    made = await services.rules.create(owner, "work", document)
    await services.queues.delete(owner, "work", "open")
    with pytest.raises(PostroomError) as refused:
        await services.rules.update(owner, "work", made.rule.id, {"name": "changed"})
    assert refused.value.code in ("QUEUE_NOT_FOUND", "VALIDATION_ERROR")
    shown = await services.rules.read(owner, "work", made.rule.id)
    assert shown.queues[made.rule.action.target or 0] == "work/open"


async def test_a_rule_is_tried_on_a_message_that_nobody_published(served: ServedRoom) -> None:
    services, owner = served.services, served.owner
    document = {
        "name": "big",
        "expression": "body.n > 5",
        "action": {"type": "route", "target_queue_id": "open"},
    }
    made = await services.rules.create(owner, "work", document)
    for n, matched in ((9, True), (1, False)):
        tried = await services.rules.test(
            owner, "work", rule_id=made.rule.id, message=NewMessage(body={"n": n}), queue="jobs"
        )
        [one] = tried.results
        assert (one.message_id, one.queue) == (None, "jobs")
        assert [look.matched for look in one.looks] == [matched]
    there = await served.room.publish("work/jobs", {"n": 1})
    tried = await services.rules.test(owner, "work", message_id=there.id)
    assert [each.message_id for each in tried.results] == [there.id]
    assert (await served.room.counts("work/open")).open == 0, "nothing happened"
