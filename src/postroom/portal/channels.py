"""Channels and pairing: which platforms are connected, who asked to write, who may."""

from collections.abc import Container
from typing import Any

from htpy import Renderable, button, code, dialog, div, form, h2, input, p, span, td
from markupsafe import Markup

from postroom.errors import InvalidField
from postroom.portal.charts import draw_qr
from postroom.portal.parts import (
    act_button,
    show_empty,
    show_row,
    show_section,
    show_state,
    show_table,
    text_field,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import show_ago
from postroom.settings.channel_guides import GUIDES, ChannelGuide
from postroom.settings.secrets import names_secret


async def show_channels(visit: PortalVisit) -> PageView:
    status = await visit.services.system.status(visit.caller)
    pairing = await visit.services.pairing.list_all(visit.caller)
    return PageView(
        title="Channels",
        way="/channels",
        lead="People write from messaging platforms; a stranger gets a code and waits to be let in.",
        body=div(".stack-l")[
            show_section(
                "Platforms",
                show_table(
                    ["Channel", "State", "Problem", ""], [_channel(*each) for each in status.channels.items()]
                )
                if status.channels
                else show_empty(
                    "No platform is connected",
                    "Connect one below, or at the shell: ",
                    code["postroom channel setup"],
                ),
                count=len(status.channels),
                part_id="channels",
            ),
            show_section(
                "Waiting to be let in",
                show_table(
                    ["Who", "Channel", "Code", ("Since", "num"), ""],
                    [
                        show_row(
                            td[each.sender or each.sender_id],
                            td[each.channel],
                            td[code[each.code]],
                            td(".num.quiet")[show_ago(each.created_at, visit.now)],
                            td(".num")[
                                span(".gap")[
                                    act_button(
                                        "Let them write",
                                        "/channels/approve",
                                        {"code": each.code},
                                        key="1",
                                        kind="primary",
                                    ),
                                    act_button(
                                        "Dismiss",
                                        "/channels/dismiss",
                                        {"code": each.code},
                                        key="2",
                                        kind="plain",
                                    ),
                                ]
                            ],
                            row_id=f"code-{each.code}",
                        )
                        for each in pairing.pending
                    ],
                )
                if pairing.pending
                else p(".quiet")["Nobody waits."],
                count=len(pairing.pending),
                part_id="pending",
            ),
            show_section(
                "May write",
                show_table(
                    ["Who", "Channel", ("Since", "num"), ""],
                    [
                        show_row(
                            td[each.sender or each.sender_id],
                            td[each.channel],
                            td(".num.quiet")[show_ago(each.approved_at, visit.now)],
                            td(".num")[
                                act_button(
                                    "Revoke",
                                    "/channels/revoke",
                                    {"channel": each.channel, "sender": each.sender_id},
                                    kind="plain danger",
                                    confirm=f"{each.sender or each.sender_id} may not write any more?",
                                )
                            ],
                        )
                        for each in pairing.approved
                    ],
                )
                if pairing.approved
                else p(".quiet")["Nobody but you, in this portal and at the shell."],
                count=len(pairing.approved),
                part_id="approved",
            ),
            show_section("Connect a platform", _guides(status.channels)),
        ],
    )


def _guides(connected: Container[str]) -> list[Renderable]:
    """Every platform with what it takes, each with a form of its own."""
    return [
        show_table(
            ["Platform", "What it takes", ""],
            [
                show_row(
                    td(".nowrap")[guide.name],
                    td(".text.quiet")[guide.where],
                    td(".num")[
                        button(".plain", data_do="dialog", data_opens=f"add-{name}")[
                            "Change" if name in connected else "Connect"
                        ]
                    ],
                )
                for name, guide in GUIDES.items()
            ],
        ),
        *(_form(name, guide) for name, guide in GUIDES.items()),
    ]


def _form(name: str, guide: ChannelGuide) -> Renderable:
    return dialog(id=f"add-{name}", aria_label=f"Connect {guide.name}")[
        form(".inside", method="post", action="/channels/connect")[
            h2[f"Connect {guide.name}"],
            p(".quiet")[guide.where],
            input(type="hidden", name="platform", value=name),
            [
                text_field(
                    field,
                    field.replace("_", " ").capitalize(),
                    type="password" if names_secret(field) else "text",
                    autocomplete="off",
                    required=True,
                )
                for field in guide.asks
            ],
            div(".acts")[button(type="button", data_do="close")["Cancel"], button(".primary")["Connect"]],
        ]
    ]


def _channel(name: str, status: dict[str, Any]) -> Renderable:
    runs = bool(status.get("running"))
    return show_row(
        td[name],
        td[show_state("completed", "connected") if runs else show_state("cancelled", "stopped")],
        td(".text")[
            str(status.get("problem") or ""),
            div[Markup(draw_qr(str(scanned)))] if (scanned := status.get("pairing")) else None,
        ],
        td(".num")[
            span(".gap")[
                act_button("Restart" if runs else "Start", "/channels/start", {"name": name}, kind="plain"),
                act_button("Stop", "/channels/stop", {"name": name}, kind="plain") if runs else None,
            ]
        ],
        row_id=f"channel-{name}",
    )


async def start(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.system.restart_channel(visit.acting, form.word("name"))
    return ActResult(said=f"{form.word('name')} is connected.")


async def stop(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.system.stop_channel(visit.acting, form.word("name"))
    return ActResult(said=f"{form.word('name')} is stopped.")


async def connect(visit: PortalVisit, form: SentForm) -> ActResult:
    """All of it at once, so that no half of a channel is ever switched on."""
    name = form.word("platform")
    if name not in GUIDES:
        raise InvalidField("platform", f"is {name!r}; there are {', '.join(GUIDES)}")
    guide = GUIDES[name]
    given = {field: form.word(field) for field in guide.asks}
    for field, value in given.items():
        if not value:
            raise InvalidField(field, f"{guide.name} needs it")
    if problem := guide.find_problem(given.get("bot_token", "")):
        raise InvalidField("bot_token", problem)
    own = dict((await visit.services.settings.show(visit.caller)).get("channels") or {})
    own["enabled"] = list(dict.fromkeys([*(own.get("enabled") or ()), name]))
    own[name] = {**(own.get(name) or {}), **given}
    await visit.services.settings.merge(visit.acting, {"channels": own})
    return ActResult(said="Saved. The channel connects in a moment.", to="/channels")


async def approve(visit: PortalVisit, form: SentForm) -> ActResult:
    found = await visit.services.pairing.approve(visit.acting, form.word("code"))
    return ActResult(said=f"{found.sender or found.sender_id} may write now.")


async def dismiss(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.pairing.dismiss(visit.acting, form.word("code"))
    return ActResult(said="Dismissed.")


async def revoke(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.pairing.revoke(visit.acting, form.word("channel"), form.word("sender"))
    return ActResult(said="Revoked.")


PART = PortalPart(
    {"/channels": show_channels},
    {
        "/channels/start": start,
        "/channels/stop": stop,
        "/channels/connect": connect,
        "/channels/approve": approve,
        "/channels/dismiss": dismiss,
        "/channels/revoke": revoke,
    },
)
