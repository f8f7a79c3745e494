"""Styles written into the text, for platforms that have no spans. What a text cannot hold is left out."""

from collections.abc import Callable, Mapping

from postroom.channels.styled_text import Span, Style, StyledText

# What stands before and after a styled text.
Marks = Mapping[Style, tuple[str, str]]
# As Slack and WhatsApp have them.
PLAIN_MARKS: Marks = {
    Style.BOLD: ("*", "*"),
    Style.ITALIC: ("_", "_"),
    Style.STRIKE: ("~", "~"),
    Style.CODE: ("`", "`"),
    Style.PRE: ("```", "```"),
}


def render_inline(
    styled: StyledText,
    marks: Marks,
    *,
    escape: Callable[[str], str] = str,
    link: Callable[[str, str], str] | None = None,
) -> str:
    """Marks are closed in the order in which they were opened last; code is never styled within.

    `link` makes a link of a text and an address; without it, the address stands behind the text."""
    spans = _without_overlaps(styled.spans)
    edges: dict[int, list[str]] = {}
    closing: dict[int, list[str]] = {}
    links: dict[int, tuple[int, str]] = {}
    for span in spans:
        if span.style is Style.LINK:
            links[span.start] = (span.end, span.detail)
            continue
        before, after = marks.get(span.style, ("", ""))
        if span.style is Style.PRE:
            before = before.replace("LANGUAGE", span.detail)
        edges.setdefault(span.start, []).append(before)
        closing.setdefault(span.end, []).insert(0, after)
    places = sorted({0, len(styled.text), *edges, *closing, *links, *(end for end, _ in links.values())})
    parts: list[str] = []
    open_links: list[tuple[int, str, int]] = []
    for place, following in zip(places, [*places[1:], len(styled.text)], strict=True):
        parts += closing.get(place, [])
        while open_links and open_links[-1][0] == place:
            _, address, begin = open_links.pop()
            text = "".join(parts[begin:])
            del parts[begin:]
            parts.append(link(text, address) if link else _address_behind(text, address))
        if place in links:
            open_links.append((*links[place], len(parts)))
        parts += edges.get(place, [])
        parts.append(escape(styled.text[place:following]))
    return "".join(parts)


def _address_behind(text: str, address: str) -> str:
    return text if address in ("", text) else f"{text} ({address})"


def _without_overlaps(spans: tuple[Span, ...]) -> list[Span]:
    """Those that contain each other or stand apart; of two that cross, the first."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        crosses = any(each.start < span.start < each.end < span.end for each in kept)
        in_code = any(
            each.style in (Style.CODE, Style.PRE) and each.start <= span.start and span.end <= each.end
            for each in kept
        )
        if not crosses and not in_code and span.start < span.end:
            kept.append(span)
    return kept
