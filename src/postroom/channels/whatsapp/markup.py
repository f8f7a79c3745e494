"""Styles as WhatsApp writes them, and what WhatsApp can do."""

from postroom.channels.capabilities import Capabilities
from postroom.channels.inline_markup import render_inline
from postroom.channels.styled_text import Style, StyledText

MARKS = {
    Style.BOLD: ("*", "*"),
    Style.ITALIC: ("_", "_"),
    Style.STRIKE: ("~", "~"),
    Style.CODE: ("`", "`"),
    Style.PRE: ("```", "```"),
}


def render(styled: StyledText) -> str:
    return render_inline(styled, MARKS)


CAPABILITIES = Capabilities(
    text_limit=4096,
    measure=lambda styled: len(render(styled)),
    markup=True,
    buttons=10,
    button_chars=20,
    replies=True,
    file_bytes=16 * 1024 * 1024,
    typing_s=20.0,
)
