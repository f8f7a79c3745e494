"""The report: one page of HTML that needs nothing else, to be shown to a colleague or sent by mail."""

from collections.abc import Callable
from datetime import date, timedelta
from html import escape
from typing import Any

from postroom.pipeline.serving import charts, insights
from postroom.pipeline.serving.charts import Series
from postroom.pipeline.serving.engine import QueryEngine
from postroom.pipeline.serving.insights import Period
from postroom.pipeline.serving.traces import slowest

STYLE = """
:root{--ink:#1d2433;--soft:#667085;--line:#e4e7ec;--page:#f6f7f9;--card:#fff;
--c0:#3b6fd4;--c1:#2a9d8f;--c2:#e9a13b;--c3:#d1495b;--c4:#8067b7;--c5:#7a8aa0}
@media(prefers-color-scheme:dark){:root{--ink:#e8ebf1;--soft:#98a2b3;--line:#2b3342;--page:#12161f;--card:#1a202c;
--c0:#6d9bf1;--c1:#4cc3b4;--c2:#f0b95e;--c3:#ea7382;--c4:#a68fe0;--c5:#93a1b5}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1180px;margin:0 auto;padding:32px 20px 60px}
h1{font-size:26px;margin:0 0 2px;letter-spacing:-.01em}h2{font-size:15px;margin:0 0 2px}
p{margin:0 0 10px;color:var(--soft);font-size:13px}.lead{font-size:14px;margin-bottom:22px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin-bottom:14px}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:12px 16px}.tile b{display:block;font-size:24px;font-weight:650;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:12.5px}.tile i{font-style:normal;font-size:12px;color:var(--soft);display:block}
.card.short{margin:0 0 14px;padding:14px 18px 14px 36px}.short li{margin:2px 0}.short b{font-weight:600}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,500px),1fr));gap:14px}
.card{padding:16px 18px}.wide{grid-column:1/-1}svg{width:100%;height:auto;display:block}
.square svg{max-width:430px;margin:auto}
.grid{stroke:var(--line);stroke-width:1}.axis{fill:var(--soft);font-size:11px}.name{fill:var(--ink);font-size:12px}
.tag{fill:var(--ink);font-size:11px;paint-order:stroke;stroke:var(--card);stroke-width:4px}
.node{stroke:var(--card);stroke-width:2}
.t0{fill:var(--c0)}.t1{fill:var(--c1)}.t2{fill:var(--c2)}.t3{fill:var(--c3)}.t4{fill:var(--c4)}.t5{fill:var(--c5)}
.l0,.l1,.l2,.l3,.l4,.l5{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}.l5{stroke:var(--c5)}
.b0{background:var(--c0)}.b1{background:var(--c1)}.b2{background:var(--c2)}.b3{background:var(--c3)}
.b4{background:var(--c4)}.b5{background:var(--c5)}
.legend{display:flex;flex-wrap:wrap;gap:4px 16px;list-style:none;margin:6px 0 0;padding:0;font-size:12.5px;color:var(--soft)}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:6px}
table{border-collapse:collapse;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:6px 8px;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:500}th:first-child,td:first-child,.text{text-align:left}
td.text{white-space:normal}tr:last-child td{border:0}.scroll{overflow-x:auto}footer{margin-top:26px;color:var(--soft);font-size:12px}
"""
_WEEKDAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_WEEK = tuple(name[:3] for name in _WEEKDAYS)
_TONES = 6


def report(engine: QueryEngine, at: Period, made: str) -> str:
    at = _days_there(engine, at)
    total = insights.overview(engine, at)
    before = _days_before(engine, at)
    cards = [
        _messages(engine, at),
        _answers(engine, at),
        _costs(engine, at),
        _rhythm(engine, at),
        _handoffs(engine, at),
        _failures(engine, at),
        _agents(engine, at),
        _promises(engine, at),
        _slowest(engine, at),
        _expectations(engine),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Postroom: {at.since} to {at.until}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>What happened in the post room</h1><p class="lead">{_day(at.since)} to {_day(at.until)}, UTC</p>'
        f'<div class="tiles">{"".join(_tiles(total, before))}</div>'
        f"{_in_short(engine, at, total)}"
        f'<div class="cards">{"".join(card for card in cards if card)}</div>'
        f"<footer>Made {escape(made)} by Postroom from {total['messages']:,} messages. "
        "Everything on this page is in this file.</footer></main></body></html>"
    )


