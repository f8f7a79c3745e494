"""One thing, whole, over the screen it was chosen on. Escape leads back."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Label, Static

from postroom.terminal.cli.output import clean


class DetailScreen(ModalScreen[None]):
    CSS = """
    DetailScreen { align: center middle; }
    #detail { width: 90%; height: 80%; border: round $primary; background: $surface; padding: 0 1; }
    #detail-title { text-style: bold; width: 100%; margin-bottom: 1; }
    .hint { color: $text-muted; margin-top: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "back", priority=True),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = clean(title)
        self._text = clean(text, lines=True)

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="detail"):
            yield Label(self._title, id="detail-title", markup=False)
            yield Static(self._text, id="detail-text", markup=False)
            yield Label("Escape: back", classes="hint")
