"""What a rule does to a message it matched, in the transaction of the change that triggered it.

A message that waits is changed or moved itself. Of one that has ended, or was broadcast, a child is made.
"""

from typing import Any

import msgspec

from postroom.clock import micros
from postroom.errors import InvalidField
from postroom.kernel import checks, jsontext
from postroom.kernel.access import trust
from postroom.kernel.access.permissions import Permission
from postroom.kernel.access.reach import may_act
from postroom.kernel.model import REVIEW, ConsumerMode, NewMessage, Queue
from postroom.kernel.ordering import TIER_RANK
from postroom.kernel.ports import Shape
from postroom.kernel.reviews.answering import HOLD_S
from postroom.kernel.reviews.patterns import expanded
from postroom.kernel.rows import Content, Row
from postroom.kernel.rules.rule import Action, ActionType, Rule
from postroom.kernel.states import OPEN, WAITING, Change, State
from postroom.kernel.templates import filled
from postroom.kernel.transitions.context import TransitionContext, earlier, is_original
from postroom.kernel.transitions.publish import publish_one
from postroom.kernel.transitions.reroute import check_schema, move_to

TOP_SCORE = 1000


class AppliedAction:
    """One rule acting on one message."""

    def __init__(self, ctx: TransitionContext, rule: Rule, row: Row, facts: dict[str, Any]) -> None:
        self._ctx = ctx
        self._rule = rule
        self._row = row
        self._content = ctx.session.content(row)
        self._facts = facts
        self._queue = ctx.session.queue_by_id(row.queue_id)
        self._in_place = row.state in WAITING and not is_original(row, self._queue)
        self._cause: dict[str, Any] = {"rule": rule.id}

    def do(self) -> bool:
        """Whether the message is somewhere else now, where other rules may wait for it."""
        action = self._rule.action
        if action.type is ActionType.ARCHIVE:
            self._archive()
            return False
        if action.type is ActionType.FAN_OUT:
            self._fan_out()
            return False
        if action.type is ActionType.ASK_HUMAN:
            self._ask_human()
            return False
        if not self._in_place:
            if action.target is not None:
                self._child(self._target(action.target), self._changed_child())
            return False
        if action.type in (ActionType.TRANSFORM, ActionType.ESCALATE):
            self._change()
        if action.target is None or action.target == self._row.queue_id:
            return False
        move_to(self._ctx, self._row, self._target(action.target), cause=self._cause)
        return True

    # where to

    def _target(self, queue_id: int) -> Queue:
        ctx, row = self._ctx, self._row
        queue = ctx.session.find_queue(queue_id)
        if queue is None or queue.tenant != row.tenant:
            raise InvalidField("action", "its queue is gone")
        if not trust.may_cross(ctx.session, row.tenant, row.scope_id, queue.scope_id, "route"):
            raise InvalidField("action", f"no trust lets this scope route into {queue.scope}")
        if not may_act(ctx.session, queue, self._rule.acts_as, Permission.PUBLISH, ctx.now):
            raise InvalidField("action", f"whoever made it may not publish into {queue.path}")
        return queue

    # children

    def _child(self, queue: Queue, message: NewMessage) -> str:
        budget = self._ctx.rule_budget
        if budget is not None:
            copies = 1
            if queue.settings.consumer_mode is ConsumerMode.BROADCAST:
                copies += len(self._ctx.session.subscriptions(queue.id))
            budget.spend_messages(copies, copies * len(self._content.body or b""))
        return publish_one(self._ctx, queue, message).id

    def _child_message(self) -> NewMessage:
        row, content = self._row, self._content
        body: Any = content.body
        if content.content_type == checks.JSON:
            body = jsontext.decode_any(content.body)
        return NewMessage(
            body=body,
            message_type=row.message_type,
            content_type=content.content_type,
            priority_tier=row.priority_tier,
            priority_score=row.priority_score,
            labels=jsontext.decode_any(content.labels),
            delay_until=row.visible_at if row.state == State.DELAYED else None,
            correlation_id=row.correlation_id,
            causation_id=row.id,
            parent_id=row.id,
            hop=row.hop + 1,
            source_type="rule",
            source_id=self._rule.id,
        )

    def _changed_child(self) -> NewMessage:
        message, action = self._child_message(), self._rule.action
        message.labels = self._labels(message.labels or {})
        message.message_type = action.message_type or message.message_type
        message.priority_tier, message.priority_score = self._rank()
        if action.body is not None:
            message.body = filled(action.body, self._facts, strict=False)
            message.content_type = checks.JSON
        if action.pattern is not None:
            message.hitl_spec = self._spec()
        return message

    def _fan_out(self) -> None:
        action, row = self._rule.action, self._row
        made = [self._child(self._target(target), self._child_message()) for target in action.targets]
        if self._in_place and not action.keep:
            row.result = jsontext.encode({"fanned_out": made})
            self._ctx.move(row, Change.COMPLETED, State.COMPLETED, **self._cause, children=len(made))

    # the message itself

    def _archive(self) -> None:
        if self._row.state in WAITING:
            reason = f"archived by the rule {self._rule.name}"
            for each in self._ctx.with_deliveries(self._row):
                self._ctx.cancel(each, reason)
            self._ctx.hooks.give_up_review(self._ctx, self._row, reason)

    def _labels(self, labels: dict[str, Any]) -> dict[str, Any]:
        action = self._rule.action
        labels = {name: value for name, value in labels.items() if name not in action.remove_labels}
        labels |= filled(action.set_labels, self._facts, strict=False)
        checks.check_labels(labels, self._ctx.limits)
        return labels

    def _rank(self) -> tuple[str, int]:
        action, row = self._rule.action, self._row
        tier, score = action.priority_tier or row.priority_tier, row.priority_score
        if action.type is ActionType.ESCALATE and TIER_RANK[tier] < TIER_RANK[row.priority_tier]:
            tier = row.priority_tier
        if action.priority_score is not None:
            score = action.priority_score
        return tier, min(score + (action.raise_by or 0), TOP_SCORE)

    def _change(self) -> None:
        ctx, row, action = self._ctx, self._row, self._rule.action
        labels = self._labels(jsontext.decode_any(self._content.labels, {}))
        content = msgspec.structs.replace(
            self._content,
            labels=checks.small_json("labels", labels, ctx.limits.metadata_bytes) if labels else None,
        )
        if action.body is not None:
            body = filled(action.body, self._facts, strict=False)
            content.body, content.content_type = checks.encoded(body, checks.JSON, ctx.limits), checks.JSON
            if action.target in (None, row.queue_id):
                check_schema(ctx, content, self._queue)
        if action.message_type is not None:
            checks.check_name("message_type", action.message_type, ctx.limits)
            row.message_type = action.message_type
        if action.pattern is not None:
            self._attach(content)
        self._put(content)
        row.priority_tier, row.priority_score = self._rank()
        ctx.reorder(row, self._queue, entered_at=row.created_at)
        ctx.move(row, Change.TRANSFORMED, State(row.state), shape=Shape.MOVED, **self._cause)

    def _put(self, content: Content) -> None:
        self._ctx.rewrite(self._row, content)
        self._content = content

    # people

    def _spec(self) -> dict[str, Any]:
        action: Action = self._rule.action
        wanted: dict[str, Any]
        if action.spec is not None:
            wanted = filled(action.spec, self._facts, strict=False)
        else:
            parameters = filled(action.parameters, self._facts, strict=False)
            wanted = {"pattern": action.pattern, "parameters": parameters}
            if action.version is not None:
                wanted["version"] = action.version
        return expanded(self._ctx.session, self._row.tenant, self._row.scope_id, wanted)

    def _attach(self, content: Content) -> None:
        """The message itself becomes the review."""
        spec, row, ctx = self._spec(), self._row, self._ctx
        content.hitl_spec = checks.small_json("hitl_spec", spec, ctx.limits.body_bytes)
        if spec.get("timeout_s") is not None:
            row.expires_at = earlier(row.expires_at, ctx.now + micros(spec["timeout_s"]))

    def _ask_human(self) -> None:
        action, row, ctx = self._rule.action, self._row, self._ctx
        if action.target is None and self._in_place:
            content = msgspec.structs.replace(self._content)
            self._attach(content)
            self._put(content)
            ctx.move(row, Change.TRANSFORMED, State(row.state), **self._cause, asks=True)
            return
        queue = self._target(action.target if action.target is not None else self._origin())
        spec = self._spec()
        if self._in_place:
            spec["waiting"] = row.id
        message = self._child_message()
        message.message_type, message.hitl_spec, message.delay_until = REVIEW, spec, None
        asked = self._child(queue, message)
        if self._in_place:
            row.visible_at = ctx.now + micros(HOLD_S)
            ctx.move(row, Change.HELD, State.DELAYED, **self._cause, review=asked)
            review = ctx.session.row(asked)
            if review is not None and review.state not in OPEN:
                ctx.hooks.give_up_review(ctx, review, "it has ended before anybody saw it")

    def _origin(self) -> int:
        return self._row.origin_queue_id or self._row.queue_id
