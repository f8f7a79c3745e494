"""One conversation drawn: why it stands so, its figures, and what caused what as tree, timeline and text."""

from htpy import Node, Renderable, a, div, li, p, span, ul

from postroom.office.tags import for_people
from postroom.office.traces import ConversationTrace, TraceStep, find_critical_path, walk
from postroom.portal.charts import draw_timeline
from postroom.portal.markdown import render_answer
from postroom.portal.parts import show_figures, show_state, show_tag
from postroom.portal.words import cut, show_ago, tell_ago, tell_money, tell_span

VIEWS = (("tree", "Tree"), ("timeline", "Timeline"), ("read", "Reader"))
EXCERPT = 200


def draw_trace(trace: ConversationTrace, view: str, base: str, now: int) -> Renderable:
    """`base` is the way to this page, to which the name of another view is added."""
    drawn = {"timeline": _timeline, "read": _reader}.get(view, _tree)
    steps = list(walk(trace.roots))
    path = find_critical_path(trace)
    return div(id="trace", class_="stack-l", data_live=True)[
        _why(steps, now),
        show_figures(
            ("messages", f"{trace.messages:,}"),
            ("turns", f"{trace.turns:,}"),
            ("from first to last", tell_span((trace.ended_at - trace.began_at) / 1_000_000)),
            ("critical path: waits", tell_span(sum(map(_waited, path)) / 1_000_000)),
            ("critical path: turns", tell_span(sum(map(_worked, path)) / 1_000_000)),
            ("cost", tell_money(float(trace.cost_usd)) if trace.cost_usd else "–"),
            ("attempts", str(sum(step.attempts for step in steps))),
        ),
        div[
            div(".tabs")[
                [
                    a(href=f"{base}view={key}", aria_current="page" if key == view else None)[word]
                    for key, word in VIEWS
                ]
            ],
            drawn(trace, {step.message_id for step in path}, now),
        ],
    ]


def _waited(step: TraceStep) -> int:
    """Until its first turn, or until it ended without one."""
    begun = step.turns[0].started_at if step.turns else step.ended_at
    return max(0, (begun or step.began_at) - step.began_at)


def _worked(step: TraceStep) -> int:
    return sum(max(0, turn.ended_at - turn.started_at) for turn in step.turns)


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


def _tree(trace: ConversationTrace, critical: set[str], now: int) -> Renderable:
    def branch(step: TraceStep) -> Renderable:
        return li[
            div(".step")[
                div(".flow")[
                    show_state(step.state),
                    span[f"{step.who} → {step.to}"],
                    show_tag(step.kind),
                    step.message_id in critical and show_tag("critical path"),
                    step.attempts > 1 and show_tag(f"{step.attempts} attempts"),
                    span(".quiet.small")[_took(step)],
                    a(".link.small.quiet", href=f"/messages/{step.message_id}")["message"],
                ],
                p(".quiet")[cut(for_people(step.text), EXCERPT)],
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


def _timeline(trace: ConversationTrace, critical: set[str], now: int) -> Renderable:
    return div(".scroll")[draw_timeline(trace, list(walk(trace.roots)), critical)]


def _reader(trace: ConversationTrace, critical: set[str], now: int) -> Renderable:
    """Only what was said, in order."""
    steps = sorted(walk(trace.roots), key=lambda step: step.began_at)
    return div(".stack")[
        [
            div(".said")[
                span(".face", aria_hidden="true")[step.who.lstrip("@")[:1] or "?"],
                div(".meta")[span[step.who], show_ago(step.began_at, now)],
                div(".prose")[render_answer(step.text)],
            ]
            for step in steps
        ]
    ]
