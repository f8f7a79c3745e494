"""Routing rules of a scope: made, changed, tried out on messages before they act."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from postroom.errors import InvalidField, MessageNotFound
from postroom.kernel import checks, jsontext
from postroom.kernel.access.acl import AccessVerdict
from postroom.kernel.access.permissions import Permission
from postroom.kernel.costly_checks import AnswerChecks
from postroom.kernel.limits import Limits
from postroom.kernel.model import NewMessage, Scope
from postroom.kernel.ports import MessageFilter
from postroom.kernel.rows import Content, Row, Stored
from postroom.kernel.rules import matching, parsing, rule
from postroom.kernel.rules.matching import RuleMatch
from postroom.kernel.rules.rule import Action, Rule, Trigger
from postroom.services import documents
from postroom.services.access import Access
from postroom.services.callers import Caller
from postroom.services.calls import Operation, Service, ServiceCall
from postroom.services.errors import AclDenied, NoSuchThing

MOST_TRIED = 10_000
DRAFT = "draft"


class ScopedRule(msgspec.Struct, frozen=True):
    """A rule with where it stands, and the paths of the queues it names."""

    rule: Rule
    scope_id: int
    queues: dict[int, str]


class TriedMessage(msgspec.Struct, frozen=True):
    """What the rules said to one message; the last of them is the one that matched, if one did."""

    message_id: str | None
    queue: str
    looks: list[RuleMatch]

    @property
    def matched(self) -> RuleMatch | None:
        return self.looks[-1] if self.looks and self.looks[-1].matched else None


class RuleTrial(msgspec.Struct, frozen=True):
    trigger: Trigger
    scope_id: int
    results: list[TriedMessage]


class Rules(Service):
    CREATE = Operation("rule.create", Permission.MANAGE, 201)
    LIST = Operation("rule.list", Permission.VIEW)
    READ = Operation("rule.read", Permission.VIEW)
    UPDATE = Operation("rule.update", Permission.MANAGE)
    RESET = Operation("rule.reset", Permission.MANAGE)
    DELETE = Operation("rule.delete", Permission.MANAGE, 204)
    TEST = Operation("rule.test", Permission.MANAGE)

    async def create(self, caller: Caller, scope: str, document: dict[str, Any]) -> ScopedRule:
        """A rule that acts from now on. Rules are tried by `priority`, then age; the first match wins."""
        async with self._call(caller, self.CREATE) as call:
            place, made = await call.look(lambda access: self._draft(access, access.scope(scope), document))
            return await self._save(call, place, made)

    async def list_all(self, caller: Caller, scope: str) -> list[ScopedRule]:
        """In the order in which they are tried."""
        async with self._call(caller, self.LIST) as call:
            return await call.look(
                lambda access: _name_queues(access, *self._all(access, access.scope(scope))), quick=False
            )

    async def read(self, caller: Caller, scope: str, rule_id: str) -> ScopedRule:
        async with self._call(caller, self.READ) as call:
            return await call.look(lambda access: self._named(access, access.scope(scope), rule_id))

    async def update(
        self, caller: Caller, scope: str, rule_id: str, changes: dict[str, Any], *, reset: bool = False
    ) -> ScopedRule:
        """Change any part of a rule; what is not named stays. `reset`: also after the breaker stopped it."""
        async with self._call(caller, self.UPDATE) as call:

            def revise(access: Access) -> tuple[Scope, Rule]:
                place = access.scope(scope)
                kept = _find(access, place, rule_id)
                made = parsing.revised(kept, changes, _finder(access, place), now=access.now)
                made = msgspec.structs.replace(made, acts_as=access.caller.acts_as)
                _check_reach(access, place, made)
                return place, _reset(made) if reset else made

            return await self._save(call, *await call.look(revise))

    async def reset(self, caller: Caller, scope: str, rule_id: str) -> ScopedRule:
        """Put a rule back to work that the circuit breaker has stopped."""
        async with self._call(caller, self.RESET) as call:

            def find(access: Access) -> tuple[Scope, Rule]:
                place = access.scope(scope)
                return place, _reset(_find(access, place, rule_id))

            return await self._save(call, *await call.look(find))

    async def delete(self, caller: Caller, scope: str, rule_id: str) -> None:
        """It acts no more, from the next message on."""
        async with self._call(caller, self.DELETE) as call:

            def find(access: Access) -> Scope:
                place = access.scope(scope)
                _find(access, place, rule_id)
                return place

            place = await call.look(find)
            key = f"{place.id}/{rule_id}"
            await call.commit(documents.drop(call, rule.KIND, key, note={"id": rule_id}, scope=place))

    async def test(
        self,
        caller: Caller,
        scope: str,
        *,
        document: dict[str, Any] | None = None,
        rule_id: str | None = None,
        message: NewMessage | None = None,
        message_id: str | None = None,
        last: int | None = None,
        queue: str | None = None,
        trigger: str = Trigger.PUBLISHED,
    ) -> RuleTrial:
        """What would happen, without anything happening: to one message that nobody has published, to one
        that is there, or to the last of a scope; by one rule, or by all that stand."""
        async with self._call(caller, self.TEST) as call:

            def run(access: Access) -> RuleTrial:
                place = access.scope(scope)
                if [message is not None, message_id is not None, last is not None].count(True) != 1:
                    raise InvalidField("message", "give either a message, a message_id or last")
                if last is not None:
                    checks.check_count("last", last, least=1, most=MOST_TRIED)
                if trigger not in list(Trigger):
                    raise InvalidField("trigger", f"is {trigger!r}, must be one of: {', '.join(Trigger)}")
                tried, when = [], Trigger(trigger)
                if document is not None:
                    rules = [self._draft(access, place, document, rule_id=DRAFT)[1]]
                elif rule_id is not None:
                    rules = [_find(access, place, rule_id)]
                else:
                    rules = self._all(access, place)[1]
                if document is not None or rule_id is not None:
                    when = rules[0].trigger
                source = None if queue is None else _finder(access, place)(queue, "queue_id")
                limits, trials = self._context.room.limits, RuleTrials(self._context.room.answer_checks)
                if message is not None:
                    samples = [_unpublished(message, limits, access.now)]
                else:
                    samples = _samples(access, place, message_id, last or 1, source)
                for stored in samples:
                    queue_id = stored.row.queue_id or source or 0
                    name = self._context.queue_name(access.reader, queue_id)[1] if queue_id else ""
                    facts = matching.facts_of(stored.row, stored.content, place.slug, name, access.now)
                    consider = trials.of_sizes(matching.fact_sizes(stored.row, stored.content))
                    looks = matching.looks(rules, facts, when, queue_id, access.now, consider=consider)
                    tried.append(TriedMessage(stored.row.id or None, name, looks))
                return RuleTrial(when, place.id, tried)

            return await call.look(run, quick=False)

    # parts

    def _draft(
        self, access: Access, scope: Scope, document: dict[str, Any], rule_id: str | None = None
    ) -> tuple[Scope, Rule]:
        find = _finder(access, scope)
        made = parsing.drafted(document, find, rule_id=rule_id or str(uuid.uuid4()), now=access.now)
        made = msgspec.structs.replace(made, acts_as=access.caller.acts_as)
        _check_reach(access, scope, made)
        return scope, made

    def _all(self, access: Access, scope: Scope) -> tuple[Scope, list[Rule]]:
        found = rule.ordered(documents.list_documents(access, rule.KIND, f"{scope.id}/"))
        return scope, [each for each in found if _is_seen(access, scope, each)]

    def _named(self, access: Access, scope: Scope, rule_id: str) -> ScopedRule:
        return _name_queues(access, scope, [_find(access, scope, rule_id)])[0]

    async def _save(self, call: ServiceCall, scope: Scope, made: Rule) -> ScopedRule:
        await call.commit(
            documents.put(
                call,
                rule.KIND,
                f"{scope.id}/{made.id}",
                rule.written(made),
                note={"id": made.id, "name": made.name},
                scope=scope,
            ),
            rule=made.id,
        )
        return (await call.look(lambda access: _name_queues(access, scope, [made])))[0]


class RuleTrials:
    """Tries rules on many messages; a rule that took too long on one is not tried on the others."""

    def __init__(self, answer: AnswerChecks) -> None:
        self._answer = answer
        self._slow: set[str] = set()

    def of_sizes(self, sizes: Mapping[str, int]) -> Callable[[Rule, dict[str, Any]], RuleMatch]:
        def consider(tried: Rule, facts: dict[str, Any]) -> RuleMatch:
            if not matching.is_costly(tried, sizes):
                return matching.considered(tried, facts)
            if tried.id in self._slow:
                return RuleMatch(tried, False, "it took too long on another message", 0.0)
            check = matching.costly_check(tried, facts)
            answer = self._answer([check])[check.key]
            if not answer.in_time:
                self._slow.add(tried.id)
            return matching.answered(tried, answer)

        return consider


def _find(access: Access, scope: Scope, rule_id: str) -> Rule:
    found = rule.read(documents.find_document(access, rule.KIND, f"{scope.id}/{rule_id}", "rule").data)
    if not _is_seen(access, scope, found):
        raise NoSuchThing(what="rule", id=rule_id)
    return found


def _is_seen(access: Access, scope: Scope, found: Rule) -> bool:
    """What a rule says of a queue is for those who may know of the queue."""
    sight = access.sight(scope)
    if sight.is_whole:
        return True
    closed = {queue.id for queue in access.reader.queues(access.tenant, scope.slug)}
    closed -= {queue.id for queue in access.list_queues(scope)}
    return closed.isdisjoint(_queues_of(found))


def _reset(found: Rule) -> Rule:
    return msgspec.structs.replace(found, tripped_until=None, tripped_why=None)


def _finder(access: Access, scope: Scope) -> parsing.Find:
    def find(name: Any, field: str) -> int:
        if not isinstance(name, str):
            raise InvalidField(field, "must be a text, the name or id of a queue")
        return access.target(scope, name, field).id

    return find


def _check_reach(access: Access, scope: Scope, made: Rule) -> None:
    """A rule does only what its maker may do: manage the queue it takes from, publish where it leads to."""
    if made.source is not None:
        _require(access, made.source, Permission.MANAGE)
    for target in _targets(made.action):
        _require(access, target, Permission.PUBLISH)


def _targets(action: Action) -> tuple[int, ...]:
    return action.targets if action.target is None else (action.target, *action.targets)


def _queues_of(found: Rule) -> tuple[int, ...]:
    targets = _targets(found.action)
    return targets if found.source is None else (found.source, *targets)


def _require(access: Access, queue_id: int, wanted: Permission) -> None:
    queue = access.queue_by_id(queue_id)
    scope = access.find_scope(queue.scope)
    if access.verdict(scope, queue, wanted) is not AccessVerdict.ALLOWED:
        raise AclDenied(place=queue.path, permission=wanted)


def _name_queues(access: Access, scope: Scope, rules: list[Rule]) -> list[ScopedRule]:
    found = []
    for each in rules:
        found.append(
            ScopedRule(each, scope.id, {number: access.queue_path(number) for number in _queues_of(each)})
        )
    return found


def _samples(
    access: Access, scope: Scope, message_id: str | None, last: int, source: int | None
) -> list[Stored]:
    if message_id is not None:
        stored = access.visible_message(scope, message_id)
        if stored is None:
            raise MessageNotFound(message_id=message_id)
        return [stored]
    wanted = MessageFilter(
        tenant=access.tenant,
        scope=scope.slug,
        queue=None if source is None else access.queue_path(source),
        newest_first=True,
    )
    return access.messages(scope, wanted, None, last)


def _unpublished(message: NewMessage, limits: Limits, now: int) -> Stored:
    """A message as it would be, had anybody published it."""
    checks.check_message(message, limits)
    values: dict[str, Any] = dict.fromkeys(Row.__struct_fields__)
    values |= {"id": "", "state": "pending", "attempts": 0, "hop": 0, "created_at": now}
    values |= {"message_type": message.message_type, "priority_tier": message.priority_tier}
    values |= {"priority_score": message.priority_score, "correlation_id": message.correlation_id}
    parts: dict[str, Any] = dict.fromkeys(Content.__struct_fields__)
    parts |= {"content_type": message.content_type, "body": checks.body_bytes(message, limits)}
    parts |= {"source_type": message.source_type, "source_id": message.source_id}
    parts["labels"] = jsontext.text(message.labels) if message.labels else None
    return Stored(Row(**values), Content(**parts))
