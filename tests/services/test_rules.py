"""Rules: as many as a scope may have, all of them tried, and none beyond the reach of its maker."""

from typing import Any

import pytest

from postroom.errors import InvalidField, MessageNotFound
from postroom.kernel.access import acl
from postroom.kernel.rules import rule
from postroom.kernel.rules.rule import MOST_RULES
from postroom.services.callers import Caller
from postroom.services.errors import AclDenied, NoSuchThing, TrustRequired
from tests.services.conftest import ServedRoom
from tests.services.lists import close_queue

NEVER: dict[str, Any] = {"expression": "false", "action": {"type": "archive"}}


async def add_rules(served: ServedRoom, count: int) -> None:
    for number in range(count):
        await served.services.rules.create(served.owner, "work", {"name": f"r{number}", **NEVER})


async def test_one_rule_too_many_is_refused(served: ServedRoom) -> None:
    await add_rules(served, MOST_RULES)
    with pytest.raises(InvalidField, match="one too many"):
        await served.services.rules.create(served.owner, "work", {"name": "last", **NEVER})
    first = (await served.services.rules.list_all(served.owner, "work"))[0].rule
    await served.services.rules.update(served.owner, "work", first.id, {"name": "changed"})
    await served.services.rules.delete(served.owner, "work", first.id)
    await served.services.rules.create(served.owner, "work", {"name": "fits again", **NEVER})


async def test_more_rules_than_may_be_made_are_all_tried(
    served: ServedRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A room of before may have them: none may be skipped without a word."""
    with monkeypatch.context() as before:
        before.setattr(rule, "MOST_RULES", 10_000)
        await add_rules(served, MOST_RULES)
        last = {"name": "last", "priority": 900, "action": {"type": "route", "target_queue_id": "open"}}
        await served.services.rules.create(served.owner, "work", last)
    await served.room.publish("work/jobs", 1)
    assert (await served.room.counts("work/open")).pending == 1


async def test_a_rule_leads_only_where_the_scope_is_trusted(served: ServedRoom) -> None:
    await served.room.create_scope("other")
    await served.room.create_queue("other/target")
    document = {"name": "r", "action": {"type": "route", "target_queue_id": "other/target"}}
    with pytest.raises(TrustRequired):
        await served.services.rules.create(served.owner, "work", document)


async def test_a_rule_that_is_not_there_is_named(served: ServedRoom) -> None:
    for method in (served.services.rules.read, served.services.rules.delete, served.services.rules.reset):
        with pytest.raises(NoSuchThing) as refused:
            await method(served.owner, "work", "nope")
        assert refused.value.code == "RULE_NOT_FOUND"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": 7}, "name"),
        ({"priority": "high"}, "priority"),
        ({"trigger": "never"}, "trigger"),
        ({"conditions": [{"field": "x"}]}, "conditions"),
        ({"action": {"type": "route"}}, "action.target_queue_id"),
        ({"action": {"type": "route", "target_queue_id": 7}}, "action.target_queue_id"),
        ({"source_queue_id": "nowhere"}, "source_queue_id"),
        ({"expression": "body.x =="}, "expression"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_change_that_makes_no_sense_names_the_field_and_changes_nothing(
    served: ServedRoom, changes: dict[str, Any], field: str
) -> None:
    made = await served.services.rules.create(served.owner, "work", {"name": "r", **NEVER})
    with pytest.raises(InvalidField) as refused:
        await served.services.rules.update(served.owner, "work", made.rule.id, changes)
    assert refused.value.data["field"].startswith(field)
    assert (await served.services.rules.read(served.owner, "work", made.rule.id)).rule == made.rule


# the reach of a rule is that of its maker


@pytest.fixture
async def manager(served: ServedRoom) -> Caller:
    """Somebody who manages the scope, but may not know of the queue `jobs`, which is bob's."""
    await close_queue(served, "work/jobs", ("user", "bob"), *acl.Permission)
    return await served.key("manage", "view", "publish")


@pytest.mark.parametrize(
    "action",
    [
        {"type": "fan_out", "target_queue_ids": ["open"], "keep": True},
        {"type": "route", "target_queue_id": "open"},
        {"type": "transform", "set_labels": {"seen": "{{body.salary}}"}},
        {"type": "archive"},
        {"type": "ask_human", "spec": {"sections": [{"type": "decision", "options": ["a", "b"]}]}},
    ],
    ids=lambda action: action["type"],
)
async def test_a_rule_does_nothing_in_a_queue_that_is_closed_to_its_maker(
    served: ServedRoom, manager: Caller, action: dict[str, Any]
) -> None:
    await served.services.rules.create(manager, "work", {"name": "r", "action": action})
    secret = await served.room.publish("work/jobs", {"salary": 7})
    found = await served.room.get(secret.id)
    assert (found.queue, found.state, found.labels, found.hitl_spec) == ("jobs", "pending", {}, None)
    assert (await served.room.counts("work/open")).open == 0
    plain = await served.room.publish("work/open", {"salary": 8})
    changed = await served.room.get(plain.id)
    open_rule = (changed.state, changed.labels, changed.hitl_spec) != ("pending", {}, None)
    assert open_rule or action["type"] in ("route", "fan_out"), "where its maker may, it acts"


async def test_a_queue_that_is_closed_later_is_closed_to_rules_too(served: ServedRoom) -> None:
    manager = await served.key("manage", "view", "publish")
    action = {"type": "route", "target_queue_id": "open"}
    await served.services.rules.create(manager, "work", {"name": "r", "action": action})
    await served.room.publish("work/jobs", 1)
    assert (await served.room.counts("work/open")).pending == 1
    await close_queue(served, "work/jobs", ("user", "bob"), *acl.Permission)
    await served.room.publish("work/jobs", 2)
    assert (await served.room.counts("work/open")).pending == 1


async def test_a_rule_leads_only_to_where_its_maker_may_publish(served: ServedRoom) -> None:
    await close_queue(served, "work/open", ("user", "ann"), acl.Permission.VIEW)
    ann = await served.key("manage", "view", "publish", user_id="ann")
    document = {"name": "r", "action": {"type": "route", "target_queue_id": "open"}}
    with pytest.raises(AclDenied):
        await served.services.rules.create(ann, "work", document)
    await served.services.rules.create(served.owner, "work", document)
    await served.room.publish("work/jobs", 1)
    assert (await served.room.counts("work/open")).pending == 1, "the owner may"


async def test_whoever_changes_a_rule_answers_for_it(served: ServedRoom, manager: Caller) -> None:
    made = await served.services.rules.create(
        served.owner, "work", {"name": "r", "action": {"type": "archive"}}
    )
    assert made.rule.acts_as is None
    changed = await served.services.rules.update(manager, "work", made.rule.id, {"name": "mine"})
    assert changed.rule.acts_as is not None
    secret = await served.room.publish("work/jobs", 1)
    assert (await served.room.get(secret.id)).state == "pending"


async def test_a_rule_is_not_tried_on_what_its_maker_does_not_see(
    served: ServedRoom, manager: Caller
) -> None:
    secret = await served.room.publish("work/jobs", {"salary": 7})
    await served.room.publish("work/open", {"salary": 8})
    rule = {"name": "r", "expression": "body.salary > 6", "action": {"type": "archive"}}
    with pytest.raises(MessageNotFound):
        await served.services.rules.test(manager, "work", document=rule, message_id=secret.id)
    seen = await served.services.rules.test(manager, "work", document=rule, last=10)
    assert [each.queue for each in seen.results] == ["open"]
