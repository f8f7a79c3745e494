"""Conversations, found by words; one of them as tree, timeline and reading text, and why it stands so."""

from datetime import datetime
from urllib.parse import quote

import msgspec
from htpy import Node, Renderable, a, button, div, form, li, p, span, td, ul

from postroom.office.traces import ConversationTrace, TraceStep
from postroom.portal.charts import draw_timeline
from postroom.portal.markdown import render_markdown
from postroom.portal.parts import (
    act_button,
    show_empty,
    show_figures,
    show_row,
    show_state,
    show_table,
    show_tag,
    text_field,
)
from postroom.portal.visit import ActResult, PageView, PortalPart, PortalVisit, SentForm
from postroom.portal.words import cut, show_ago, tell_ago, tell_money, tell_span

SHOWN = 100
VIEWS = (("tree", "Tree"), ("timeline", "Timeline"), ("read", "Reader"))


async def show_conversations(visit: PortalVisit) -> PageView:
    words, agent, channel = visit.query("q"), visit.query("agent"), visit.query("channel")
    rows = await _found(visit, words, agent, channel)
    table = show_table(
        ["Said", "Who", "Channel", ("When", "num")],
        [
            show_row(
                td(".text")[a(href=f"/conversations/{quote(row['key'], safe='')}")[cut(row["text"], 200)]],
                td(".nowrap")[row["who"]],
                td(".nowrap.quiet")[row["channel"] or ""],
                td(".num.quiet")[show_ago(row["at"], visit.now)],
            )
            for row in rows
        ],
    )
    return PageView(
        title="Conversations",
        way="/conversations",
        lead="Everything that was said, from the store and the lake. A row opens its conversation.",
        body=[
            form(".filters", method="get", action="/conversations", role="search")[
                text_field("q", "Words", words, data_search=True, placeholder="all of these words"),
                text_field("agent", "Agent", agent, placeholder="any"),
                text_field("channel", "Channel", channel, placeholder="any"),
                button["Search"],
            ],
            div(id="found-talks", data_live=True)[
                table
                if rows
                else show_empty(
                    "Nothing found" if words else "Nobody has written yet",
                    "Write to an agent in ",
                    a(".link", href="/chat")["Chat"],
                    ", or with ",
                    span(".mono")["postroom send"],
                    ".",
                )
            ],
        ],
    )


async def _found(visit: PortalVisit, words: str, agent: str, channel: str) -> list[dict]:
    """Newest first, each conversation once."""
    found: dict[str, dict] = {}
    if words:
        rows = await visit.services.insights.search(
            visit.caller, tuple(words.split()), agent=agent or None, channel=channel or None, limit=SHOWN
        )
        for row in rows:
            at = int(datetime.fromisoformat(row["created_at"]).timestamp() * 1_000_000)
            who = f"@{row['agent']}" if row["agent"] else row["sender"] or ""
            key = row["correlation_id"] or row["id"]
            found.setdefault(
                key, {"key": key, "text": row["text"], "who": who, "channel": row["channel"], "at": at}
            )
        return list(found.values())
    for row in await visit.services.conversations.history(visit.caller, agent or None, limit=SHOWN * 3):
        key = f"{row['channel']}:{row['message_id']}"
        if channel in ("", row["channel"]):
            who = f"{row['sender']} → @{row['agent_id']}" if row["role"] == "user" else f"@{row['agent_id']}"
            found.setdefault(
                key,
                {
                    "key": key,
                    "text": row["content"],
                    "who": who,
                    "channel": row["channel"],
                    "at": row["created_at"] * 1000,
                },
            )
    return list(found.values())[:SHOWN]


async def show_conversation(visit: PortalVisit) -> PageView:
    name = visit.path("name")
    trace = await visit.services.conversations.trace(visit.caller, name)
    view = visit.query("view", "tree")
    drawn = {"timeline": _timeline, "read": _reader}.get(view, _tree)
    base = f"/conversations/{quote(name, safe='')}"
    steps = list(_walk(trace.roots))
    return PageView(
        title=cut(steps[0].text, 80) if steps else name,
        way="/conversations",
        crumb=("/conversations", "Conversations"),
        lead=span(".mono.small")[name],
        actions=[
            a(".button", href=f"{base}/trace.json", download=True)["Export"],
            act_button(
                "Stop",
                "/conversations/stop",
                {"conversation": name},
                kind="danger",
                confirm="Stop this conversation for good? What is open of it is cancelled.",
            ),
        ],
        body=div(id="trace", class_="stack-l", data_live=True)[
            _why(steps, visit.now),
            show_figures(
                ("messages", f"{trace.messages:,}"),
                ("turns", f"{trace.turns:,}"),
                ("from first to last", tell_span((trace.ended_at - trace.began_at) / 1_000_000)),
                ("cost", tell_money(float(trace.cost_usd)) if trace.cost_usd else "–"),
                ("attempts", str(sum(step.attempts for step in steps))),
            ),
            div[
                div(".tabs")[
                    [
                        a(href=f"{base}?view={key}", aria_current="page" if key == view else None)[word]
                        for key, word in VIEWS
                    ]
                ],
                drawn(trace, visit.now),
            ],
        ],
    )


