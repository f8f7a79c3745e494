"""Routing rules of a scope: made, changed, tried out on messages before they act."""

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Response
from pydantic import Field

from postroom.api.queue import documents, views
from postroom.api.queue.access import AccessCheck, needs, seen_message, visible_page
from postroom.api.queue.bodies import NewMessageBody, RequestBody, Text
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.errors import TrustRequired
from postroom.api.queue.request_context import RequestContext, Visiting
from postroom.api.queue.routes.messages import new_message
from postroom.api.queue.service import new_id
from postroom.api.responses import Json
from postroom.errors import InvalidField, MessageNotFound
from postroom.kernel import checks, jsontext
from postroom.kernel.access import trust
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.model import Queue
from postroom.kernel.ports import MessageFilter, Reader
from postroom.kernel.rows import Content, Row, Stored
from postroom.kernel.rules import matching, parsing, rule
from postroom.kernel.rules.conditions import Condition
from postroom.kernel.rules.rule import ActionType, Rule, Trigger
from postroom.kernel.service_ports import MOST_RULES

PLACE = "/scopes/{scope_id}/routing-rules"
MOST_TRIED = 1000


class ConditionBody(RequestBody):
    field: Text
    op: str
    value: Any = None


class ActionBody(RequestBody):
    type: ActionType
    target_queue_id: str | None = None
    target_queue_ids: list[str] | None = None
    keep: bool = False
    set_labels: dict[str, Any] | None = None
    remove_labels: list[str] | None = None
    message_type: Text | None = None
    priority_tier: str | None = None
    priority_score: int | None = None
    raise_by: int | None = None
    body: Any = None
    pattern: Text | None = None
    version: str | None = None
    parameters: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None


class RuleBody(RequestBody):
    name: Text
    trigger: Trigger = Trigger.PUBLISHED
    action: ActionBody
    enabled: bool = True
    priority: int = 100
    source_queue_id: str | None = None
    conditions: list[ConditionBody] = Field(default_factory=list)
    match: Literal["all", "any"] = "all"
    expression: str | None = Field(
        default=None, description="CEL", examples=['labels.customer_tier == "premium" && body.total > 100']
    )


class RuleChanges(RequestBody):
    name: Text | None = None
    trigger: Trigger | None = None
    action: ActionBody | None = None
    enabled: bool | None = None
    priority: int | None = None
    source_queue_id: str | None = None
    conditions: list[ConditionBody] | None = None
    match: Literal["all", "any"] | None = None
    expression: str | None = None


class Trial(RequestBody):
    """One message, one that is there, or the last of a queue; against one rule or all that stand."""

    rule: RuleBody | None = None
    rule_id: str | None = None
    message: NewMessageBody | None = None
    message_id: str | None = None
    last: Annotated[int, Field(ge=1, le=MOST_TRIED)] | None = None
    queue_id: str | None = None
    trigger: Trigger = Trigger.PUBLISHED


def shown(visit: RequestContext, found: Rule) -> dict[str, Any]:
    def queue(number: int | None) -> str | None:
        return None if number is None else visit.opaque.queue(number)

    action: dict[str, Any] = msgspec.to_builtins(found.action)
    target, targets = action.pop("target", None), action.pop("targets", None)
    if target is not None:
        action["target_queue_id"] = queue(target)
    if targets:
        action["target_queue_ids"] = [queue(each) for each in targets]
    return {
        "id": found.id,
        "scope_id": visit.opaque.scope(visit.scope.id),
        "name": found.name,
        "enabled": found.enabled,
        "priority": found.priority,
        "source_queue_id": queue(found.source),
        "trigger": found.trigger,
        "conditions": [msgspec.to_builtins(each) for each in found.conditions],
        "match": found.match,
        "expression": found.expression,
        "action": action,
        "tripped_until": views.when(found.tripped_until),
        "tripped_why": found.tripped_why,
        "created_at": views.when(found.created_at),
        "updated_at": views.when(found.updated_at),
    }


def _finder(reader: Reader, visit: RequestContext) -> parsing.Find:
    """Queues of the scope by id or slug, and of others that it may route to by id or `scope/queue`."""
    key = visit.caller.key
    bound = key is not None and key.scope_id != 0

    guard = AccessCheck(reader, visit, visit.house.clock.now())
    scopes = {scope.id: scope for scope in reader.scopes(visit.tenant)}

    def seen(queue: Queue) -> bool:
        return guard.verdict(scopes[queue.scope_id], queue.id, Permission.VIEW) is not AccessVerdict.HIDDEN

    def find(name: str, field: str) -> int:
        for queue in reader.queues(visit.tenant, visit.scope.slug if bound else None):
            if name in (visit.opaque.queue(queue.id), queue.path) and seen(queue):
                _check_trust(reader, visit, queue)
                return queue.id
        for queue in reader.queues(visit.tenant, visit.scope.slug):
            if name == queue.slug and seen(queue):
                return queue.id
        raise InvalidField(field, f"there is no queue {name!r}")

    return find


