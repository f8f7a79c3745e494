"""Keys: nobody gives or takes more than they have, and what a key opens ends when it should."""

from typing import Any

import pytest

from postroom.clock import SECOND
from postroom.errors import PostroomError
from postroom.kernel import service_commands
from postroom.kernel.access import keys
from postroom.kernel.access.permissions import Permission
from postroom.services import rights
from postroom.services.callers import Caller
from postroom.services.errors import PermissionMissing, RequestLimitReached, TokenExpired, TokenInvalid
from postroom.services.keys import GRACE_S, IssuedKey, KeyDraft
from tests.services.conftest import ServedRoom
from tests.services.lists import close_queue


async def issue(served: ServedRoom, caller: Caller, **draft: Any) -> IssuedKey:
    return await served.services.keys.create(caller, KeyDraft(name="made", **draft))


async def test_a_rotated_key_has_two_secrets_for_a_while(served: ServedRoom) -> None:
    services, find = served.services, served.services.authentication.find_holder
    first = await issue(served, served.owner, permissions=["view"])
    second = await services.keys.rotate(served.owner, first.key.id)
    assert second.secret != first.secret
    assert second.old_secret_until == served.clock.now() + int(GRACE_S * SECOND)
    for secret in (first.secret, second.secret):
        holder = await find(secret)
        assert holder is not None
        assert holder.id == first.key.id
    served.clock.advance(int(GRACE_S * SECOND))
    assert await find(first.secret) is None
    assert await find(second.secret) is not None


async def test_why_a_secret_opens_nothing_is_told(served: ServedRoom) -> None:
    services = served.services
    short = await issue(served, served.owner, permissions=["view"], expires_at=served.clock.now() + SECOND)
    revoked = await issue(served, served.owner, permissions=["view"])
    await services.keys.revoke(served.owner, revoked.key.id)
    served.clock.advance(SECOND)
    for secret, error in ((short.secret, TokenExpired), (revoked.secret, TokenInvalid)):
        with pytest.raises(error):
            await services.authentication.require_holder(secret)
        assert await services.authentication.find_holder(secret) is None


async def test_a_secret_whose_key_is_gone_opens_nothing(served: ServedRoom) -> None:
    made = await issue(served, served.owner, permissions=["view"])
    await served.room.run(service_commands.DropServiceDocument(kind=keys.KIND, key=made.key.id))
    with pytest.raises(TokenInvalid):
        await served.services.authentication.require_holder(made.secret)


