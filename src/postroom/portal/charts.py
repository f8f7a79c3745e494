"""Pictures of numbers, drawn as SVG on the server. Text in them is escaped; colours are tokens."""

from collections.abc import Sequence

from markupsafe import Markup, escape

from postroom.kernel.model import Counts
from postroom.office.traces import ConversationTrace, TraceStep
from postroom.portal.parts import STATE_WORDS
from postroom.portal.words import cut, tell_span

WIDE, HIGH, LEFT, BELOW = 720, 180, 44, 22
LABEL_PX, BAR_PX, STEP_PX = 190, 820, 26


def draw_spark(values: Sequence[int]) -> Markup:
    """How much happened lately, the newest on the right."""
    most = max(values, default=0)
    if not most:
        return Markup('<svg class="spark" viewBox="0 0 96 20" aria-hidden="true"></svg>')
    step = 96 / len(values)
    bars = "".join(
        f'<rect x="{at * step:.1f}" y="{20 - 18 * value / most:.1f}" width="{max(1.0, step - 1):.1f}" height="{18 * value / most:.1f}"/>'
        for at, value in enumerate(values)
        if value
    )
    return Markup(
        f'<svg class="spark" viewBox="0 0 96 20" role="img" aria-label="{sum(values)} published">{bars}</svg>'
    )


_SERIES = ("c1", "c3", "c4", "c2")


def draw_columns(labels: Sequence[str], *series: tuple[str, Sequence[float]], unit: str = "") -> Markup:
    """Stacked columns; each series is a name and its values."""
    totals = [sum(values[at] for _, values in series) for at in range(len(labels))]
    most = max(totals, default=0) or 1
    step = (WIDE - LEFT) / max(1, len(labels))
    parts = [_grid(most, unit)]
    for at, label in enumerate(labels):
        y = float(HIGH - BELOW)
        for number, (name, values) in enumerate(series, 1):
            tall = values[at] / most * (HIGH - BELOW - 10)
            y -= tall
            told = f"{label}: {values[at]:,.6g} {name}"
            parts.append(
                f'<rect class="{_SERIES[number - 1]}" x="{LEFT + at * step + 1:.1f}" y="{y:.1f}" width="{max(1.0, step - 2):.1f}" height="{tall:.1f}"><title>{escape(told)}</title></rect>'
            )
        if at % max(1, len(labels) // 8) == 0:
            parts.append(f'<text x="{LEFT + at * step:.1f}" y="{HIGH - 6}">{escape(label)}</text>')
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{escape(", ".join(name for name, _ in series))}">{"".join(parts)}</svg>'
    )


def _grid(most: float, unit: str) -> str:
    lines = []
    for part in (0.0, 0.5, 1.0):
        y = HIGH - BELOW - part * (HIGH - BELOW - 10)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{unit}{most * part:,.3g}</text>'
        )
    return "".join(lines)


def draw_bars(rows: Sequence[tuple[str, float, str]]) -> Markup:
    """Names with a bar each: name, value, and how the value is told."""
    most = max((value for _, value, _ in rows), default=0) or 1
    parts = []
    for at, (name, value, told) in enumerate(rows):
        y = at * 26
        parts.append(
            f'<text x="0" y="{y + 17}">{escape(name[:28])}</text>'
            f'<rect class="c1" x="180" y="{y + 6}" width="{max(1.0, value / most * 430):.1f}" height="14" rx="2"/>'
            f'<text x="{190 + value / most * 430:.1f}" y="{y + 17}">{escape(told)}</text>'
        )
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDE} {max(26, len(rows) * 26)}" role="img" aria-label="Bars">{"".join(parts)}</svg>'
    )


_BOXES = {
    "delayed": (20, 20), "pending": (200, 20), "claimed": (380, 20), "completed": (560, 20),
    "expired": (20, 120), "dead": (380, 120), "cancelled": (560, 120),
}  # fmt: skip
_ARROWS = (
    "M140 48h54", "M320 40h54", "M380 56h-54", "M500 48h54", "M200 66l-58 58", "M440 76v38", "M500 66l58 58",
    "M380 148H260V82",
)  # fmt: skip


def draw_machine(counts: Counts, base: str) -> Markup:
    """The states of a message with how many are in each; a state leads to its messages."""
    boxes = "".join(
        f'<a href="{escape(base)}?state={state}" aria-label="{STATE_WORDS[state]}: {getattr(counts, state)}">'
        f'<g class="is-{state}"><rect class="box" x="{x}" y="{y}" width="120" height="56" rx="5"/>'
        f'<rect class="tone" x="{x}" y="{y + 8}" width="3" height="40"/>'
        f'<text class="n" x="{x + 14}" y="{y + 26}">{getattr(counts, state):,}</text>'
        f'<text x="{x + 14}" y="{y + 44}">{STATE_WORDS[state]}</text></g></a>'
        for state, (x, y) in _BOXES.items()
    )
    arrows = "".join(f'<path class="arrow" d="{path}" marker-end="url(#tip)"/>' for path in _ARROWS)
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="arrow" d="M1 1l6 3-6 3"/></marker>'
    return Markup(
        f'<svg class="chart machine" viewBox="0 0 700 190" role="group" aria-label="States"><defs>{tip}</defs>{arrows}{boxes}</svg>'
    )


def draw_timeline(trace: ConversationTrace, steps: Sequence[TraceStep]) -> Markup:
    """Every message as a line: how long it waited, and its turns."""
    end = max([trace.ended_at, *(step.ended_at or 0 for step in steps)], default=0)
    whole = max(1, end - trace.began_at)
    height = len(steps) * STEP_PX + 24

    def at(moment: int) -> float:
        return LABEL_PX + max(0, moment - trace.began_at) / whole * BAR_PX

    rows = []
    for number, step in enumerate(steps):
        y = number * STEP_PX + 24
        started = step.turns[0].started_at if step.turns else step.ended_at or end
        rows.append(
            f'<text class="name" x="0" y="{y + 12}">{escape(cut(f"{step.who} → {step.to}", 28))}</text>'
        )
        rows.append(
            _bar(
                "wait",
                at(step.began_at),
                at(started),
                y,
                f"waited {tell_span((started - step.began_at) / 1e6)}",
            )
        )
        for turn in step.turns:
            kind = "done" if turn.outcome == "finished" else "bad"
            told = f"{turn.outcome}, {tell_span((turn.ended_at - turn.started_at) / 1e6)}"
            rows.append(_bar(kind, at(turn.started_at), at(turn.ended_at), y, told))
    marks = "".join(
        f'<line class="grid" x1="{LABEL_PX + part * BAR_PX / 4}" x2="{LABEL_PX + part * BAR_PX / 4}" y1="16" y2="{height}"/>'
        f'<text x="{LABEL_PX + part * BAR_PX / 4 + 3}" y="11">{tell_span(whole / 1e6 * part / 4) if part else "0"}</text>'
        for part in range(4)
    )
    picture = f'<svg class="chart timeline" viewBox="0 0 {LABEL_PX + BAR_PX} {height}" role="img" aria-label="Timeline">{marks}{"".join(rows)}</svg>'
    return Markup(picture)


def _bar(kind: str, start: float, end: float, y: int, told: str) -> str:
    width = max(2.0, end - start)
    return f'<rect class="{kind}" x="{start:.1f}" y="{y + 3}" width="{width:.1f}" height="12" rx="2"><title>{escape(told)}</title></rect>'
