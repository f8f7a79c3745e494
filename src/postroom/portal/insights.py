"""Insights from the lake: how much, how fast, what failed, what it cost; and running the pipeline."""

from datetime import date, timedelta
from typing import Any

import msgspec
from htpy import Node, Renderable, a, code, div, form, p, td

from postroom.errors import PostroomError
from postroom.portal.charts import draw_bars, draw_columns
from postroom.portal.parts import (
    act_button,
    choice_field,
    show_empty,
    show_figures,
    show_row,
    show_section,
    show_table,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, tell_money, tell_span

RANGES = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "a year"))
TOPICS = ("overview", "days", "agents", "costs", "failures", "handoffs", "queues")


async def show_insights(visit: PortalVisit) -> PageView:
    span = visit.query("days", "30")
    days = int(span) if span in dict(RANGES) else 30
    try:
        state = await visit.services.insights.state(visit.caller)
        found = await _read(visit, days)
    except PostroomError as problem:
        return _nothing(str(problem))
    if not found:
        return _nothing("", state)
    return PageView(
        title="Insights",
        way="/insights",
        lead=_standing(state),
        actions=[
            form(method="get", action="/insights")[
                choice_field("days", "", RANGES, str(days), data_submit=True, aria_label="Range")
            ],
            a(".button", href=f"/insights/export.json?days={days}", download=True)["Export"],
            act_button("Run the pipeline", "/insights/run", kind="primary"),
        ],
        body=div(".stack-l", id="insights", data_live=True)[_drawn(found)],
    )


async def _read(visit: PortalVisit, days: int) -> dict[str, Any]:
    """All topics, or nothing when there is no message in the lake."""
    first = await visit.services.insights.insight(visit.caller, "overview")
    if not first.get("messages"):
        return {}
    newest = await visit.services.insights.insight(visit.caller, "days")
    until = max((date.fromisoformat(str(row["day"])[:10]) for row in newest), default=None)
    since = until - timedelta(days=days - 1) if until else None
    return {
        topic: await visit.services.insights.insight(visit.caller, topic, since, until) for topic in TOPICS
    }


def _standing(state: dict[str, Any]) -> str:
    run = (state.get("house") or {}).get("running")
    return (
        "The pipeline runs now." if run else "From the lake; what happened since its last run is not in it."
    )


def _nothing(problem: str, state: dict[str, Any] | None = None) -> PageView:
    return PageView(
        title="Insights",
        way="/insights",
        body=div(id="insights", data_live=True)[
            show_empty(
                problem or "The lake is empty",
                p["The pipeline turns everything that happened into history, traces, costs and plots."],
                p[
                    "It runs in a process of its own and takes about half a minute the first time. By hand: ",
                    code["postroom pipeline run"],
                ],
                _standing(state) if state else None,
            ),
            act_button("Run the pipeline", "/insights/run", kind="primary"),
        ],
    )


def _drawn(found: dict[str, Any]) -> Node:
    total, days = found["overview"], found["days"]
    labels = [str(row["day"])[5:10] for row in days]
    return [
        show_figures(
            ("messages", f"{total.get('messages') or 0:,}"),
            ("conversations", f"{total.get('conversations') or 0:,}"),
            ("median wait", _span(total.get("wait_p50_us"))),
            ("95 % done within", _span(total.get("total_p95_us"))),
            ("dead", f"{total.get('dead') or 0:,}"),
            ("cost", tell_money(float(total.get("cost_usd") or 0))),
        ),
        show_section(
            "Messages by day",
            draw_columns(
                labels,
                ("completed", [row.get("completed") or 0 for row in days]),
                ("other", [max(0, (row.get("messages") or 0) - (row.get("completed") or 0)) for row in days]),
            ),
        ),
        show_section("Cost by day", _costs(found["costs"])),
        show_section("Cost by agent", _by(found["costs"], "agent")),
        show_section("Cost by model", _by(found["costs"], "model")),
        show_section("Agents", _agents(found["agents"]), count=len(found["agents"])),
        show_section("Why things failed", _failures(found["failures"]), count=len(found["failures"])),
        show_section("Who hands work to whom", _handoffs(found["handoffs"]), count=len(found["handoffs"])),
        show_section("Slowest queues", _queues(found["queues"])),
    ]


