"""Keys of programs: made, renewed and revoked; the secret is shown once. And how to log in elsewhere."""

import re

from htpy import Renderable, button, code, dialog, div, form, h2, input, label, p, span, td

from postroom.api.auth.logins import PERSON_NAME, KnownSession
from postroom.clock import SECOND
from postroom.errors import InvalidField
from postroom.kernel.access.permissions import Permission
from postroom.portal.charts import draw_qr
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
from postroom.portal.words import show_ago, tell_count
from postroom.services.callers import PersonRole
from postroom.services.keys import KeyDraft, ScopedKey
from postroom.services.office_context import require_owner


async def show_access(visit: PortalVisit) -> PageView:
    keys = await visit.services.keys.list_all(visit.caller)
    scopes = await visit.services.scopes.list_all(visit.caller)
    sessions, own = await visit.logins.list_sessions(), await _own_session(visit)
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
                "People who are logged in",
                show_table(
                    ["Who", "May", ("Since", "num"), ""],
                    [_session_row(visit, name, each, own=name == own) for name, each in sessions.items()],
                ),
                p(".quiet")["A session lasts seven days. A new token ends all of them."],
                count=len(sessions),
                part_id="sessions",
                tools=span(".gap")[
                    button(data_do="dialog", data_opens="invite")["Let somebody in"],
                    act_button("Log in on a phone", "/access/phone"),
                    act_button(
                        "Log out everywhere else",
                        "/access/end-others",
                        confirm="End every session but this one? Everybody else must log in again.",
                    ),
                ],
            ),
            dialog("#invite", aria_label="Let somebody in")[
                form(".inside", method="post", action="/access/invite")[
                    h2["Let somebody in"],
                    p(".quiet")["They get a link that works once, within a quarter of an hour."],
                    text_field("name", "Name", placeholder="Ann", required=True, maxlength="40"),
                    choice_field(
                        "role",
                        "May",
                        [
                            ("member", "member: writes, answers, works on tasks, stops turns"),
                            ("viewer", "viewer: looks, and changes nothing"),
                        ],
                    ),
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"], button(".primary")["Make the link"]
                    ],
                ]
            ],
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


def _session_row(visit: PortalVisit, name: str, each: KnownSession, *, own: bool) -> Renderable:
    return show_row(
        td[each.person or "You", own and span(".quiet")["  this browser"]],
        td[show_tag(each.role)],
        td(".num.quiet")[show_ago(each.began_at * SECOND, visit.now)],
        td(".num")[
            act_button(
                "End",
                "/access/end",
                {"session": name},
                kind="plain danger",
                confirm="End this session? Its browser must log in again.",
            )
        ],
        row_id=f"session-{name}",
    )


async def _own_session(visit: PortalVisit) -> str:
    session = await visit.logins.session(visit.request.headers.get("cookie", ""))
    return session.name if session is not None else ""


async def invite(visit: PortalVisit, form: SentForm) -> ActResult:
    require_owner(visit.caller)
    name, role = form.word("name"), form.word("role")
    if not re.fullmatch(PERSON_NAME, name):
        raise InvalidField("name", "must be 1 to 40 letters, digits, spaces, dots or hyphens")
    if role not in tuple(PersonRole):
        raise InvalidField("role", f"is {role!r}, must be one of {', '.join(PersonRole)}")
    code = await visit.logins.new_link(PersonRole(role), name)
    return _show_link(
        visit, f"This link lets {name} in as a {role}, once, within a quarter of an hour.", code
    )


async def open_phone(visit: PortalVisit, form: SentForm) -> ActResult:
    require_owner(visit.caller)
    said = "Read this with a phone: it logs you in there, once, within a quarter of an hour."
    return _show_link(visit, said, await visit.logins.new_link())


def _show_link(visit: PortalVisit, said: str, code: str) -> ActResult:
    base = visit.request.base_url
    if base.hostname in ("127.0.0.1", "::1", "localhost"):
        said += " Only this machine reaches the server as it is: see api.host and api.remote in the settings."
    link = f"{base}login?code={code}"
    return ActResult(said=said, secret=link, picture=draw_qr(link), to="/access")


async def end_session(visit: PortalVisit, form: SentForm) -> ActResult:
    require_owner(visit.caller)
    await visit.logins.end(form.word("session"))
    return ActResult(said="That session has ended.")


async def end_others(visit: PortalVisit, form: SentForm) -> ActResult:
    require_owner(visit.caller)
    ended = await visit.logins.end_others(await _own_session(visit))
    return ActResult(said=f"{tell_count(ended, 'session')} ended.")


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
    {
        "/access/new": create,
        "/access/rotate": rotate,
        "/access/revoke": revoke,
        "/access/invite": invite,
        "/access/phone": open_phone,
        "/access/end": end_session,
        "/access/end-others": end_others,
    },
)
