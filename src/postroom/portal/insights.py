"""Insights from the lake: how much, how fast, what failed, what it cost; and running the pipeline."""

from datetime import date, timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec
from htpy import Node, Renderable, a, button, code, div, form, p, progress, span, td

from postroom.errors import InvalidField, NotFound
from postroom.portal.charts import draw_bars, draw_columns, draw_durations, draw_week
from postroom.portal.parts import (
    act_button,
    show_empty,
    show_figures,
    show_row,
    show_section,
    show_table,
    text_field,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, tell_money, tell_span

PRESETS = ((7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year"))
TOPICS = ("overview", "days", "latency", "hours", "agents", "costs", "failures", "handoffs", "queues")
AGAIN_MS = "1500"


class AskedDays(msgspec.Struct, frozen=True):
    """Both ends included; None where nobody asked."""

    since: date | None = None
    until: date | None = None

    @property
    def query(self) -> str:
        asked = {"since": self.since, "until": self.until}
        return urlencode({name: day.isoformat() for name, day in asked.items() if day})


async def show_insights(visit: PortalVisit) -> PageView:
    asked = _read_range(visit)
    state: dict[str, Any] = {}
    try:
        state = await visit.services.insights.state(visit.caller)
        found = await _read(visit, asked)
    except NotFound as problem:
        return _nothing(str(problem), state)
    if not found["overview"].get("messages") and not asked.query:
        return _nothing("The lake is empty", state)
    return PageView(
        title="Insights",
        way="/insights",
        lead="From the lake; what happened since its last run is not in it.",
        actions=[
            a(".button", href=f"/insights/export.json?{asked.query}", download=True)["Export"],
            act_button("Run the pipeline", "/insights/run", kind="primary"),
        ],
        body=_with_run(state, _choose_range(found["overview"]), _draw(found)),
    )


def _read_range(visit: PortalVisit) -> AskedDays:
    since, until = (_read_day(visit, name) for name in ("since", "until"))
    if since and until and since > until:
        raise InvalidField("since", f"{since} is after {until}")
    return AskedDays(since, until)


def _read_day(visit: PortalVisit, name: str) -> date | None:
    text = visit.query(name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidField(name, f"{text!r} is no day; write it as 2026-01-31") from None


async def _read(visit: PortalVisit, asked: AskedDays) -> dict[str, Any]:
    insight = visit.services.insights.insight
    return {topic: await insight(visit.caller, topic, asked.since, asked.until) for topic in TOPICS}


def _choose_range(total: dict[str, Any]) -> Renderable:
    """From day to day, or one of the usual spans that end where this one ends."""
    until = date.fromisoformat(total["until"])
    since = date.fromisoformat(total["since"])
    return form(".filters", method="get", action="/insights")[
        text_field("since", "From", since.isoformat(), type="date"),
        text_field("until", "To", until.isoformat(), type="date"),
        button["Show"],
        div(".tabs")[
            [
                a(
                    href="/insights?" + AskedDays(until - timedelta(days=days - 1), until).query,
                    aria_current="page" if (until - since).days + 1 == days else None,
                )[word]
                for days, word in PRESETS
            ]
        ],
    ]


def _with_run(state: dict[str, Any], *body: Node) -> Renderable:
    """While a run goes on: how far it has come, asked for again until it is over. Else figures rest, and are
    not asked for with every event."""
    working = state.get("running")
    last = (state.get("house") or {}).get("last") or {}
    if not working and (not last or last.get("ended_at")):
        problem = last.get("problem")
        return div(".stack-l", id="insights")[
            problem and div(".banner", role="status")[p["The last run failed: ", span(".quiet")[problem]]],
            body,
        ]
    step = (working or {}).get("progress") or {}
    done, total = step.get("done") or 0, step.get("total") or 0
    told = f"{step['step']}: {done:,} of {total:,}" if total else step.get("step") or "it starts"
    return div(".stack-l", id="insights", data_live=True, data_again=AGAIN_MS)[
        div(".banner", role="status")[
            p["The pipeline runs now. ", span(".quiet")[told]],
            progress(max=str(total), value=str(done), aria_label="How far it has come") if total else None,
        ],
        body,
    ]


def _nothing(problem: str, state: dict[str, Any]) -> PageView:
    return PageView(
        title="Insights",
        way="/insights",
        body=_with_run(
            state,
            show_empty(
                problem,
                p["The pipeline turns everything that happened into history, traces, costs and plots."],
                p[
                    "It runs in a process of its own and takes about half a minute the first time. By hand: ",
                    code["postroom pipeline run"],
                ],
            ),
            act_button("Run the pipeline", "/insights/run", kind="primary"),
        ),
    )


def _draw(found: dict[str, Any]) -> Node:
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
                ("open", [row.get("open") or 0 for row in days]),
                ("ended otherwise", [_ended_otherwise(row) for row in days]),
            ),
        ),
        show_section("How long messages wait", _latency(found["latency"], "wait")),
        show_section("How long they take from first to last", _latency(found["latency"], "total")),
        show_section("When they come (UTC)", _week(found["hours"])),
        show_section("Cost by day", _costs(found["costs"])),
        show_section("Cost by agent", _by(found["costs"], "agent")),
        show_section("Cost by model", _by(found["costs"], "model")),
        show_section("Agents", _agents(found["agents"]), count=len(found["agents"])),
        show_section("Why things failed", _failures(found["failures"]), count=len(found["failures"])),
        show_section("Who hands work to whom", _handoffs(found["handoffs"]), count=len(found["handoffs"])),
        show_section("Slowest queues", _queues(found["queues"])),
    ]


def _latency(rows: list[dict[str, Any]], what: str) -> Node:
    lines = [
        (word, [(row.get(f"{what}_{name}_us") or 0) / 1_000_000 for row in rows])
        for name, word in (("p50", "half within"), ("p95", "95 % within"), ("p99", "99 % within"))
    ]
    if not any(any(values) for _, values in lines):
        return p(".quiet")["Nothing ended in these days."]
    return draw_durations([str(row["day"])[5:10] for row in rows], *lines)


def _week(rows: list[dict[str, Any]]) -> Node:
    return draw_week({(row["weekday"], row["hour"]): row["messages"] for row in rows})


def _ended_otherwise(day: dict[str, Any]) -> int:
    return (day.get("messages") or 0) - (day.get("completed") or 0) - (day.get("open") or 0)


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
    found = await _read(visit, _read_range(visit))
    return PageView(title="", way="", body=None, file=msgspec.json.encode(found))


async def run(visit: PortalVisit, form: SentForm) -> ActResult:
    await visit.services.insights.start_run(visit.acting)
    return ActResult(said="The pipeline runs in a process of its own.", to="/insights")


PART = PortalPart({"/insights": show_insights, "/insights/export.json": export}, {"/insights/run": run})
