"""Styles as Discord's Markdown, and what Discord can do."""

from postroom.channels.capabilities import Capabilities
from postroom.channels.inline_markup import render_inline
from postroom.channels.styled_text import Style, StyledText

MARKS = {
    Style.BOLD: ("**", "**"),
    Style.ITALIC: ("*", "*"),
    Style.STRIKE: ("~~", "~~"),
    Style.CODE: ("`", "`"),
    Style.PRE: ("```LANGUAGE\n", "\n```"),
}
_LINKS = ("http://", "https://")


def render(styled: StyledText) -> str:
    return render_inline(styled, MARKS, link=_render_link)


def _render_link(text: str, address: str) -> str:
    if text == address or not address.startswith(_LINKS):
        return text
    return f"[{text}](<{address}>)"


CAPABILITIES = Capabilities(
    text_limit=2000,
    measure=lambda styled: len(render(styled)),
    markup=True,
    buttons=5,
    button_chars=80,
    threads=True,
    replies=True,
    file_bytes=10 * 1024 * 1024,
    edits=True,
    typing_s=8.0,
    repeatable=True,
    # Discord remembers the keys of messages for a few minutes.
    repeatable_s=180.0,
)
