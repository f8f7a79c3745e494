"""Styles as WhatsApp writes them, and what WhatsApp can do."""

from postroom.channels.capabilities import Capabilities
from postroom.channels.inline_markup import PLAIN_MARKS, render_inline
from postroom.channels.styled_text import StyledText


def render(styled: StyledText) -> str:
    return render_inline(styled, PLAIN_MARKS)


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
