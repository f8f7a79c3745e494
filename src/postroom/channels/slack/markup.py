"""Styles as Slack's mrkdwn, and what Slack can do."""

from postroom.channels.capabilities import Capabilities
from postroom.channels.inline_markup import PLAIN_MARKS, render_inline
from postroom.channels.styled_text import StyledText


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(styled: StyledText) -> str:
    return render_inline(styled, PLAIN_MARKS, escape=escape, link=lambda text, address: f"<{address}|{text}>")


CAPABILITIES = Capabilities(
    text_limit=3000,
    measure=lambda styled: len(render(styled)),
    markup=True,
    buttons=10,
    button_chars=75,
    threads=True,
    file_bytes=50 * 1024 * 1024,
    edits=True,
    # Slack itself takes words that begin with a slash.
    command_sign="!",
)
