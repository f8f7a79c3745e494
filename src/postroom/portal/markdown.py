"""Answers as they are meant: Markdown becomes HTML, and HTML in it stays text. Nothing is fetched."""

from markdown_it import MarkdownIt
from markupsafe import Markup

from postroom.office.tags import for_people

# `js-default` escapes raw HTML and refuses links that are scripts. Images would ask other machines.
_READER = MarkdownIt("js-default", {"html": False, "linkify": False, "breaks": True}).disable("image")


def render_answer(text: str) -> Markup:
    """What an agent wrote: hand-offs are told as sentences, not as the tags that agents use."""
    return render_markdown(for_people(text))


def render_markdown(text: str) -> Markup:
    return Markup(_READER.render(text))