async def test_keys_that_nobody_uses_any_more_are_forgotten(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tries secrets by the million does not fill the memory, and those that are good go on."""
    monkeypatch.setattr(rights, "MOST_KEYS", 3)
    made = await issue(served, served.owner, permissions=["view"])
    find = served.services.authentication.find_holder
    for number in range(10):
        assert await find(f"{keys.PREFIX}{number}") is None
        assert await find(made.secret) is not None
    remembered = served.services._context.rights._current._keys
    assert len(remembered) <= 3


@pytest.mark.parametrize(
    ("draft", "lacks"),
    [
        ({"permissions": ["consume"]}, "consume"),
        ({"permissions": ["view"], "user_id": "bob"}, "user bob"),
        ({"permissions": ["view"], "groups": ["board"]}, "group board"),
        ({"role": "readers"}, "role readers"),
        ({"role": "tenant_admin"}, "role tenant_admin"),
        ({"role": "super_admin"}, "role super_admin"),
        ({"role": "partner_admin"}, "role partner_admin"),
    ],
)
async def test_nobody_gives_a_key_what_they_do_not_have(
    served: ServedRoom, draft: dict[str, Any], lacks: str
) -> None:
    await served.services.roles.create(served.owner, "readers", ["view"])
    manager = await served.key("manage", "view", "publish", user_id="ann")
    before = len(await served.services.keys.list_all(served.owner))
    with pytest.raises(PermissionMissing, match=lacks):
        await issue(served, manager, **draft)
    assert len(await served.services.keys.list_all(served.owner)) == before
    made = await issue(served, manager, permissions=["view", "publish"], user_id="ann")
    assert made.key.user_id == "ann"


async def test_an_administrator_gives_all_but_what_is_above(served: ServedRoom) -> None:
    admin = await served.key(role="tenant_admin")
    made = await issue(served, admin, permissions=["consume"], user_id="bob", partner="ours")
    assert (made.key.user_id, made.key.partner) == ("bob", None), "of partners, the owner decides"
    assert (await issue(served, admin, role="tenant_admin")).key.role == "tenant_admin"
    with pytest.raises(PermissionMissing):
        await issue(served, admin, role="super_admin")


async def test_nobody_takes_anothers_rights_by_rotating_their_key(served: ServedRoom) -> None:
    strong = await issue(served, served.owner, permissions=list(Permission))
    manager = await served.key("manage", "view")
    with pytest.raises(PermissionMissing):
        await served.services.keys.rotate(manager, strong.key.id)
    assert await served.services.authentication.find_holder(strong.secret) is not None
    own = await served.services.keys.rotate(manager, manager.id)
    assert own.key.id == manager.id, "everybody may change their own"


async def test_a_key_of_a_user_follows_what_the_user_may(served: ServedRoom) -> None:
    services = served.services
    made = await issue(served, served.owner, user_id="ann")
    require = services.authentication.require_holder
    assert (await require(made.secret)).permissions == frozenset()
    await services.roles.set_user_permissions(served.owner, "ann", ["view", "publish"])
    assert (await require(made.secret)).permissions == {Permission.VIEW, Permission.PUBLISH}
    await services.roles.set_user_permissions(served.owner, "ann", [])
    assert (await require(made.secret)).permissions == frozenset()


async def test_a_role_cannot_give_what_its_maker_has_not(served: ServedRoom) -> None:
    manager = await served.key("manage", "view")
    with pytest.raises(PermissionMissing):
        await served.services.roles.create(manager, "strong", ["view", "consume"])
    assert await served.services.roles.list_all(served.owner) == []


async def test_a_role_is_known_to_lists(served: ServedRoom) -> None:
    await close_queue(served, "work/jobs", ("role", "readers"), Permission.VIEW)
    await served.services.roles.create(served.owner, "readers", ["view"])
    made = await issue(served, served.owner, role="readers")
    holder = await served.services.authentication.require_holder(made.secret)
    other = await served.key("view")
    assert (await served.services.queues.read(holder, "work", "jobs")).queue.slug == "jobs"
    with pytest.raises(PostroomError) as hidden:
        await served.services.queues.read(other, "work", "jobs")
    assert hidden.value.code == "QUEUE_NOT_FOUND"


# for which tenant, and how often


async def test_who_may_act_for_another_tenant(served: ServedRoom) -> None:
    services, choose = served.services, served.services.authentication.choose_tenant
    await services.tenants.create(served.owner, "globex", display_name="Globex", partner="ours")
    await services.tenants.create(served.owner, "initech", partner="theirs")
    assert (await choose(served.owner, "globex")).tenant == "globex"
    assert (await choose(served.owner, None)).tenant == "default"
    partner = await served.key(role="partner_admin", partner="ours")
    assert (await choose(partner, "globex")).tenant == "globex"
    assert (await choose(partner, "default")).tenant == "default"
    plain = await served.key(*Permission)
    for caller, tenant in ((partner, "initech"), (partner, "nowhere"), (plain, "globex")):
        with pytest.raises(PostroomError) as refused:
            await choose(caller, tenant)
        assert refused.value.code == "TENANT_NOT_FOUND"


async def test_requests_count_for_user_and_partner_too(served: ServedRoom) -> None:
    """Two keys of one user share what the user has; a minute later all of it is there again."""
    services = served.services
    await services.tenants.create(served.owner, "globex", partner="ours")
    await services.tenants.set_rates(served.owner, "globex", {"key": 100, "user": 3})
    admit = services.authentication.admit
    one = await served.key("view", tenant="globex", user_id="ann", partner="ours")
    two = await served.key("view", tenant="globex", user_id="ann", partner="ours")
    standing = [await admit(one), await admit(two), await admit(one)]
    assert [each.remaining for each in standing if each] == [2, 1, 0]
    with pytest.raises(RequestLimitReached):
        await admit(two)
    served.clock.advance(61 * SECOND)
    again = await admit(two)
    assert again is not None
    assert (again.limit, again.remaining) == (3, 2)
    assert await admit(served.owner) is None, "the owner is not counted"


async def test_the_rates_of_the_tenant_one_acts_for_hold(served: ServedRoom) -> None:
    services = served.services
    await services.tenants.create(served.owner, "globex", partner="ours")
    await services.tenants.set_rates(served.owner, "globex", {"tenant": 1})
    partner = await served.key(role="partner_admin", partner="ours")
    acting = await services.authentication.choose_tenant(partner, "globex")
    standing = await services.authentication.admit(acting)
    assert standing is not None
    assert (standing.limit, standing.remaining) == (1, 0)
    with pytest.raises(RequestLimitReached):
        await services.authentication.admit(acting)
    assert await services.authentication.admit(partner) is not None
