"""Charts as SVG text: no script, no font, no picture from elsewhere. Colours come from the page's style."""

import math
from collections.abc import Mapping, Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 14, 30


class Series(msgspec.Struct, frozen=True):
    name: str
    values: Sequence[float | None]
    tone: int


def _frame(inner: str, title: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}" '
        f'preserveAspectRatio="xMidYMid meet"><title>{escape(title)}</title>{inner}</svg>'
    )


def nice_top(value: float) -> float:
    """A round number a little above, whose quarters are round too."""
    if value <= 0:
        return 1.0
    size = 10 ** math.floor(math.log10(value))
    return next(step * size for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if step * size >= value)


def short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _grid(top: float, unit: str) -> str:
    lines = []
    for part in range(5):
        y = _y(top * part / 4, top)
        lines.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        label = f"{unit}{short(top * part / 4)}" if unit == "$" else f"{short(top * part / 4)}{unit}"
        lines.append(f'<text class="axis" x="{LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{label}</text>')
    return "".join(lines)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def _labels(names: Sequence[str], step: float) -> str:
    every = max(1, math.ceil(len(names) / 8))
    return "".join(
        f'<text class="axis" x="{LEFT + step * (i + 0.5):.1f}" y="{HEIGHT - 10}" text-anchor="middle">{escape(name)}</text>'
        for i, name in enumerate(names)
        if i % every == 0
    )


def stacked(title: str, names: Sequence[str], series: Sequence[Series], unit: str = "") -> str:
    """Bars on top of each other, one stack for each name."""
    totals = [sum(each.values[i] or 0 for each in series) for i in range(len(names))]
    top = nice_top(max(totals, default=0))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    bars = []
    for i, name in enumerate(names):
        below = 0.0
        for each in series:
            value = each.values[i] or 0
            if value <= 0:
                continue
            y, bottom = _y(below + value, top), _y(below, top)
            tip = f"{name}: {each.name} {short(value)}{unit}"
            bars.append(
                f'<rect class="t{each.tone}" x="{LEFT + step * i + step * 0.12:.1f}" y="{y:.1f}" '
                f'width="{step * 0.76:.1f}" height="{max(bottom - y, 0.4):.1f}" rx="1.5">'
                f"<title>{escape(tip)}</title></rect>"
            )
            below += value
    return _frame(_grid(top, unit) + "".join(bars) + _labels(names, step), title)


def lines(title: str, names: Sequence[str], series: Sequence[Series], unit: str = "") -> str:
    top = nice_top(max((v for each in series for v in each.values if v is not None), default=0))
    step = (WIDTH - LEFT - RIGHT) / max(1, len(names))
    drawn = []
    for each in series:
        points = [
            f"{LEFT + step * (i + 0.5):.1f},{_y(value, top):.1f}"
            for i, value in enumerate(each.values)
            if value is not None
        ]
        drawn.append(f'<polyline class="l{each.tone}" points="{" ".join(points)}"/>')
        drawn += [
            f'<circle class="t{each.tone}" cx="{point.split(",")[0]}" cy="{point.split(",")[1]}" r="2.2"/>'
            for point in points
        ]
    return _frame(_grid(top, unit) + "".join(drawn) + _labels(names, step), title)


def heat(title: str, rows: Sequence[str], values: Sequence[Sequence[float]]) -> str:
    """A field for each row and hour; the darker, the more."""
    top = max((value for row in values for value in row), default=0) or 1
    width, height = (WIDTH - LEFT - RIGHT) / 24, (HEIGHT - TOP - BOTTOM) / max(1, len(rows))
    cells = []
    for r, name in enumerate(rows):
        y = TOP + height * r
        cells.append(
            f'<text class="axis" x="{LEFT - 6}" y="{y + height / 2 + 3:.1f}" text-anchor="end">{escape(name)}</text>'
        )
        for hour, value in enumerate(values[r]):
            cells.append(
                f'<rect class="t0" style="opacity:{0.06 + 0.94 * value / top:.3f}" x="{LEFT + width * hour + 0.8:.1f}" '
                f'y="{y + 0.8:.1f}" width="{width - 1.6:.1f}" height="{height - 1.6:.1f}" rx="2">'
                f"<title>{escape(name)} {hour:02d}:00: {short(value)}</title></rect>"
            )
    marks = "".join(
        f'<text class="axis" x="{LEFT + width * (hour + 0.5):.1f}" y="{HEIGHT - 10}" text-anchor="middle">{hour:02d}</text>'
        for hour in range(0, 24, 3)
    )
    return _frame("".join(cells) + marks, title)


