"""`postroom rule`: what happens to messages by itself, tried out before it acts."""

import uuid
from typing import Annotated, Any

import msgspec

from postroom.clock import iso
from postroom.errors import InvalidField, MessageNotFound, QueueNotFound
from postroom.kernel import checks, service_commands
from postroom.kernel.ports import MessageFilter, Reader
from postroom.kernel.rules import matching, parsing, rule
from postroom.kernel.rules.rule import Rule
from postroom.runtime import SyncRoom
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.completion import scopes as complete_scopes
from postroom.terminal.cli.errors import NotKnown, Unclear
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, json_text, table
from postroom.terminal.cli.schemas import read_object
from postroom.terminal.cli.store_access import CommandContext

app = group("rule", "Rules: what happens to messages by itself.")

Scope = Annotated[
    str, option("NAME", "The scope. Default default.", "--scope", autocompletion=complete_scopes)
]
RuleId = Annotated[str, argument("ID", "The rule's id, or how it begins.")]


def _rules(room: SyncRoom, scope: str) -> tuple[int, list[Rule]]:
    number = room.scope(scope).id
    tenant = room._core.options.tenant
    found = room._core.read(lambda reader: reader.documents(tenant, rule.KIND, f"{number}/", "", 1000))
    return number, rule.ordered(found)


def _one(room: SyncRoom, scope: str, rule_id: str) -> tuple[int, Rule]:
    number, found = _rules(room, scope)
    fitting = [each for each in found if each.id.startswith(rule_id)]
    if not fitting:
        where, listed = f'in the scope "{scope}"', f"postroom rule list --scope {scope}"
        raise NotKnown(what="rule", name=rule_id, where=where, list=listed)
    if len(fitting) > 1:
        raise Unclear(f'There is more than one rule "{rule_id}" in the scope "{scope}"')
    return number, fitting[0]


def _save(room: SyncRoom, number: int, scope: str, changed: Rule) -> None:
    room.run(
        service_commands.PutServiceDocument(
            kind=rule.KIND,
            key=f"{number}/{changed.id}",
            data=rule.written(changed),
            note={"id": changed.id, "name": changed.name},
            scope=scope,
            actor=room.actor,
        )
    )


def _names(room: SyncRoom) -> dict[int, tuple[str, str]]:
    return room._core.read(lambda reader: reader.queue_names())


def _shown(found: Rule, names: dict[int, tuple[str, str]]) -> dict[str, Any]:
    document = rule.written(found)
    action = document["action"]
    source = document.pop("source", None)
    document["source_queue"] = "/".join(names[source]) if source is not None else None
    if "target" in action:
        action["target_queue"] = "/".join(names[action.pop("target")])
    if "targets" in action:
        action["target_queues"] = ["/".join(names[each]) for each in action.pop("targets")]
    for name in ("created_at", "updated_at", "tripped_until"):
        document[name] = iso(document[name]) if document.get(name) is not None else None
    return document


def _find(room: SyncRoom, scope: str) -> parsing.Find:
    def find(name: str, field: str) -> int:
        try:
            return room.queue(name if "/" in name else f"{scope}/{name}").id
        except QueueNotFound:
            raise InvalidField(field, f"there is no queue {name!r}") from None

    return find


@command(
    app,
    "add",
    examples=[
        "postroom rule add premium.json --scope orders",
        "postroom rule add - --scope orders < premium.json",
    ],
)
def add(
    at: CommandContext,
    file: Annotated[str, argument("FILE", "The rule as JSON; - reads it from stdin.")],
    scope: Scope = "default",
) -> None:
    """Add a rule. It acts on messages from now on."""
    document = read_object(file)
    with at.room(make=True) as room:
        number = room.scope(scope).id
        now = at.clock.now()
        made = parsing.drafted(document, _find(room, scope), rule_id=str(uuid.uuid4()), now=now)
        _save(room, number, scope, made)
        names = _names(room)
    at.out.show(_shown(made, names), f'The rule "{made.name}" ({made.id}) acts from now on.')


@command(app, "list", examples=["postroom rule list --scope orders"])
def list_rules(at: CommandContext, scope: Scope = "default") -> None:
    """List rules in the order in which they are tried."""
    now = at.clock.now()
    with at.looking() as room:
        _, found = _rules(room, scope)
        names = _names(room)
    rows = [
        (
            each.id,
            each.priority,
            each.name,
            each.trigger.removeprefix("message_"),
            each.action.type,
            "off" if not each.enabled else "on" if each.stands(now) else f"stopped: {each.tripped_why}",
        )
        for each in found
    ]
    titles = [Column("rule", whole=True), Column("priority", right=True), "name", "when", "does", "state"]
    shown = table(titles, rows) if rows else f'The scope "{scope}" has no rules.'
    at.out.show([_shown(each, names) for each in found], shown)


