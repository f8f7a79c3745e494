"""Routing rules of a scope: made, changed, tried out on messages before they act."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import Field

from postroom.api.openapi import says
from postroom.api.queue import views
from postroom.api.queue.bodies import NewMessageBody, RequestBody, Text, Whole
from postroom.api.queue.cursors import Cursor, Limit, cut
from postroom.api.queue.envelopes import many, one
from postroom.api.queue.gate import Calling, needs
from postroom.api.responses import Json
from postroom.kernel import expressions
from postroom.kernel.ordering import TIER_RANK
from postroom.kernel.rules.conditions import OPERATORS
from postroom.kernel.rules.rule import MOST_CONDITIONS, MOST_TARGETS, ActionType, Trigger
from postroom.services.rules import MOST_TRIED, Rules

PATH = "/scopes/{scope_id}/routing-rules"


class ConditionBody(RequestBody):
    field: Text
    op: Annotated[str, says(enum=list(OPERATORS))]
    value: Any = None


Score = Annotated[Whole, says(minimum=0, maximum=1000)]
Rank = Annotated[Whole, says(minimum=-1_000_000, maximum=1_000_000)]
Expression = Annotated[str, says(minLength=1, maxLength=expressions.LONGEST)]


class ActionBody(RequestBody):
    type: ActionType
    target_queue_id: str | None = None
    target_queue_ids: Annotated[list[str], says(minItems=1, maxItems=MOST_TARGETS)] | None = None
    keep: bool = False
    set_labels: dict[str, Any] | None = None
    remove_labels: list[str] | None = None
    message_type: Text | None = None
    priority_tier: Annotated[str, says(enum=list(TIER_RANK))] | None = None
    priority_score: Score | None = None
    raise_by: Score | None = None
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
    priority: Rank = 100
    source_queue_id: str | None = None
    conditions: Annotated[list[ConditionBody], says(maxItems=MOST_CONDITIONS)] = Field(default_factory=list)
    match: Literal["all", "any"] = "all"
    expression: Expression | None = Field(
        default=None, description="CEL", examples=['labels.customer_tier == "premium" && body.total > 100']
    )

    def document(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class RuleChanges(RequestBody):
    name: Text | None = None
    trigger: Trigger | None = None
    action: ActionBody | None = None
    enabled: bool | None = None
    priority: Rank | None = None
    source_queue_id: str | None = None
    conditions: Annotated[list[ConditionBody], says(maxItems=MOST_CONDITIONS)] | None = None
    match: Literal["all", "any"] | None = None
    expression: Expression | None = None

    def changes(self) -> dict[str, Any]:
        given = self.model_dump(mode="json", exclude_unset=True)
        if self.action is not None:
            given["action"] = self.action.model_dump(mode="json", exclude_none=True)
        return given


class Trial(RequestBody):
    """One message, one that is there, or the last of a queue; against one rule or all that stand."""

    rule: RuleBody | None = None
    rule_id: str | None = None
    message: NewMessageBody | None = None
    message_id: str | None = None
    last: Annotated[Whole, Field(ge=1, le=MOST_TRIED)] | None = None
    queue_id: str | None = None
    trigger: Trigger = Trigger.PUBLISHED


def add(routes: APIRouter) -> None:
    @routes.post(PATH, status_code=201, openapi_extra=needs(Rules.CREATE))
    async def create_rule(call: Calling, scope_id: str, body: RuleBody) -> Json:
        """A rule that acts from now on. Rules are tried by `priority`, then age; the first match wins."""
        made = await call.services.rules.create(call.caller, scope_id, body.document())
        return one(views.rule(made.rule, made.scope_id, call.ids), status=201)

    @routes.get(PATH, openapi_extra=needs(Rules.LIST))
    async def list_rules(call: Calling, scope_id: str, limit: Limit = 100, cursor: Cursor = None) -> Json:
        """In the order in which they are tried."""
        found = await call.services.rules.list_all(call.caller, scope_id)
        return many(*cut([views.rule(each.rule, each.scope_id, call.ids) for each in found], cursor, limit))

    @routes.post(PATH + "/test", openapi_extra=needs(Rules.TEST))
    async def test_rules(call: Calling, scope_id: str, body: Trial) -> Json:
        """What would happen, without anything happening."""
        tried = await call.services.rules.test(
            call.caller,
            scope_id,
            document=body.rule.document() if body.rule else None,
            rule_id=body.rule_id,
            message=body.message.draft() if body.message else None,
            message_id=body.message_id,
            last=body.last,
            queue=body.queue_id,
            trigger=body.trigger,
        )
        return one(views.rule_trial(tried, call.ids))

    @routes.get(PATH + "/{rule_id}", openapi_extra=needs(Rules.READ))
    async def read_rule(call: Calling, scope_id: str, rule_id: str) -> Json:
        """One rule, and whether the circuit breaker has stopped it."""
        found = await call.services.rules.read(call.caller, scope_id, rule_id)
        return one(views.rule(found.rule, found.scope_id, call.ids))

    @routes.patch(PATH + "/{rule_id}", openapi_extra=needs(Rules.UPDATE))
    async def update_rule(call: Calling, scope_id: str, rule_id: str, body: RuleChanges) -> Json:
        """Change any part of a rule; what is not named stays."""
        changed = await call.services.rules.update(call.caller, scope_id, rule_id, body.changes())
        return one(views.rule(changed.rule, changed.scope_id, call.ids))

    @routes.post(PATH + "/{rule_id}/reset", openapi_extra=needs(Rules.RESET))
    async def reset_rule(call: Calling, scope_id: str, rule_id: str) -> Json:
        """Put a rule back to work that the circuit breaker has stopped."""
        changed = await call.services.rules.reset(call.caller, scope_id, rule_id)
        return one(views.rule(changed.rule, changed.scope_id, call.ids))

    @routes.delete(PATH + "/{rule_id}", status_code=204, openapi_extra=needs(Rules.DELETE))
    async def delete_rule(call: Calling, scope_id: str, rule_id: str) -> Response:
        """It acts no more, from the next message on."""
        await call.services.rules.delete(call.caller, scope_id, rule_id)
        return Response(status_code=204)
