"""Styles as plain HTML, which Matrix clients and mail programs show."""

import html

from postroom.channels.inline_markup import render_inline
from postroom.channels.styled_text import Style, StyledText

MARKS = {
    Style.BOLD: ("<strong>", "</strong>"),
    Style.ITALIC: ("<em>", "</em>"),
    Style.STRIKE: ("<del>", "</del>"),
    Style.CODE: ("<code>", "</code>"),
    Style.PRE: ("<pre><code>", "</code></pre>"),
    Style.QUOTE: ("<blockquote>", "</blockquote>"),
}


def render_html(styled: StyledText) -> str:
    return render_inline(
        styled,
        MARKS,
        escape=lambda text: html.escape(text).replace("\n", "<br>"),
        link=lambda text, address: f'<a href="{html.escape(address, quote=True)}">{text}</a>',
    )