def _span(micros: float | None) -> str:
    return tell_span(micros / 1_000_000) if micros is not None else "–"


def _costs(rows: list[dict[str, Any]]) -> Node:
    by_day: dict[str, float] = {}
    for row in rows:
        day = str(row["day"])[5:10]
        by_day[day] = by_day.get(day, 0.0) + float(row.get("cost_usd") or 0)
    if not any(by_day.values()):
        return p(".quiet")["Nothing was spent."]
    return draw_columns(list(by_day), ("dollars", list(by_day.values())), unit="$")


def _by(rows: list[dict[str, Any]], name: str) -> Node:
    sums: dict[str, float] = {}
    for row in rows:
        key = str(row.get(name) or "–")
        sums[key] = sums.get(key, 0.0) + float(row.get("cost_usd") or 0)
    ranked = sorted(sums.items(), key=lambda each: -each[1])[:12]
    return (
        draw_bars([(key, value, tell_money(value)) for key, value in ranked]) if ranked else p(".quiet")["–"]
    )


def _agents(rows: list[dict[str, Any]]) -> Renderable:
    return show_table(
        [
            "Agent",
            ("Messages", "num"),
            ("Turns", "num"),
            ("Failed", "num"),
            ("Tokens", "num"),
            ("Cost", "num"),
        ],
        [
            show_row(
                td[f"@{row['agent']}"],
                td(".num")[f"{row.get('messages') or 0:,}"],
                td(".num")[f"{row.get('turns') or 0:,}"],
                td(".num")[f"{row.get('failed_turns') or 0:,}"],
                td(".num")[f"{row.get('tokens') or 0:,}"],
                td(".num")[tell_money(float(row.get("cost_usd") or 0))],
            )
            for row in rows[:50]
        ],
    )


def _failures(rows: list[dict[str, Any]]) -> Renderable:
    if not rows:
        return show_empty("Nothing failed")
    return show_table(
        ["Cause", "Queue", ("Messages", "num"), ("Dead", "num"), ("Recovered", "num"), "Example"],
        [
            show_row(
                td[str(row["error_class"])],
                td(".nowrap")[f"{row['scope']}/{row['queue']}"],
                td(".num")[f"{row.get('messages') or 0:,}"],
                td(".num")[f"{row.get('dead') or 0:,}"],
                td(".num")[f"{row.get('recovered') or 0:,}"],
                td(".text.small")[
                    a(".link.mono", href=f"/messages/{row['example_id']}")[str(row["example_id"])[-12:]]
                    if row.get("example_id")
                    else None
                ],
            )
            for row in rows[:30]
        ],
    )


def _handoffs(rows: list[dict[str, Any]]) -> Node:
    ranked = sorted(rows, key=lambda row: -(row.get("handoffs") or 0))[:15]
    if not ranked:
        return p(".quiet")["Nobody handed anything on."]
    return draw_bars(
        [
            (cut(f"@{row['from_agent']} → @{row['to_agent']}", 28), row["handoffs"], f"{row['handoffs']:,}")
            for row in ranked
        ]
    )


def _queues(rows: list[dict[str, Any]]) -> Renderable:
    ranked = sorted(rows, key=lambda row: -(row.get("worst_wait_p95_us") or 0))[:10]
    return show_table(
        ["Queue", ("Messages", "num"), ("Dead", "num"), ("Worst hour: 95 % waited less than", "num")],
        [
            show_row(
                td[f"{row['scope']}/{row['queue']}"],
                td(".num")[f"{row.get('messages') or 0:,}"],
                td(".num")[f"{row.get('dead') or 0:,}"],
                td(".num")[_span(row.get("worst_wait_p95_us"))],
            )
            for row in ranked
        ],
    )


async def export(visit: PortalVisit) -> PageView:
    span = visit.query("days", "30")
    found = await _read(visit, int(span) if span in dict(RANGES) else 30)
    return PageView(title="", way="", body=None, file=msgspec.json.encode(found))


async def run(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.insights.start_run(visit.acting)
    return ActResult(said="The pipeline runs in a process of its own. Figures appear when it is done.")


PART = PortalPart({"/insights": show_insights, "/insights/export.json": export}, {"/insights/run": run})
