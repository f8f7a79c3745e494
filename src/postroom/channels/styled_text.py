"""Text with styles, apart from any platform's markup: so that it can be cut anywhere and never breaks.

Styles are spans over the characters; a platform's channel turns them into its own markup, or leaves them out.
"""

from enum import StrEnum

import msgspec


class Style(StrEnum):
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    CODE = "code"
    PRE = "pre"
    QUOTE = "quote"
    LINK = "link"


class Span(msgspec.Struct, frozen=True):
    """`detail` is the address of a link, or the language of a block of code."""

    style: Style
    start: int
    end: int
    detail: str = ""


class StyledText(msgspec.Struct, frozen=True):
    text: str
    spans: tuple[Span, ...] = ()

    def slice(self, start: int, end: int) -> "StyledText":
        """A part of it, each style cut to the part."""
        spans = tuple(
            Span(span.style, max(span.start, start) - start, min(span.end, end) - start, span.detail)
            for span in self.spans
            if span.start < end and span.end > start
        )
        return StyledText(self.text[start:end], spans)

    def stripped(self) -> "StyledText":
        """Without blank space around it."""
        start = len(self.text) - len(self.text.lstrip())
        return self.slice(start, max(start, len(self.text.rstrip())))

    def plain(self) -> str:
        """For platforms without markup: links keep their addresses."""
        text = self.text
        for span in sorted(self.spans, key=lambda span: span.end, reverse=True):
            if span.style is Style.LINK and span.detail not in ("", self.text[span.start : span.end]):
                text = f"{text[: span.end]} ({span.detail}){text[span.end :]}"
        return text
