"""`postroom rule`: what happens to messages by itself, tried out before it acts."""

from typing import Annotated, Any

from postroom.clock import iso
from postroom.kernel.rules import rule
from postroom.services.container import Services
from postroom.services.rules import ScopedRule, TriedMessage
from postroom.terminal.cli import completion
from postroom.terminal.cli.command import command, group
from postroom.terminal.cli.options import argument, option
from postroom.terminal.cli.output import Column, json_text, table
from postroom.terminal.cli.schemas import read_object
from postroom.terminal.cli.short_ids import pick
from postroom.terminal.cli.store_access import CommandContext

app = group("rule", "Rules: what happens to messages by itself.")

Scope = Annotated[str, option("NAME", "The scope. Default default.", "--scope")]
RuleId = Annotated[str, argument("ID", "The rule's id, or how it begins.", autocompletion=completion.rules)]


def render_rule(found: ScopedRule) -> dict[str, Any]:
    document = rule.written(found.rule)
    action = document["action"]
    source = document.pop("source", None)
    document["source_queue"] = found.queues[source] if source is not None else None
    if "target" in action:
        action["target_queue"] = found.queues[action.pop("target")]
    if "targets" in action:
        action["target_queues"] = [found.queues[each] for each in action.pop("targets")]
    for name in ("created_at", "updated_at", "tripped_until"):
        document[name] = iso(document[name]) if document.get(name) is not None else None
    del document["acts_as"]
    return document


async def _find(at: CommandContext, services: Services, scope: str, rule_id: str) -> ScopedRule:
    found = await services.rules.list_all(at.caller, scope)
    return pick(found, rule_id, lambda each: each.rule.id, "rule")


@command(
    app,
    "add",
    examples=[
        "postroom rule add premium.json --scope orders",
        "postroom rule add - --scope orders < premium.json",
    ],
)
async def add(
    at: CommandContext,
    file: Annotated[str, argument("FILE", "The rule as JSON; - reads it from stdin.")],
    scope: Scope = "default",
) -> None:
    """Add a rule. It acts on messages from now on."""
    document = read_object(file)
    async with at.services(make=True) as services:
        made = await services.rules.create(at.caller, scope, document)
    at.out.show(render_rule(made), f'The rule "{made.rule.name}" ({made.rule.id}) acts from now on.')


@command(app, "list", examples=["postroom rule list --scope orders"])
async def list_rules(at: CommandContext, scope: Scope = "default") -> None:
    """List rules in the order in which they are tried."""
    async with at.services() as services:
        found = await services.rules.list_all(at.caller, scope)
    now = at.clock.now()
    rows = [
        (
            each.id,
            each.priority,
            each.name,
            each.trigger.removeprefix("message_"),
            each.action.type,
            "off" if not each.enabled else "on" if each.stands(now) else f"stopped: {each.tripped_why}",
        )
        for each in (scoped.rule for scoped in found)
    ]
    titles = [Column("rule", whole=True), Column("priority", right=True), "name", "when", "does", "state"]
    shown = table(titles, rows) if rows else f'The scope "{scope}" has no rules.'
    at.out.show([render_rule(each) for each in found], shown)


@command(app, "show", examples=["postroom rule show 3f2a --scope orders"])
async def show(at: CommandContext, rule_id: RuleId, scope: Scope = "default") -> None:
    """Show a rule whole."""
    async with at.services() as services:
        document = render_rule(await _find(at, services, scope, rule_id))
    at.out.show(document, json_text(document))


async def _switch(at: CommandContext, rule_id: str, scope: str, on: bool) -> None:
    async with at.services(change=True) as services:
        found = await _find(at, services, scope, rule_id)
        changed = await services.rules.update(at.caller, scope, found.rule.id, {"enabled": on}, reset=True)
    at.out.show(render_rule(changed), f'The rule "{changed.rule.name}" is {"on" if on else "off"}.')


@command(app, "enable", examples=["postroom rule enable 3f2a --scope orders"])
async def enable(at: CommandContext, rule_id: RuleId, scope: Scope = "default") -> None:
    """Put a rule to work, also one that the circuit breaker has stopped."""
    await _switch(at, rule_id, scope, True)


@command(app, "disable", examples=["postroom rule disable 3f2a --scope orders"])
async def disable(at: CommandContext, rule_id: RuleId, scope: Scope = "default") -> None:
    """Let a rule rest."""
    await _switch(at, rule_id, scope, False)


@command(app, "remove", examples=["postroom rule remove 3f2a --scope orders"])
async def remove(at: CommandContext, rule_id: RuleId, scope: Scope = "default") -> None:
    """Delete a rule."""
    async with at.services(change=True) as services:
        found = (await _find(at, services, scope, rule_id)).rule
        await services.rules.delete(at.caller, scope, found.id)
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
async def try_out(
    at: CommandContext,
    file: Annotated[
        str | None, argument("FILE", "A rule that is not added yet; - reads it from stdin.")
    ] = None,
    scope: Scope = "default",
    message: Annotated[str | None, option("ID", "Try it on this message.", "--message")] = None,
    last: Annotated[int, option("N", "Try it on the last N messages. Default 20.", "--last")] = 20,
) -> None:
    """Show which messages a rule would match, without anything happening."""
    document = read_object(file) if file is not None else None
    async with at.services() as services:
        trial = await services.rules.test(
            at.caller,
            scope,
            document=document,
            message_id=message,
            last=None if message is not None else last,
        )
    rows = [_render_trial(each) for each in trial.results]
    titles = [Column("message", whole=True), "queue", "matches", Column("why", free=True)]
    matched = sum(each.matched is not None for each in trial.results)
    at.out.show(
        [dict(zip(("message_id", "queue", "rule", "why"), row, strict=True)) for row in rows],
        table(titles, rows),
        f"{matched} of {len(rows)} would match.",
    )


def _render_trial(tried: TriedMessage) -> tuple[str | None, str, str | None, str]:
    hit = tried.matched
    why = tried.looks[-1].why if tried.looks else "no rule is for this queue"
    return tried.message_id, tried.queue, hit.rule.name if hit else None, why