@command(app, "show", examples=["postroom rule show 3f2a --scope orders"])
def show(at: CommandContext, rule_id: RuleId, scope: Scope = "default") -> None:
    """Show a rule whole."""
    with at.looking() as room:
        _, found = _one(room, scope, rule_id)
        document = _shown(found, _names(room))
    at.out.show(document, json_text(document))


def _switch(at: CommandContext, rule_id: str, scope: str, on: bool) -> None:
    with at.room() as room:
        number, found = _one(room, scope, rule_id)
        changed = msgspec.structs.replace(found, enabled=on, tripped_until=None, tripped_why=None)
        _save(room, number, scope, changed)
        names = _names(room)
    at.out.show(_shown(changed, names), f'The rule "{found.name}" is {"on" if on else "off"}.')


@command(app, "enable", examples=["postroom rule enable 3f2a --scope orders"])
def enable(at: CommandContext, rule_id: RuleId, scope: Scope = "default") -> None:
    """Put a rule to work, also one that the circuit breaker has stopped."""
    _switch(at, rule_id, scope, True)


@command(app, "disable", examples=["postroom rule disable 3f2a --scope orders"])
def disable(at: CommandContext, rule_id: RuleId, scope: Scope = "default") -> None:
    """Let a rule rest."""
    _switch(at, rule_id, scope, False)


@command(app, "remove", examples=["postroom rule remove 3f2a --scope orders"])
def remove(at: CommandContext, rule_id: RuleId, scope: Scope = "default") -> None:
    """Delete a rule."""
    with at.room() as room:
        number, found = _one(room, scope, rule_id)
        key, note = f"{number}/{found.id}", {"id": found.id}
        room.run(
            service_commands.DropServiceDocument(
                kind=rule.KIND, key=key, note=note, scope=scope, actor=room.actor
            )
        )
    at.out.show({"removed": found.id}, f'The rule "{found.name}" is removed.')


@command(
    app,
    "test",
    examples=[
        "postroom rule test --scope orders --last 100",
        "postroom rule test draft.json --scope orders --last 100",
        "postroom rule test --scope orders --message 01890a5d-…",
    ],
)
def try_out(
    at: CommandContext,
    file: Annotated[
        str | None, argument("FILE", "A rule that is not added yet; - reads it from stdin.")
    ] = None,
    scope: Scope = "default",
    message: Annotated[str | None, option("ID", "Try it on this message.", "--message")] = None,
    last: Annotated[int, option("N", "Try it on the last N messages. Default 20.", "--last")] = 20,
) -> None:
    """Show which messages a rule would match, without anything happening."""
    checks.check_count("--last", last, least=1, most=10_000)
    now = at.clock.now()
    with at.looking() as room:
        tenant = room._core.options.tenant
        _, rules = _rules(room, scope)
        if file is not None:
            document = read_object(file)
            rules = [parsing.drafted(document, _find(room, scope), rule_id="draft", now=now)]
        names = _names(room)

        def look(reader: Reader) -> list[Any]:
            if message is not None:
                found = reader.get(message)
                if found is None or found.row.tenant != tenant:
                    raise MessageNotFound(message_id=message)
                return [found]
            return reader.page(MessageFilter(tenant=tenant, scope=scope, newest_first=True), None, last)

        results = []
        for stored in room._core.read(look):
            queue_id = stored.row.queue_id
            facts = matching.facts_of(stored.row, stored.content, *names[queue_id], now)
            trigger = rules[0].trigger if file is not None else rule.Trigger.PUBLISHED
            looks = matching.looks(rules, facts, trigger, queue_id, now)
            hit = looks[-1] if looks and looks[-1].matched else None
            why = hit.why if hit else looks[-1].why if looks else "no rule is for this queue"
            results.append((stored.row.id, names[queue_id][1], hit.rule.name if hit else None, why))
    document = [dict(zip(("message_id", "queue", "rule", "why"), each, strict=True)) for each in results]
    titles = [Column("message", whole=True), "queue", "matches", Column("why", free=True)]
    matched = sum(each[2] is not None for each in results)
    at.out.show(document, table(titles, results), f"{matched} of {len(results)} would match.")