def _days_there(engine: QueryEngine, at: Period) -> Period:
    """The part of the period in which anything happened: nobody is to read emptiness as calm."""
    days = insights.days(engine, at)
    if not days:
        return at
    first, last = date.fromisoformat(days[0]["day"]), date.fromisoformat(days[-1]["day"])
    return Period(max(at.since, first), min(at.until, last))


def _days_before(engine: QueryEngine, at: Period) -> dict[str, Any]:
    """As many days before, to compare with; nothing unless all of them are there."""
    start = at.since - (at.until - at.since + timedelta(days=1))
    first = insights.first_day(engine)
    if first is None or first > start:
        return {}
    return insights.overview(engine, Period(start, at.since - timedelta(days=1)))


def _day(value: Any) -> str:
    return f"{value:%-d %B %Y}"


def _in_short(engine: QueryEngine, at: Period, total: dict[str, Any]) -> str:
    """What a person would tell who has read the whole page."""
    said = [
        sentence
        for tell in (_busiest, _dearest, _most_waiting, _commonest_failure)
        if (sentence := tell(engine, at, total))
    ]
    items = "".join(f"<li>{sentence}</li>" for sentence in said)
    return f'<ul class="card short">{items}</ul>' if said else ""


def _busiest(engine: QueryEngine, at: Period, total: dict[str, Any]) -> str:
    days, hours = insights.days(engine, at), insights.hours(engine, at)
    if not days or not hours:
        return ""
    day = max(days, key=lambda row: row["messages"])
    hour = max(hours, key=lambda row: row["messages"])
    return (
        f"The busiest day was <b>{_day(date.fromisoformat(day['day']))}</b> with {day['messages']:,} messages; "
        f"most come in on {_WEEKDAYS[hour['weekday'] - 1]} around {hour['hour']:02d}:00 UTC."
    )


def _dearest(engine: QueryEngine, at: Period, total: dict[str, Any]) -> str:
    spent: dict[str, float] = {}
    for row in insights.costs(engine, at):
        spent[row["agent"]] = spent.get(row["agent"], 0) + (row["cost_usd"] or 0)
    whole = sum(spent.values())
    if not whole:
        return ""
    agent = max(spent, key=lambda name: (spent[name], name))
    each = whole / total["messages"]
    return (
        f"<b>{escape(agent)}</b> costs most: ${spent[agent]:,.2f}, {100 * spent[agent] / whole:.0f} % of all. "
        f"A message costs ${each:.4f} on average."
    )


def _most_waiting(engine: QueryEngine, at: Period, total: dict[str, Any]) -> str:
    rows = [row for row in insights.queues(engine, at) if row["wait_typical_us"] and row["messages"] > 3]
    if not rows:
        return ""
    row = max(rows, key=lambda row: row["wait_typical_us"])
    return (
        f"Mail waits longest in <b>{escape(row['scope'])}/{escape(row['queue'])}</b>: "
        f"typically {took(row['wait_typical_us'])}, in its worst hour {took(row['worst_wait_p95_us'])}."
    )


def _commonest_failure(engine: QueryEngine, at: Period, total: dict[str, Any]) -> str:
    rows = insights.failures(engine, at)
    if not rows:
        return "Nothing failed."
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["error_class"]] = counts.get(row["error_class"], 0) + row["failures"]
    name = max(counts, key=lambda each: (counts[each], each))
    dead, got_over = sum(row["dead"] for row in rows), sum(row["recovered"] for row in rows)
    return (
        f"The commonest failure was <b>{escape(name)}</b> ({counts[name]:,} times). After a failure "
        f"{got_over:,} messages were completed all the same, and {dead:,} became dead letters."
    )


def took(micros: float | None) -> str:
    if micros is None:
        return "–"
    seconds = micros / 1e6
    for unit, size, most in (("ms", 0.001, 0.9995), ("s", 1, 99.5), ("min", 60, 5970), ("h", 3600, 172_800)):
        if seconds < most:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 86400:.3g} days"


