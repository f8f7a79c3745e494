"""Rules of a scope: what they wait for and do; switched, reset, deleted, and tried on real messages first."""

from typing import Any

import msgspec
from htpy import Renderable, a, button, code, dialog, div, form, h2, input, p, span, td

from postroom.errors import InvalidField
from postroom.portal.parts import (
    act_button,
    area_field,
    choice_field,
    show_empty,
    show_row,
    show_state,
    show_table,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.services.rules import ScopedRule

# So many messages of the past a rule is tried on.
LAST = 1000
EXAMPLE = """{
  "name": "large orders are read first",
  "source_queue_id": "orders",
  "trigger": "message_published",
  "expression": "body.total > 1000",
  "action": {"type": "route", "target_queue_id": "large"}
}"""


async def show_rules(visit: PortalVisit) -> PageView:
    scopes = [each.slug for each in await visit.services.scopes.list_all(visit.caller)]
    scope = visit.query("scope") or "default"
    rules = await visit.services.rules.list_all(visit.caller, scope) if scope in scopes else []
    return PageView(
        title="Rules",
        way="/rules",
        lead="Tried in this order, the first that matches acts, in the same transaction as the message.",
        actions=[
            form(method="get", action="/rules")[
                choice_field(
                    "scope",
                    "",
                    [(each, each) for each in scopes],
                    scope,
                    data_submit=True,
                    aria_label="Scope",
                )
            ],
            button(".primary", data_do="dialog", data_opens="new-rule")["New rule"],
        ],
        body=[
            div(id="rules", data_live=True)[
                show_table(
                    ["Rule", "State", "When", "If", "Does", ""],
                    [_row(each, scope, visit.now) for each in rules],
                )
                if rules
                else show_empty(
                    "No rules in this scope",
                    "Rules route, copy, change, escalate or ask a person. ",
                    a(".link", href="/queues")["See the queues"],
                )
            ],
            dialog("#new-rule", aria_label="New rule")[
                form(".inside", method="post", action="/rules/new")[
                    h2["New rule"],
                    area_field("document", "As JSON", EXAMPLE, rows="10", class_="mono", spellcheck="false"),
                    input(type="hidden", name="scope", value=scope),
                    p(".quiet.small")[
                        "The same as ", code["postroom rule add"], "; docs/how-to/rules.md has more."
                    ],
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"],
                        button(formaction="/rules/try-new", data_stay=True)["Try it on the past"],
                        button(".primary")["Create rule"],
                    ],
                ]
            ],
        ],
    )


def _row(each: ScopedRule, scope: str, now: int) -> Renderable:
    rule = each.rule
    fields = {"scope": scope, "rule": rule.id}
    if rule.tripped_until:
        state = show_state("dead", rule.tripped_why or "stopped by the breaker")
    else:
        state = show_state("completed", "on") if rule.enabled else show_state("cancelled", "off")
    condition = (
        rule.expression or f"{len(rule.conditions)} conditions, {rule.match}"
        if rule.conditions or rule.expression
        else "always"
    )
    return show_row(
        td(".nowrap")[rule.name],
        td[state],
        td(".nowrap")[f"{rule.trigger}"],
        td(".text")[code[condition]],
        td(".nowrap")[code[str(msgspec.to_builtins(rule.action).get("type", ""))]],
        td(".num")[
            span(".gap")[
                act_button(
                    "Off" if rule.enabled else "On",
                    "/rules/switch",
                    {**fields, "on": "" if rule.enabled else "1"},
                    kind="plain",
                ),
                act_button("Reset", "/rules/reset", fields, kind="plain") if rule.tripped_until else None,
                act_button("Try", "/rules/try", fields, kind="plain"),
                act_button(
                    "Delete",
                    "/rules/remove",
                    fields,
                    kind="plain danger",
                    confirm=f"Delete the rule {rule.name}?",
                ),
            ]
        ],
        row_id=f"rule-{rule.id}",
    )


def _document(form: SentForm) -> dict[str, Any]:
    try:
        return msgspec.json.decode(form.text("document"), type=dict)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InvalidField("document", f"is no JSON object: {error}") from None


async def create(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.rules.create(visit.acting, form.word("scope"), _document(form))
    return ActResult(said="The rule acts from now on.", to=f"/rules?scope={form.word('scope')}")


async def switch(visit: PortalVisit, form: SentForm) -> ActResult:
    changes = {"enabled": bool(form.word("on"))}
    await visit.services.rules.update(visit.acting, form.word("scope"), form.word("rule"), changes)
    return ActResult(said="On." if changes["enabled"] else "Off.")


async def reset(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.rules.reset(visit.acting, form.word("scope"), form.word("rule"))
    return ActResult(said="Back to work.")


async def try_rule(visit: PortalVisit, form: SentForm) -> ActResult:
    """On the newest messages, without doing anything."""
    return await _try(visit, form, rule_id=form.word("rule"))


async def try_new(visit: PortalVisit, form: SentForm) -> ActResult:
    """One that is not there yet."""
    return await _try(visit, form, document=_document(form))


async def _try(visit: PortalVisit, form: SentForm, **which: Any) -> ActResult:
    trial = await visit.services.rules.test(visit.acting, form.word("scope"), last=LAST, **which)
    hits = sum(any(look.matched for look in each.looks) for each in trial.results)
    return ActResult(
        said=f"It would have matched {hits} of the last {len(trial.results)} messages. Nothing was done."
    )


async def remove(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.rules.delete(visit.acting, form.word("scope"), form.word("rule"))
    return ActResult(said="Deleted.")


PART = PortalPart(
    {"/rules": show_rules},
    {
        "/rules/new": create,
        "/rules/switch": switch,
        "/rules/reset": reset,
        "/rules/try": try_rule,
        "/rules/try-new": try_new,
        "/rules/remove": remove,
    },
)
