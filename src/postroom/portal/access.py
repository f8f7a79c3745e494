"""Keys of programs: made, renewed and revoked; the secret is shown once. And how to log in elsewhere."""

from htpy import Renderable, button, code, dialog, div, form, h2, input, label, p, span, td

from postroom.kernel.access.permissions import Permission
from postroom.portal.parts import (
    act_button,
    choice_field,
    show_empty,
    show_row,
    show_section,
    show_state,
    show_table,
    show_tag,
    text_field,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import show_ago
from postroom.services.keys import KeyDraft, ScopedKey


async def show_access(visit: PortalVisit) -> PageView:
    keys = await visit.services.keys.list_all(visit.caller)
    scopes = await visit.services.scopes.list_all(visit.caller)
    return PageView(
        title="Keys and access",
        way="/access",
        lead="Programs use the work queue under /v1 with keys. People log in with a link or the token.",
        actions=button(".primary", data_do="dialog", data_opens="new-key")["New key"],
        body=div(".stack-l")[
            show_section(
                "Keys",
                show_table(
                    ["Name", "State", "Scope", "May", ("Made", "num"), ""],
                    [_row(each, visit.now) for each in keys],
                )
                if keys
                else show_empty(
                    "No keys yet",
                    "A program that publishes or claims needs one: ",
                    code["postroom key create NAME"],
                ),
                count=len(keys),
                part_id="api-keys",
            ),
            show_section(
                "Sessions",
                p["A session lasts seven days. Log out in the menu; changing the token ends all of them."],
            ),
            dialog("#new-key", aria_label="New key")[
                form(".inside", method="post", action="/access/new")[
                    h2["New key"],
                    text_field("name", "Name", placeholder="shop", required=True),
                    choice_field(
                        "scope",
                        "Only in scope",
                        [("", "all scopes"), *((each.slug, each.slug) for each in scopes)],
                    ),
                    div(".flow")[
                        [
                            label(".check")[
                                input(
                                    type="checkbox",
                                    name="permissions",
                                    value=each.value,
                                    checked=each in _USUAL,
                                ),
                                each.value,
                            ]
                            for each in Permission
                        ]
                    ],
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"], button(".primary")["Create key"]
                    ],
                ]
            ],
        ],
    )


_USUAL = frozenset({Permission.VIEW, Permission.PUBLISH, Permission.CONSUME})


def _row(each: ScopedKey, now: int) -> Renderable:
    key, alive = each.key, each.key.alive(now)
    return show_row(
        td[span[key.name], " ", span(".quiet.mono.small")[key.id[:8]]],
        td[show_state("completed", "valid") if alive else show_state("cancelled", "revoked or expired")],
        td[each.scope or "all"],
        td[
            span(".flow")[
                [show_tag(str(word)) for word in sorted(key.permissions)], key.role and show_tag(key.role)
            ]
        ],
        td(".num.quiet")[show_ago(key.created_at, now)],
        td(".num")[
            span(".gap")[
                act_button(
                    "New secret",
                    "/access/rotate",
                    {"key": key.id},
                    kind="plain",
                    confirm="Make a new secret? The old one stays good for a while.",
                ),
                act_button(
                    "Revoke",
                    "/access/revoke",
                    {"key": key.id},
                    kind="plain danger",
                    confirm=f"Revoke the key {key.name}? Programs that use it are shut out at once.",
                ),
            ]
            if alive
            else None
        ],
        row_id=f"key-{key.id}",
    )


async def create(visit: PortalVisit, form: SentForm) -> ActResult:
    draft = KeyDraft(name=form.word("name"), permissions=form.every("permissions"))
    issued = await visit.services.keys.create(visit.acting, draft, scope=form.word("scope") or None)
    return ActResult(
        said="This is the key's secret. It is shown this once.", secret=issued.secret, to="/access"
    )


async def rotate(visit: PortalVisit, form: SentForm) -> ActResult:
    issued = await visit.services.keys.rotate(visit.acting, form.word("key"))
    return ActResult(
        said="This is the new secret. It is shown this once.", secret=issued.secret, to="/access"
    )


async def revoke(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.keys.revoke(visit.acting, form.word("key"))
    return ActResult(said="Revoked.")


PART = PortalPart(
    {"/access": show_access},
    {"/access/new": create, "/access/rotate": rotate, "/access/revoke": revoke},
)
