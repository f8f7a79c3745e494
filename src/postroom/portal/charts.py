"""Pictures of numbers, drawn as SVG on the server. Text in them is escaped; colours are tokens."""

import math
from collections.abc import Mapping, Sequence

import segno
from markupsafe import Markup, escape

from postroom.kernel.model import Counts
from postroom.office.traces import ConversationTrace, TraceStep
from postroom.portal.parts import STATE_WORDS
from postroom.portal.words import cut, tell_span

WIDE, HIGH, LEFT, BELOW = 720, 180, 44, 22
LABEL_PX, BAR_PX, STEP_PX = 190, 820, 26


def draw_qr(text: str) -> str:
    """A picture that a phone reads, as SVG."""
    return segno.make(text, micro=False).svg_inline(scale=4, dark="#000", light="#fff")


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


# Where lines are drawn across durations, in seconds: what people call a second, a minute, an hour, a day.
_MOMENTS = (0.001, 0.01, 0.1, 1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 30 * 86400)


def draw_durations(labels: Sequence[str], *series: tuple[str, Sequence[float]]) -> Markup:
    """A line of seconds for each series, by orders of magnitude: what is slow must not flatten what is not."""
    given = [value for _, values in series for value in values if value > 0]
    low = max((each for each in _MOMENTS if each <= min(given, default=1)), default=_MOMENTS[0])
    high = min((each for each in _MOMENTS if each >= max(given, default=1)), default=_MOMENTS[-1])
    width = math.log10(high / low) or 1.0
    step = (WIDE - LEFT) / max(1, len(labels))

    def height(seconds: float) -> float:
        part = math.log10(min(max(seconds, low), high) / low) / width
        return HIGH - BELOW - part * (HIGH - BELOW - 10)

    parts = []
    for moment in (each for each in _MOMENTS if low <= each <= high):
        y = height(moment)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tell_span(moment)}</text>')
    for number, (name, values) in enumerate(series, 1):
        points = [(LEFT + (at + 0.5) * step, height(value)) for at, value in enumerate(values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="line l{number}" points="{path}"/>')
        for (x, y), label, value in zip(points, labels, values, strict=True):
            told = f"{label}: {name} {tell_span(value)}"
            parts.append(
                f'<circle class="c{number}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"><title>{escape(told)}</title></circle>'
            )
        at = LEFT + (number - 1) * 130
        parts.append(
            f'<line class="line l{number}" x1="{at}" x2="{at + 22}" y1="{HIGH + 8}" y2="{HIGH + 8}"/>'
        )
        parts.append(f'<text x="{at + 28}" y="{HIGH + 12}">{escape(name)}</text>')
    for at in range(0, len(labels), max(1, len(labels) // 8)):
        parts.append(f'<text x="{LEFT + at * step:.1f}" y="{HIGH - 6}">{escape(labels[at])}</text>')
    names = escape(", ".join(name for name, _ in series))
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDE} {HIGH + 18}" role="img" aria-label="{names}">{"".join(parts)}</svg>'
    )


def draw_week(counts: Mapping[tuple[int, int], int]) -> Markup:
    """Hours across, weekdays down (1 is Monday); the more came, the fuller the square."""
    most = max(counts.values(), default=0) or 1
    wide, tall = (WIDE - LEFT) / 24, 18
    parts = [f'<text x="{LEFT + hour * wide:.1f}" y="10">{hour:02}</text>' for hour in range(0, 24, 3)]
    for number, day in enumerate(("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")):
        y = 16 + number * tall
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{day}</text>')
        for hour in range(24):
            count = counts.get((number + 1, hour), 0)
            full = 0.06 if not count else 0.15 + 0.85 * count / most
            told = f"{day} {hour:02}:00: {count:,}"
            parts.append(
                f'<rect class="c1" opacity="{full:.2f}" x="{LEFT + hour * wide:.1f}" y="{y}" width="{wide - 2:.1f}" height="{tall - 2}" rx="2"><title>{told}</title></rect>'
            )
    return Markup(
        f'<svg class="chart" viewBox="0 0 {WIDE} {16 + 7 * tall}" role="img" aria-label="Messages by weekday and hour">{"".join(parts)}</svg>'
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


def draw_timeline(trace: ConversationTrace, steps: Sequence[TraceStep], critical: set[str]) -> Markup:
    """Every message as a line: how long it waited, and its turns. Those of the critical path are marked."""
    end = max([trace.ended_at, *(step.ended_at or 0 for step in steps)], default=0)
    whole = max(1, end - trace.began_at)
    height = len(steps) * STEP_PX + 24

    def at(moment: int) -> float:
        return LABEL_PX + max(0, moment - trace.began_at) / whole * BAR_PX

    rows = []
    for number, step in enumerate(steps):
        y = number * STEP_PX + 24
        started = step.turns[0].started_at if step.turns else step.ended_at or end
        mark = "▸ " if step.message_id in critical else ""
        rows.append(
            f'<text class="name" x="0" y="{y + 12}">{mark}{escape(cut(f"{step.who} → {step.to}", 26))}</text>'
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
