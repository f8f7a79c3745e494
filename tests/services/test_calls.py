"""One call, one commit: the audit entry is in it, and what was refused leaves its entry alone."""

from typing import Any

import pytest

from postroom.errors import InvalidField, PostroomError, ScopeNotFound
from postroom.kernel import commands as c
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import NewMessage
from postroom.services.calls import Operation
from postroom.services.errors import KeyTooNarrow, OwnerOnly, PermissionMissing, RequestLimitReached
from postroom.services.keys import KeyDraft
from tests.services.conftest import ServedRoom

RULE: dict[str, Any] = {"name": "r", "action": {"type": "archive"}}


def count_commits(served: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The time of each durable commit."""
    store, commits = served.room._core.store, []
    plain = store.commit

    def commit(tx: Any) -> None:
        plain(tx)
        commits.append(tx.now)

    monkeypatch.setattr(store, "commit", commit)
    return commits


async def test_a_change_and_its_audit_entry_are_one_commit(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = count_commits(served, monkeypatch)
    made = await served.services.rules.create(served.owner.with_request("req-1"), "work", RULE)
    assert len(commits) == 1
    [entry] = await served.audit()
    assert (entry.id, entry.event_type, entry.status, entry.allowed) == ("req-1", "rule.create", 201, True)
    assert entry.scope_id == made.scope_id
    assert made.rule.id in entry.details


async def test_what_was_refused_leaves_its_entry_and_nothing_else(served: ServedRoom) -> None:
    head = await served.room.head()
    with pytest.raises(InvalidField):
        await served.services.rules.create(served.owner.with_request("req-1"), "work", {**RULE, "name": ""})
    [entry] = await served.audit()
    assert (entry.event_type, entry.status, entry.allowed) == ("rule.create", 422, True)
    assert await served.room.head() == head, "the ledger tells of changes, and there was none"
    assert await served.services.rules.list_all(served.owner, "work") == []


async def test_what_is_only_looked_at_is_kept_too(served: ServedRoom) -> None:
    await served.services.rules.list_all(served.owner.with_request("req-1"), "work")
    [entry] = await served.audit()
    assert (entry.event_type, entry.status) == ("rule.list", 200)


async def test_the_owner_at_the_shell_is_not_audited(served: ServedRoom) -> None:
    await served.services.rules.create(served.owner, "work", RULE)
    assert await served.audit() == []


async def test_an_entry_that_cannot_commit_takes_its_change_with_it(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = served.owner.with_request("req-1")
    await served.services.rules.create(caller, "work", RULE)
    with pytest.raises(PostroomError):  # the id of an entry is used once
        await served.services.rules.create(caller, "work", {**RULE, "name": "second"})
    assert [each.rule.name for each in await served.services.rules.list_all(served.owner, "work")] == ["r"]


@pytest.mark.parametrize("permissions", [("view",), ("view", "publish", "consume")])
async def test_a_right_is_asked_for_before_a_name_tells_anything(
    served: ServedRoom, permissions: tuple[str, ...]
) -> None:
    holder = (await served.key(*permissions)).with_request("req-1")
    for scope in ("work", "nowhere"):
        with pytest.raises(PermissionMissing):
            await served.services.rules.create(holder.with_request(f"req-{scope}"), scope, RULE)
    told = {entry.id: entry for entry in await served.audit(allowed=False)}
    assert told["req-work"].scope_id != 0, "the audit of the scope tells of refused calls"
    assert told["req-nowhere"].scope_id == 0


async def test_a_key_of_another_tenant_finds_nothing(served: ServedRoom) -> None:
    stranger = await served.key("manage", "view", tenant="globex")
    with pytest.raises(ScopeNotFound):
        await served.services.rules.list_all(stranger, "work")


async def test_what_is_for_the_owner_or_the_whole_tenant_says_so(served: ServedRoom) -> None:
    scope = await served.room.scope("work")
    bound = await served.key("manage", scope_id=scope.id)
    assert isinstance(Operation("x", Permission.MANAGE, owner=True).refusal(bound), OwnerOnly)
    assert isinstance(Operation("x", Permission.MANAGE, whole=True).refusal(bound), KeyTooNarrow)
    assert Operation("x", Permission.MANAGE, owner=True, whole=True).refusal(served.owner) is None


async def test_publish_claim_and_complete_are_one_commit_each(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, owner = served.services, served.owner
    commits = count_commits(served, monkeypatch)
    [made] = await services.messages.publish(
        owner.with_request("req-1"), "work", "jobs", [NewMessage(body={"n": 1})]
    )
    assert len(commits) == 1
    [taken] = await services.claims.claim(owner.with_request("req-2"), [("work", "jobs")])
    assert len(commits) == 2
    done = await services.claims.complete(
        owner.with_request("req-3"), taken.message.id, taken.message.claim_token, result=7
    )
    assert len(commits) == 3
    assert made.found.message.id == taken.message.id == done.message.id
    assert [entry.event_type for entry in await served.audit()] == [
        "message.publish",
        "message.claim",
        "message.complete",
    ]


async def test_an_entry_has_the_time_of_its_change(served: ServedRoom) -> None:
    """Also when the change waited for others before it: the trace tells both in the order they happened."""
    caller = served.owner.with_request("req-1")
    call = served.services.call(caller, Operation("x", Permission.PUBLISH))
    entry = call.entry()
    assert entry is not None
    served.clock.advance(5_000_000)
    command = c.Publish(queue="work/jobs", messages=[NewMessage(body=1)], audit=entry)
    await served.room.run(command)
    [kept] = await served.audit()
    assert kept.created_at == served.clock.now() > entry.created_at


async def test_a_rate_that_is_changed_holds_for_the_next_request(served: ServedRoom) -> None:
    authentication = served.services.authentication
    secret = (
        await served.services.keys.create(served.owner, KeyDraft(name="k", permissions=["view"]))
    ).secret
    standing = await authentication.admit(await authentication.require_holder(secret))
    assert standing is not None
    assert standing.limit == 60
    await served.services.tenants.set_rates(served.owner, "default", {"key": 2})
    holder = await authentication.require_holder(secret)
    standing = await authentication.admit(holder)
    assert standing is not None
    assert (standing.limit, standing.remaining) == (2, 0)
    with pytest.raises(RequestLimitReached):
        await authentication.admit(holder)
