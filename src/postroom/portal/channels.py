"""Channels and pairing: which platforms are connected, who asked to write, who may."""

from typing import Any

from htpy import Renderable, button, code, dialog, div, form, h2, p, span, td

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


async def show_channels(visit: PortalVisit) -> PageView:
    status = await visit.services.system.status(visit.caller)
    pairing = await visit.services.pairing.list_all(visit.caller)
    return PageView(
        title="Channels",
        way="/channels",
        lead="People write from messaging platforms; a stranger gets a code and waits to be let in.",
        actions=button(".primary", data_do="dialog", data_opens="add-telegram")["Connect Telegram"],
        body=div(".stack-l")[
            show_section(
                "Platforms",
                show_table(
                    ["Channel", "State", "Problem", ""], [_channel(*each) for each in status.channels.items()]
                )
                if status.channels
                else show_empty(
                    "No platform is connected",
                    "Telegram works with a bot's token, from @BotFather: ",
                    code["postroom channel setup telegram"],
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
            dialog("#add-telegram", aria_label="Connect Telegram")[
                form(".inside", method="post", action="/channels/telegram")[
                    h2["Connect Telegram"],
                    p(".quiet")[
                        "Write to @BotFather on Telegram, say /newbot, and paste the token it gives you."
                    ],
                    text_field("token", "Token", type="password", autocomplete="off", required=True),
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"], button(".primary")["Connect"]
                    ],
                ]
            ],
        ],
    )


def _channel(name: str, status: dict[str, Any]) -> Renderable:
    runs = bool(status.get("running"))
    return show_row(
        td[name],
        td[show_state("completed", "connected") if runs else show_state("cancelled", "stopped")],
        td(".text")[str(status.get("problem") or "")],
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


async def connect_telegram(visit: PortalVisit, form: SentForm) -> ActResult:
    shown = await visit.services.settings.show(visit.caller)
    enabled = list((shown.get("channels") or {}).get("enabled") or ())
    await visit.services.settings.set(visit.acting, "channels.telegram.bot_token", form.word("token"))
    if "telegram" not in enabled:
        await visit.services.settings.set(visit.acting, "channels.enabled", [*enabled, "telegram"])
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
        "/channels/telegram": connect_telegram,
        "/channels/approve": approve,
        "/channels/dismiss": dismiss,
        "/channels/revoke": revoke,
    },
)
