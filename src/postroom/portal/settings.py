"""Settings: the plain ones as a form, all of them as JSON. What is wrong is refused and changes nothing."""

from typing import Any

import msgspec
from htpy import Renderable, a, button, code, div, form, input, p, span, td

from postroom.errors import InvalidField
from postroom.portal.parts import area_field, show_row, show_section, show_table
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.services.settings import fingerprint
from postroom.settings.model import Settings
from postroom.settings.part import SettingsPart, fields_of

SECTIONS = ("budgets", "guards", "limits", "retention", "api", "logs", "monitoring", "pipeline")


async def show_settings(visit: PortalVisit) -> PageView:
    document = await visit.services.settings.show(visit.caller)
    if visit.query("view") == "json":
        body: Any = form(".stack", method="post", action="/settings/replace")[
            input(type="hidden", name="seen", value=fingerprint(document)),
            area_field(
                "document",
                "settings.json",
                msgspec.json.format(msgspec.json.encode(document), indent=2).decode(),
                hint="secrets show as ********, and stay as they are",
                rows="32",
                class_="mono",
                spellcheck="false",
            ),
            div[button(".primary", data_confirm="Replace all settings with this?")["Save all"]],
        ]
    else:
        body = [_section(name, visit.settings, document.get(name) or {}) for name in SECTIONS]
    here = visit.query("view")
    return PageView(
        title="Settings",
        way="/settings",
        lead=[
            "What is not set has its default, shown in grey. The same by hand: ",
            code["postroom settings list"],
        ],
        body=[
            div(".tabs")[
                a(href="/settings", aria_current="page" if here != "json" else None)["Form"],
                a(href="/settings?view=json", aria_current="page" if here == "json" else None)["JSON"],
            ],
            div(".stack-l")[body],
        ],
    )


def _section(name: str, settings: Settings, written: dict[str, Any]) -> Renderable:
    """The plain values of one part of the settings; deeper ones are for JSON."""
    part = getattr(settings, name, None)
    fields = fields_of(type(part)) if isinstance(part, SettingsPart) else {}
    rows: list[Renderable] = []
    for field, about in fields.items():
        value = getattr(part, field)
        if value is not None and not isinstance(value, str | int | float | bool):
            continue
        rows.append(_setting(f"{name}.{field}", value, field in written, about.meaning))
    return show_section(
        name.capitalize(), show_table(["Setting", "Value", ""], rows) if rows else p(".quiet")["–"]
    )


def _setting(name: str, value: Any, is_set: bool, about: str) -> Renderable:
    shown = "" if value is None else str(value).lower() if isinstance(value, bool) else f"{value}"
    form_id = f"set-{name}"
    return show_row(
        td(".nowrap")[
            span(class_=None if is_set else "quiet")[code[name]], about and p(".quiet.small")[about]
        ],
        td[
            form(id=form_id, method="post", action="/settings/set")[
                input(type="hidden", name="name", value=name),
                input(
                    name="value",
                    value=shown if is_set else "",
                    placeholder=shown or "not set",
                    aria_label=name,
                ),
            ]
        ],
        td(".num")[
            span(".gap")[
                button(form=form_id)["Save"],
                button(".plain", form=form_id, formaction="/settings/unset")["Default"] if is_set else None,
            ]
        ],
    )


def _value(text: str) -> Any:
    """As JSON where it is some, else as text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


async def set_one(visit: PortalVisit, form: SentForm) -> ActResult:
    name, text = form.word("name"), form.word("value")
    if not text:
        return ActResult(said="Write a value first.")
    await visit.services.settings.set(visit.acting, name, _value(text))
    return ActResult(said=f"{name} is {text}.", to="/settings")


async def unset(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.settings.unset(visit.acting, form.word("name"))
    return ActResult(said="Its default holds again.", to="/settings")


async def replace(visit: PortalVisit, form: SentForm) -> ActResult:
    try:
        document = msgspec.json.decode(form.text("document"), type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InvalidField("document", f"is no JSON object: {error}") from None
    await visit.services.settings.replace(visit.acting, document, seen=form.word("seen") or None)
    return ActResult(said="Saved.")


PART = PortalPart(
    {"/settings": show_settings},
    {"/settings/set": set_one, "/settings/unset": unset, "/settings/replace": replace},
)
