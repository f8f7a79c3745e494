"""Schedules: what is sent to whom and when, in plain words, with the next times."""

from datetime import datetime
from zoneinfo import ZoneInfo

from htpy import Renderable, button, code, dialog, div, form, h2, p, span, td

from postroom.clock import SECOND
from postroom.office.schedules.model import Schedule
from postroom.portal.parts import (
    act_button,
    area_field,
    choice_field,
    show_empty,
    show_row,
    show_state,
    show_table,
    text_field,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, tell_ago

PRESETS = (
    ("", "as written below"),
    ("0 * * * *", "every hour"),
    ("0 9 * * *", "every day at 9"),
    ("30 8 * * 1-5", "on weekdays at 8:30"),
    ("0 9 * * 1", "every Monday at 9"),
    ("0 9 1 * *", "on the first of the month at 9"),
)
DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def tell_cron(cron: str) -> str:
    """The common shapes in words; others as they are written."""
    fields = cron.split()
    if len(fields) != 5:
        return cron
    minute, hour, day, month, weekday = fields
    if month != "*":
        return cron
    if hour == "*" and day == weekday == "*":
        if minute == "*":
            return "every minute"
        if minute.startswith("*/") and minute[2:].isdecimal():
            return f"every {minute[2:]} minutes"
        return f"every hour at minute {minute}" if minute.isdecimal() else cron
    if not (minute.isdecimal() and hour.isdecimal()):
        return cron
    at = f"at {int(hour):02}:{int(minute):02}"
    if day == weekday == "*":
        return f"every day {at}"
    if day == "*":
        if weekday in ("1-5", "MON-FRI"):
            return f"on weekdays {at}"
        return f"every {DAYS[int(weekday)]} {at}" if weekday.isdecimal() and int(weekday) < 8 else cron
    return f"on day {day} of the month {at}" if weekday == "*" and day.isdecimal() else cron


async def show_schedules(visit: PortalVisit) -> PageView:
    plans = await visit.services.schedules.list_all(visit.caller)
    agents = await visit.services.agents.directory(visit.caller)
    teams = await visit.services.teams.list_all(visit.caller)
    names = [*(each.id for each in agents), *teams]
    rows = [
        _row(plan, await visit.services.schedules.preview(visit.caller, plan.id, 3), visit.now)
        for plan in plans
    ]
    return PageView(
        title="Schedules",
        way="/schedules",
        actions=button(".primary", data_do="dialog", data_opens="new-schedule")["New schedule"],
        body=[
            div(id="schedules", data_live=True)[
                show_table(["Name", "For", "When", "Says", "Next", "", ""], rows)
                if plans
                else show_empty(
                    "No schedules yet",
                    "A schedule writes to an agent or team by itself, by the clock of a time zone: ",
                    code['postroom schedule add coder "…" --cron "30 8 * * 1-5"'],
                )
            ],
            dialog("#new-schedule", aria_label="New schedule")[
                form(".inside", method="post", action="/schedules/new")[
                    h2["New schedule"],
                    text_field("label", "Name", placeholder="morning", required=True),
                    choice_field("to", "For", [(each, f"@{each}") for each in names]),
                    area_field("text", "What to write", rows="3", required=True),
                    choice_field("preset", "When", PRESETS, "30 8 * * 1-5"),
                    text_field(
                        "cron", "Or as cron", hint="minute hour day month weekday", placeholder="0 9 * * *"
                    ),
                    text_field("zone", "Time zone", "UTC"),
                    p(".quiet.small")["Times that nobody was there for are made up for once."],
                    div(".acts")[
                        button(type="button", data_do="close")["Cancel"],
                        button(".primary")["Create schedule"],
                    ],
                ]
            ],
        ],
    )


def _row(plan: Schedule, upcoming: list[int], now: int) -> Renderable:
    name = {"name": plan.id}
    when = tell_cron(plan.cron) if plan.cron else f"once, {_local(plan.at or 0, plan.zone)}"
    following = "\n".join(_local(each, plan.zone) for each in upcoming)
    return show_row(
        td(".nowrap")[plan.label],
        td(".nowrap")[f"@{plan.to}"],
        td(".nowrap")[span(title=plan.cron)[when], span(".quiet.small")[f" {plan.zone}"]],
        td(".text")[cut(plan.text, 120)],
        td(".nowrap.quiet")[span(title=following)[tell_ago(upcoming[0], now) if upcoming else "never"]],
        td[show_state("completed", "on") if plan.enabled else show_state("cancelled", "off")],
        td(".num")[
            span(".gap")[
                act_button("Run now", "/schedules/run", name, key="r", kind="plain"),
                act_button(
                    "Pause" if plan.enabled else "Resume",
                    "/schedules/switch",
                    {**name, "on": "" if plan.enabled else "1"},
                    kind="plain",
                ),
                act_button(
                    "Delete",
                    "/schedules/remove",
                    name,
                    kind="plain danger",
                    confirm=f"Delete the schedule {plan.label}?",
                ),
            ]
        ],
        row_id=f"schedule-{plan.id}",
    )


def _local(moment: int, zone: str) -> str:
    return datetime.fromtimestamp(moment / SECOND, ZoneInfo(zone)).strftime("%a %Y-%m-%d %H:%M")


async def add(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.schedules.add(
        visit.acting,
        form.word("to"),
        form.text("text"),
        label=form.word("label"),
        cron=form.word("cron") or form.word("preset"),
        zone=form.word("zone") or "UTC",
    )
    return ActResult(said="The schedule is on.", to="/schedules")


async def switch(visit: PortalVisit, form: SentForm) -> ActResult:
    plan = await visit.services.schedules.change(
        visit.acting, form.word("name"), enabled=bool(form.word("on"))
    )
    return ActResult(said=f"{plan.label} is {'on' if plan.enabled else 'off'}.")


async def run(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.schedules.run(visit.acting, form.word("name"))
    return ActResult(said="Sent now.")


async def remove(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.schedules.remove(visit.acting, form.word("name"))
    return ActResult(said="Deleted.")


PART = PortalPart(
    {"/schedules": show_schedules},
    {"/schedules/new": add, "/schedules/switch": switch, "/schedules/run": run, "/schedules/remove": remove},
)
