"""What access lists say: open without entries, closed to others with one, also when it has expired."""

from postroom.kernel.access.acl import AccessVerdict, AclEntry, Principal, judge
from postroom.kernel.access.permissions import Permission
from postroom.kernel.access.trust import Trust, trusted

ANN = frozenset({("user", "ann"), ("role", "clerk")})


def entry(kind: Principal, name: str, *permissions: Permission, expires_at: int | None = None) -> AclEntry:
    return AclEntry(
        id="e", principal_type=kind, principal_id=name, permissions=permissions, expires_at=expires_at
    )


def test_without_entries_a_place_is_open() -> None:
    assert judge([], ANN, Permission.MANAGE, 0) is AccessVerdict.ALLOWED


def test_an_entry_hides_the_place_from_all_others() -> None:
    bobs = [entry(Principal.USER, "bob", Permission.VIEW)]
    assert judge(bobs, ANN, Permission.VIEW, 0) is AccessVerdict.HIDDEN


def test_an_entry_gives_what_it_names_and_no_more() -> None:
    mine = [entry(Principal.ROLE, "clerk", Permission.VIEW)]
    assert judge(mine, ANN, Permission.VIEW, 0) is AccessVerdict.ALLOWED
    assert judge(mine, ANN, Permission.PUBLISH, 0) is AccessVerdict.REFUSED
    both = [*mine, entry(Principal.USER, "ann", Permission.PUBLISH)]
    assert judge(both, ANN, Permission.PUBLISH, 0) is AccessVerdict.ALLOWED


def test_an_expired_entry_names_nobody_but_keeps_the_place_closed() -> None:
    old = [entry(Principal.USER, "ann", Permission.VIEW, expires_at=10)]
    assert judge(old, ANN, Permission.VIEW, 9) is AccessVerdict.ALLOWED
    assert judge(old, ANN, Permission.VIEW, 10) is AccessVerdict.HIDDEN


def test_a_user_and_a_key_of_the_same_name_are_two() -> None:
    keys = [entry(Principal.API_KEY, "ann", Permission.VIEW)]
    assert judge(keys, ANN, Permission.VIEW, 0) is AccessVerdict.HIDDEN


def test_trust_has_a_direction_and_a_kind() -> None:
    trusts = [Trust(id="t", source_id=1, target_id=2, permissions=("route",))]
    assert trusted(trusts, 1, 2, "route")
    assert not trusted(trusts, 2, 1, "route")
    assert not trusted(trusts, 1, 2, "publish")
    assert trusted([], 3, 3, "publish"), "a scope needs no trust in itself"
    off = [Trust(id="t", source_id=1, target_id=2, permissions=("route",), enabled=False)]
    assert not trusted(off, 1, 2, "route")
