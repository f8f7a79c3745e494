"""Styles as Signal's ranges, which count UTF-16, and what Signal can do."""

from postroom.channels.capabilities import Capabilities
from postroom.channels.styled_text import Style, StyledText
from postroom.channels.utf16 import utf16_length

STYLES = {
    Style.BOLD: "BOLD",
    Style.ITALIC: "ITALIC",
    Style.STRIKE: "STRIKETHROUGH",
    Style.CODE: "MONOSPACE",
    Style.PRE: "MONOSPACE",
}


def render_styles(styled: StyledText) -> list[str]:
    """`start:length:STYLE` for each."""
    found: list[str] = []
    for span in styled.spans:
        if (style := STYLES.get(span.style)) is not None:
            start, end = utf16_length(styled.text[: span.start]), utf16_length(styled.text[: span.end])
            found.append(f"{start}:{end - start}:{style}")
    return found


CAPABILITIES = Capabilities(
    # Longer texts are sent as files by Signal itself.
    text_limit=2000,
    markup=True,
    replies=True,
    file_bytes=50 * 1024 * 1024,
    edits=True,
    typing_s=10.0,
)