async def _queue_number(visit: RequestContext, name: str | None, field: str) -> int | None:
    return None if name is None else await visit.house.ask(lambda reader: _finder(reader, visit)(name, field))


def _check_trust(reader: Reader, visit: RequestContext, queue: Queue) -> None:
    source = visit.scope
    if not trust.may_cross(reader, visit.tenant, source.id, queue.scope_id, "route"):
        raise TrustRequired(source=source.slug, target=queue.scope, crossing="route")


async def _new_rule(visit: RequestContext, body: RuleBody) -> Rule:
    document = body.model_dump(mode="json", exclude_none=True)
    now = visit.house.clock.now()
    return await visit.house.ask(
        lambda reader: parsing.drafted(document, _finder(reader, visit), rule_id=new_id(), now=now)
    )


async def _one(visit: RequestContext, rule_id: str) -> Rule:
    found = await documents.found(visit, rule.KIND, f"{visit.scope.id}/{rule_id}", "rule")
    return rule.read(found.data)


async def _save(visit: RequestContext, changed: Rule) -> None:
    note = {"id": changed.id, "name": changed.name}
    key = f"{visit.scope.id}/{changed.id}"
    await documents.file(visit, rule.KIND, key, rule.written(changed), note=note, scope=visit.scope.slug)
    visit.details = {"rule": changed.id}


