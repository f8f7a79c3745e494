"""Styles as Telegram's entities, which cannot break: text and styles are sent apart. They count UTF-16."""

from typing import Any

from postroom.channels.capabilities import Capabilities
from postroom.channels.styled_text import Style, StyledText
from postroom.channels.utf16 import utf16_length

ENTITIES = {
    Style.BOLD: "bold",
    Style.ITALIC: "italic",
    Style.STRIKE: "strikethrough",
    Style.CODE: "code",
    Style.PRE: "pre",
    Style.QUOTE: "blockquote",
    Style.LINK: "text_link",
}
LINKS = ("http://", "https://", "tg://", "mailto:")


def measure(styled: StyledText) -> int:
    return utf16_length(styled.text)


CAPABILITIES = Capabilities(
    text_limit=4096,
    measure=measure,
    markup=True,
    buttons=8,
    button_chars=40,
    threads=True,
    replies=True,
    file_bytes=50 * 1024 * 1024,
    edits=True,
    typing_s=4.0,
)


def render_entities(styled: StyledText) -> list[dict[str, Any]]:
    entities: list[dict[str, Any]] = []
    for span in styled.spans:
        if span.style is Style.LINK and not span.detail.startswith(LINKS):
            continue
        entity: dict[str, Any] = {
            "type": ENTITIES[span.style],
            "offset": utf16_length(styled.text[: span.start]),
            "length": utf16_length(styled.text[span.start : span.end]),
        }
        if span.style is Style.LINK:
            entity["url"] = span.detail
        if span.style is Style.PRE and span.detail:
            entity["language"] = span.detail
        entities.append(entity)
    return entities