def _tiles(total: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """With how it was in as many days before, if all of them are known."""
    ended = (total["messages"] or 0) - (total["open"] or 0)
    good = f"{100 * total['completed'] / ended:.1f} %" if ended else "–"
    facts = [
        (f"{total['messages']:,}", "messages", "messages"),
        (
            f"{total.get('people_wrote') or total['conversations']:,}",
            "conversations with people",
            "people_wrote",
        ),
        (good, "of what ended was completed", None),
        (took(total["total_p50_us"]), "from arrival to end, typically", "total_p50_us"),
        (f"{total.get('turns') or 0:,}", "turns of agents", "turns"),
        (f"${total.get('cost_usd') or 0:,.2f}", "spent on models", "cost_usd"),
    ]
    return [
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span>{_change(total, before, key)}</div>'
        for value, name, key in facts
    ]


def _change(total: dict[str, Any], before: dict[str, Any], key: str | None) -> str:
    now, then = (each.get(key) if key else None for each in (total, before))
    if not now or not then:
        return ""
    more = 100 * (now - then) / then
    sign = "=" if abs(more) < 0.5 else "▲" if more > 0 else "▼"
    return f"<i>{sign} {abs(more):,.0f} % against the days before</i>"


def _card(title: str, about: str, inner: str, kind: str = "") -> str:
    return f'<section class="card {kind}"><h2>{escape(title)}</h2><p>{escape(about)}</p>{inner}</section>'


def _names(days: list[str]) -> list[str]:
    return [f"{date.fromisoformat(day):%-d %b}" for day in days]


def _messages(engine: QueryEngine, at: Period) -> str:
    rows = insights.days(engine, at)
    if not rows:
        return ""
    series = [
        Series("completed", [row["completed"] for row in rows], 0),
        Series("open", [row["open"] for row in rows], 2),
        Series(
            "other ends",
            [row["messages"] - row["completed"] - row["failed"] - row["open"] for row in rows],
            5,
        ),
        Series("dead or expired", [row["failed"] for row in rows], 3),
    ]
    names = _names([row["day"] for row in rows])
    return _card(
        "Messages a day",
        "Everything that went through any queue, by how it ended, if it did.",
        charts.stacked("Messages a day", names, series) + charts.legend(series),
    )


def _answers(engine: QueryEngine, at: Period) -> str:
    rows = insights.channel_days(engine, at)
    if not rows:
        return ""
    days = sorted({row["day"] for row in rows})
    series = []
    for tone, channel in enumerate(_most(rows, "channel", "conversations")):
        known = {row["day"]: row["answer_p50_us"] for row in rows if row["channel"] == channel}
        values = [None if known.get(day) is None else known[day] / 1e6 for day in days]
        series.append(Series(channel, values, tone))
    return _card(
        "How soon people had an answer",
        "Typical seconds (median) from a person's message to the first reply, by channel.",
        charts.lines("Seconds to the first reply", _names(days), series, "s") + charts.legend(series),
    )


def _most(rows: list[dict[str, Any]], column: str, by: str) -> list[str]:
    totals: dict[str, float] = {}
    for row in rows:
        totals[row[column]] = totals.get(row[column], 0) + (row[by] or 0)
    return sorted(totals, key=lambda name: (-totals[name], name))[:_TONES]


def _costs(engine: QueryEngine, at: Period) -> str:
    rows = insights.costs(engine, at)
    if not rows:
        return ""
    days = sorted({row["day"] for row in rows})
    series = []
    for tone, agent in enumerate(_most(rows, "agent", "cost_usd")):
        known: dict[str, float] = {}
        for row in rows:
            if row["agent"] == agent:
                known[row["day"]] = known.get(row["day"], 0) + (row["cost_usd"] or 0)
        series.append(Series(agent, [known.get(day, 0) for day in days], tone))
    unpriced = sum(row["unpriced"] for row in rows)
    about = "US dollars by agent." + (
        f" {unpriced:,} turns have no price and are left out." if unpriced else ""
    )
    return _card(
        "What the models cost a day",
        about,
        charts.stacked("Dollars a day", _names(days), series, "$") + charts.legend(series),
    )


def _rhythm(engine: QueryEngine, at: Period) -> str:
    rows = insights.hours(engine, at)
    if not rows:
        return ""
    field = [[0.0] * 24 for _ in _WEEK]
    for row in rows:
        field[row["weekday"] - 1][row["hour"]] = row["messages"]
    return _card(
        "The rhythm of the week",
        "Messages by weekday and hour.",
        charts.heat("Messages by hour", _WEEK, field),
    )


def _handoffs(engine: QueryEngine, at: Period) -> str:
    rows = insights.handoffs(engine, at)
    if not rows:
        return ""
    edges = [(row["from_agent"], row["to_agent"], row["handoffs"]) for row in rows]
    tones = {agent: tone for tone, agent in enumerate(_most(insights.costs(engine, at), "agent", "cost_usd"))}
    drawn = charts.graph("Hand-offs", edges, tones)
    return _card(
        "Who hands work to whom", "Hand-offs between agents, in the colours of their costs.", drawn, "square"
    )


def _failures(engine: QueryEngine, at: Period) -> str:
    rows = insights.failures(engine, at)
    if not rows:
        return _card("What went wrong", "Nothing: no message failed, not even once.", "")
    totals: dict[str, list[float]] = {}
    for row in rows:
        parts = totals.setdefault(row["error_class"], [0, 0, 0])
        parts[0] += row["recovered"]
        parts[1] += row["messages"] - row["recovered"] - row["dead"]
        parts[2] += row["dead"]
    ordered = sorted(totals.items(), key=lambda each: -sum(each[1]))[:12]
    shown = [
        Series("got over it", [], 1),
        Series("open, or ended otherwise", [], 2),
        Series("ended as dead letters", [], 3),
    ]
    return _card(
        "What went wrong",
        "Messages by their last failure. Got over it: completed all the same.",
        charts.bars("Failures", ordered, [each.tone for each in shown]) + charts.legend(shown),
    )


def _table(titles: list[str], rows: list[list[str]], text: tuple[int, ...] = ()) -> str:
    def cell(tag: str, i: int, value: str) -> str:
        return f"<{tag}{' class=text' if i in text else ''}>{escape(value)}</{tag}>"

    head = "".join(cell("th", i, title) for i, title in enumerate(titles))
    body = "".join(f"<tr>{''.join(cell('td', i, value) for i, value in enumerate(row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _agents(engine: QueryEngine, at: Period) -> str:
    rows = insights.agents(engine, at)
    if not rows:
        return ""
    count: Callable[[Any], str] = lambda value: f"{value:,}" if value is not None else "–"  # noqa: E731
    lines = [
        [
            row["agent"],
            count(row["messages"]),
            took(row["wait_typical_us"]),
            took(row["turn_typical_us"]),
            count(row["turns"]),
            count(row["failed_turns"]),
            count(row["tokens"]),
            f"${row['cost_usd']:,.2f}" if row["cost_usd"] is not None else "no price",
        ]
        for row in rows
    ]
    titles = ["agent", "messages", "wait", "turn", "turns", "failed", "tokens", "cost"]
    return _card("Agents", "Wait and turn are typical lengths.", _table(titles, lines), "wide")


def _promises(engine: QueryEngine, at: Period) -> str:
    rows = insights.sla(engine, at)[:12]
    if not rows:
        return ""

    def share(part: int, row: dict[str, Any]) -> str:
        return f"{100 * part / row['ended']:.1f} %" if row["ended"] else "–"

    lines = [
        [
            f"{row['scope']}/{row['queue']}",
            f"{row['ended']:,}",
            share(row["within_1m"], row),
            share(row["within_5m"], row),
            share(row["within_1h"], row),
            f"{row['failed']:,}",
        ]
        for row in rows
    ]
    titles = ["queue", "ended", "in 1 min", "in 5 min", "in 1 h", "failed"]
    about = "How much of each queue was completed how soon."
    return _card("Done in time", about, _table(titles, lines), "wide")


def _slowest(engine: QueryEngine, at: Period) -> str:
    rows = slowest(engine, at, 8)
    if not rows:
        return ""
    lines = [
        [
            row["trace_id"],
            took(row["duration_us"]),
            took(row["critical_wait_us"]),
            took(row["critical_work_us"]),
            f"{row['messages']:,}",
            ", ".join(row["agents"] or []),
        ]
        for row in rows
    ]
    titles = ["conversation", "length", "waited", "worked", "messages", "agents"]
    about = "Waited and worked are along the way that took longest. Look closer: postroom trace ID"
    return _card("The longest conversations", about, _table(titles, lines, (5,)), "wide")


def _expectations(engine: QueryEngine) -> str:
    """How far these figures can be trusted."""
    rows = insights.expectations(engine)
    if not rows:
        return ""
    broken = [row for row in rows if row["broken"]]
    if not broken:
        about = f"All {len(rows)} hold: keys, what is never missing, ranges, sums and references."
        return _card("Expectations of the tables", about, "", "wide")
    lines = [
        [row["table"], row["expectation"], f"{row['broken']:,}", row["example"] or "", row["since"]]
        for row in broken
    ]
    about = f"{len(broken)} of {len(rows)} are broken. The rows are in the table quarantine."
    titles = ["table", "expected that", "rows", "for example", "since"]
    return _card("Expectations of the tables", about, _table(titles, lines, (1, 3)), "wide")