def add(routes: APIRouter) -> None:
    @routes.post(PLACE, status_code=201, openapi_extra=needs("manage", "rule.create"))
    async def create_rule(visit: Visiting, scope_id: str, body: RuleBody) -> Json:
        """A rule that acts from now on. Rules are tried by `priority`, then age; the first match wins."""
        if len(await documents.listed(visit, rule.KIND, f"{visit.scope.id}/")) >= MOST_RULES:
            raise InvalidField("name", f"is one too many: a scope has at most {MOST_RULES} rules")
        made = await _new_rule(visit, body)
        await _save(visit, made)
        return one(shown(visit, made), status=201)

    @routes.get(PLACE, openapi_extra=needs("view", "rule.list"))
    async def list_rules(visit: Visiting, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """In the order in which they are tried."""
        found = rule.ordered(await documents.listed(visit, rule.KIND, f"{visit.scope.id}/"))
        return many(*cut([shown(visit, each) for each in found], cursor, limit))

    @routes.post(PLACE + "/test", openapi_extra=needs("manage", "rule.test"))
    async def test_rules(visit: Visiting, scope_id: str, body: Trial) -> Json:
        """What would happen, without anything happening."""
        return one(await _try(visit, body))

    @routes.get(PLACE + "/{rule_id}", openapi_extra=needs("view", "rule.read"))
    async def read_rule(visit: Visiting, scope_id: str, rule_id: str) -> Json:
        """One rule, and whether the circuit breaker has stopped it."""
        return one(shown(visit, await _one(visit, rule_id)))

    @routes.patch(PLACE + "/{rule_id}", openapi_extra=needs("manage", "rule.update"))
    async def update_rule(visit: Visiting, scope_id: str, rule_id: str, body: RuleChanges) -> Json:
        """Change any part of a rule; what is not named stays."""
        kept = await _one(visit, rule_id)
        given = body.model_dump(mode="json", exclude_unset=True)

        def look(reader: Reader) -> dict[str, Any]:
            find = _finder(reader, visit)
            changes = {
                name: given[name]
                for name in ("name", "enabled", "priority", "match", "expression")
                if name in given
            }
            if body.trigger is not None:
                changes["trigger"] = body.trigger
            if body.action is not None:
                changes["action"] = parsing.action(
                    body.action.model_dump(mode="json", exclude_none=True), find
                )
            if body.conditions is not None:
                changes["conditions"] = tuple(
                    Condition(each.field, each.op, each.value) for each in body.conditions
                )
            if "source_queue_id" in given:
                name = given["source_queue_id"]
                changes["source"] = None if name is None else find(name, "source_queue_id")
            return changes

        changes = await visit.house.ask(look)
        now = visit.house.clock.now()
        changed = msgspec.structs.replace(kept, updated_at=now, **changes)
        await _save(visit, changed)
        return one(shown(visit, changed))

    @routes.post(PLACE + "/{rule_id}/reset", openapi_extra=needs("manage", "rule.reset"))
    async def reset_rule(visit: Visiting, scope_id: str, rule_id: str) -> Json:
        """Put a rule back to work that the circuit breaker has stopped."""
        changed = msgspec.structs.replace(await _one(visit, rule_id), tripped_until=None, tripped_why=None)
        await _save(visit, changed)
        return one(shown(visit, changed))

    @routes.delete(PLACE + "/{rule_id}", status_code=204, openapi_extra=needs("manage", "rule.delete"))
    async def delete_rule(visit: Visiting, scope_id: str, rule_id: str) -> Response:
        """It acts no more, from the next message on."""
        key, note = f"{visit.scope.id}/{rule_id}", {"id": rule_id}
        await documents.unfile(visit, rule.KIND, key, "rule", note=note, scope=visit.scope.slug)
        return Response(status_code=204)


async def _try(visit: RequestContext, body: Trial) -> dict[str, Any]:
    if body.rule is not None:
        rules = [await _new_rule(visit, body.rule)]
    elif body.rule_id is not None:
        rules = [await _one(visit, body.rule_id)]
    else:
        rules = rule.ordered(await documents.listed(visit, rule.KIND, f"{visit.scope.id}/"))
    trigger = rules[0].trigger if body.rule is not None or body.rule_id is not None else body.trigger
    now = visit.house.clock.now()
    results = []
    for facts, queue_id in await _samples(visit, body, now):
        looks = matching.looks(rules, facts, trigger, queue_id, now)
        last = looks[-1] if looks else None
        matched = last is not None and last.matched
        results.append(
            {
                "message_id": facts["id"] or None,
                "matched": matched,
                "rule": shown(visit, last.rule) if last is not None and matched else None,
                "looks": [
                    {
                        "rule_id": look.rule.id,
                        "name": look.rule.name,
                        "matched": look.matched,
                        "why": look.why,
                    }
                    for look in looks
                ],
            }
        )
    return {"trigger": trigger, "matched": sum(each["matched"] for each in results), "results": results}


async def _samples(visit: RequestContext, body: Trial, now: int) -> list[tuple[dict[str, Any], int]]:
    chosen = [part for part in (body.message, body.message_id, body.last) if part is not None]
    if len(chosen) != 1:
        raise InvalidField("message", "give either a message, a message_id or last")
    queue_id = await _queue_number(visit, body.queue_id, "queue_id")
    if body.message is not None:
        return [(await _written(visit, body.message, now), queue_id or 0)]
    scope = visit.scope

    def look(reader: Reader) -> list[tuple[Stored, str]]:
        names = reader.queue_names()
        if body.message_id is not None:
            stored = seen_message(reader, visit, body.message_id)
            if stored is None:
                raise MessageNotFound(message_id=body.message_id)
            found = [stored]
        else:
            path = "/".join(names[queue_id]) if queue_id is not None else None
            wanted = MessageFilter(tenant=visit.tenant, scope=scope.slug, queue=path, newest_first=True)
            found = visible_page(reader, visit, wanted, None, body.last or 1)
        return [(stored, names[stored.row.queue_id][1]) for stored in found]

    return [
        (matching.facts_of(stored.row, stored.content, scope.slug, name, now), stored.row.queue_id)
        for stored, name in await visit.house.ask(look)
    ]


async def _written(visit: RequestContext, body: NewMessageBody, now: int) -> dict[str, Any]:
    """The facts of a message that nobody has published."""
    message = await new_message(visit, body)
    content = checks.encoded(message.body, message.content_type, visit.house.room._core.options.limits)
    values: dict[str, Any] = dict.fromkeys(Row.__struct_fields__)
    values |= {"id": "", "state": "pending", "attempts": 0, "hop": 0, "created_at": now}
    values |= {"message_type": message.message_type, "priority_tier": message.priority_tier}
    values |= {"priority_score": message.priority_score, "correlation_id": message.correlation_id}
    parts: dict[str, Any] = dict.fromkeys(Content.__struct_fields__)
    parts |= {"content_type": message.content_type, "body": content}
    parts |= {"source_type": message.source_type, "source_id": message.source_id}
    parts["labels"] = jsontext.text(message.labels) if message.labels else None
    return matching.facts_of(Row(**values), Content(**parts), visit.scope.slug, body.message_type, now)