def graph(title: str, edges: Sequence[tuple[str, str, float]], tones: Mapping[str, int] | None = None) -> str:
    """Who hands to whom: agents in a ring, edges as wide as they are used."""
    names = sorted({name for one, other, _ in edges for name in (one, other)})
    size = 420
    middle, radius = size / 2, size / 2 - 62
    places = {
        name: (
            middle + radius * math.cos(2 * math.pi * i / len(names) - math.pi / 2),
            middle + radius * math.sin(2 * math.pi * i / len(names) - math.pi / 2),
        )
        for i, name in enumerate(names)
    }
    top = max((count for _, _, count in edges), default=1)
    total = {name: sum(count for one, other, count in edges if name in (one, other)) for name in names}
    most = max(total.values(), default=1)
    drawn = [
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'markerUnits="userSpaceOnUse" orient="auto"><path class="t0" d="M0 0 8 4 0 8z"/></marker></defs>'
    ]
    for one, other, count in sorted(edges, key=lambda edge: edge[2]):
        (x1, y1), (x2, y2) = places[one], places[other]
        # Bent, so that both directions are seen; and ending before the circle.
        dx, dy = x2 - x1, y2 - y1
        bend = 0.16
        cx, cy = (x1 + x2) / 2 - dy * bend, (y1 + y2) / 2 + dx * bend
        gap = 14 + 14 * math.sqrt(total[other] / most)
        last = math.hypot(x2 - cx, y2 - cy) or 1
        ex, ey = x2 - (x2 - cx) / last * gap, y2 - (y2 - cy) / last * gap
        drawn.append(
            f'<path class="l0" style="stroke-width:{1 + 7 * count / top:.1f};opacity:{0.25 + 0.6 * count / top:.2f}" '
            f'd="M{x1:.1f} {y1:.1f} Q{cx:.1f} {cy:.1f} {ex:.1f} {ey:.1f}" marker-end="url(#tip)">'
            f"<title>{escape(one)} → {escape(other)}: {short(count)}</title></path>"
        )
        if count >= top * 0.08:
            # A third of the way along the bend, where labels of crossing edges are apart.
            at = 0.36
            lx = (1 - at) ** 2 * x1 + 2 * at * (1 - at) * cx + at**2 * ex
            ly = (1 - at) ** 2 * y1 + 2 * at * (1 - at) * cy + at**2 * ey
            drawn.append(
                f'<text class="tag" x="{lx:.1f}" y="{ly + 4:.1f}" text-anchor="middle">{short(count)}</text>'
            )
    for i, name in enumerate(names):
        tone = (tones or {}).get(name, i % 6 if tones is None else 5)
        x, y = places[name]
        r = 8 + 14 * math.sqrt(total[name] / most)
        drawn.append(
            f'<circle class="t{tone} node" cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"><title>{escape(name)}</title></circle>'
        )
        down = y > middle - 1
        drawn.append(
            f'<text class="name" x="{x:.1f}" y="{y + (r + 15 if down else -r - 7):.1f}" text-anchor="middle">{escape(name)}</text>'
        )
    return _frame("".join(drawn), title, size, size)


def bars(title: str, rows: Sequence[tuple[str, Sequence[float]]], tones: Sequence[int]) -> str:
    """Lying bars of several parts, the longest first."""
    height = 24 * max(1, len(rows)) + 8
    top = max((sum(parts) for _, parts in rows), default=1) or 1
    left, room = 150, WIDTH - 150 - 60
    drawn = []
    for i, (name, parts) in enumerate(rows):
        x, y = float(left), 6 + 24 * i
        drawn.append(
            f'<text class="name" x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
        )
        for part, tone in zip(parts, tones, strict=True):
            wide = room * part / top
            drawn.append(f'<rect class="t{tone}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="16" rx="2"/>')
            x += wide
        drawn.append(f'<text class="axis" x="{x + 6:.1f}" y="{y + 12}">{short(sum(parts))}</text>')
    return _frame("".join(drawn), title, WIDTH, height)


def legend(series: Sequence[Series]) -> str:
    items = "".join(f'<li><i class="b{each.tone}"></i>{escape(each.name)}</li>' for each in series)
    return f'<ul class="legend">{items}</ul>'