def _walk(steps: list[TraceStep]):
    for step in steps:
        yield step
        yield from _walk(step.causes)


def _why(steps: list[TraceStep], now: int) -> Node:
    """Why there is no answer, in one glance; nothing when there is one."""
    for step in steps:
        if step.state == "dead":
            return div(".banner", role="status")[
                show_state("dead"),
                span[f"{step.to} could not answer: {step.reason or 'no reason was given'}"],
                a(".link.right", href="/queues/dead")["Dead letters"],
            ]
    waiting = [step for step in steps if step.state in ("pending", "delayed") and step.kind != "reply"]
    working = [step for step in steps if step.state == "claimed"]
    if working:
        return p[
            show_state("claimed", f"{working[0].to} works on it since {tell_ago(working[0].began_at, now)}")
        ]
    if waiting:
        why = f": {waiting[0].reason}" if waiting[0].reason else ""
        return p[show_state(waiting[0].state, f"waits for {waiting[0].to}{why}")]
    return None


def _tree(trace: ConversationTrace, now: int) -> Renderable:
    def branch(step: TraceStep) -> Renderable:
        return li[
            div(".step")[
                div(".flow")[
                    show_state(step.state),
                    span[f"{step.who} → {step.to}"],
                    show_tag(step.kind),
                    step.attempts > 1 and show_tag(f"{step.attempts} attempts"),
                    span(".quiet.small")[_took(step)],
                    a(".link.small.quiet", href=f"/messages/{step.message_id}")["message"],
                ],
                p(".quiet")[step.text],
                step.reason and p(".tone.is-dead.small")[step.reason],
            ],
            ul[[branch(each) for each in step.causes]] if step.causes else None,
        ]

    return ul(".tree")[[branch(step) for step in trace.roots]]


def _took(step: TraceStep) -> str:
    words = []
    if step.ended_at:
        words.append(tell_span((step.ended_at - step.began_at) / 1_000_000))
    words += [f"{turn.tokens:,} tokens" for turn in step.turns if turn.tokens]
    words += [tell_money(float(turn.cost_usd)) for turn in step.turns if turn.cost_usd]
    return " · ".join(words)


def _timeline(trace: ConversationTrace, now: int) -> Renderable:
    return div(".scroll")[draw_timeline(trace, list(_walk(trace.roots)))]


def _reader(trace: ConversationTrace, now: int) -> Renderable:
    """Only what was said, in order."""
    steps = sorted(_walk(trace.roots), key=lambda step: step.began_at)
    return div(".stack")[
        [
            div(".said")[
                span(".face", aria_hidden="true")[step.who.lstrip("@")[:1] or "?"],
                div(".meta")[span[step.who], show_ago(step.began_at, now)],
                div(".prose")[render_markdown(step.text)],
            ]
            for step in steps
        ]
    ]


async def resume(visit: PortalVisit, form: SentForm) -> ActResult:
    moved = await visit.services.budgets.resume(visit.acting, form.word("conversation"))
    return ActResult(said=f"It goes on with {moved} messages.")


async def stop(visit: PortalVisit, form: SentForm) -> ActResult:
    count = await visit.services.budgets.stop(visit.acting, form.word("conversation"))
    return ActResult(said=f"Stopped; {count} messages were cancelled.")


async def export_trace(visit: PortalVisit) -> PageView:
    trace = await visit.services.conversations.trace(visit.caller, visit.path("name"))
    document = msgspec.json.format(msgspec.json.encode(trace), indent=2)
    return PageView(title="", way="", body=None, file=document)


PART = PortalPart(
    {
        "/conversations": show_conversations,
        "/conversations/{name:path}/trace.json": export_trace,
        "/conversations/{name:path}": show_conversation,
    },
    {"/conversations/resume": resume, "/conversations/stop": stop},
)
