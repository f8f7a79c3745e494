"""What a command shows: tables and words for people, JSON for programs.

Text that came from messages is cleaned first, so that nobody can send control sequences to a terminal.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from postroom.clock import SECOND
from postroom.kernel import jsontext

if TYPE_CHECKING:  # what only looks nice is imported when something is shown
    from rich.console import Console, RenderableType
    from rich.table import Table

PIPE_WIDTH = 10_000
BODY_CHARS = 60
_INVISIBLE = [
    *range(0x20),
    *range(0x7F, 0xA0),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    0x2028,
    0x2029,
]
_SHOWN = {code: f"\\u{code:04x}" for code in _INVISIBLE}
_SHOWN_LINES = {code: text for code, text in _SHOWN.items() if chr(code) not in "\n\t"}


def clean(text: str, *, lines: bool = False) -> str:
    """The text with everything a terminal would obey, rather than show, written out as `\\u001b`."""
    return text.translate(_SHOWN_LINES if lines else _SHOWN)


def json_text(document: Any) -> str:
    # Such characters stand only inside JSON strings, where this way of writing means the same.
    return clean(jsontext.text(document))


def short(value: Any, chars: int = BODY_CHARS) -> str:
    """A value on one line, as JSON, cut when it is long."""
    if isinstance(value, bytes | bytearray):
        return f"({len(value)} bytes)"
    text = json_text(value)
    return text if len(text) <= chars else text[: chars - 1] + "…"


def some(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def span(seconds: float) -> str:
    """A length of time in the unit a person would choose."""
    seconds = abs(seconds)
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    for unit, size, most in (("s", 1, 59.95), ("min", 60, 6000), ("h", 3600, 360_000)):
        if seconds < most:
            return f"{_rounded(seconds / size)} {unit}"
    return f"{_rounded(seconds / 86400)} days"


def _rounded(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0") if value < 9.95 else f"{value:.0f}"


def age(moment: int, now: int) -> str:
    return span((now - moment) / SECOND)


def ago(moment: int | None, now: int) -> str:
    if moment is None:
        return ""
    seconds = (now - moment) / SECOND
    return f"{span(seconds)} ago" if seconds >= 0 else f"in {span(seconds)}"


@dataclass(frozen=True)
class Column:
    title: str
    right: bool = False
    whole: bool = False
    """Never cut: an id must stay fit for copying."""
    free: bool = False
    """Text of any length, which is cut first when the terminal is narrow."""


@dataclass(frozen=True)
class TextTable:
    """Rows for people. It becomes a table of `rich` only when it is shown, not beside an answer in JSON."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    def __rich__(self) -> "Table":
        from rich.table import Table

        shown = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
        for column in self.columns:
            shown.add_column(
                column.title,
                justify="right" if column.right else "left",
                no_wrap=not column.free,
                overflow="ignore" if column.whole else "ellipsis",
                min_width=36 if column.whole else 10 if column.free else None,
            )
        for row in self.rows:
            shown.add_row(*(_cell(value) for value in row))
        return shown


@dataclass(frozen=True)
class FactList:
    pairs: Sequence[tuple[str, Any]]

    def __rich__(self) -> "Table":
        from rich.table import Table

        shown = Table(box=None, pad_edge=False, show_header=False, show_edge=False)
        shown.add_column(style="dim", no_wrap=True)
        shown.add_column(overflow="fold")
        for name, value in self.pairs:
            shown.add_row(name, _cell(value, lines=True))
        return shown


def table(columns: Sequence[str | Column], rows: Iterable[Sequence[Any]]) -> TextTable:
    titles = [Column(column) if isinstance(column, str) else column for column in columns]
    return TextTable(titles, [list(row) for row in rows])


def facts(pairs: Iterable[tuple[str, Any]]) -> FactList:
    """Names and values below each other; what is None or empty is left out."""
    return FactList([(name, value) for name, value in pairs if value not in (None, "", {}, [])])


def _cell(value: Any, *, lines: bool = False) -> "RenderableType":
    from rich.text import Text

    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return Text(clean(str(value), lines=lines), no_wrap=not lines, overflow="fold" if lines else "ellipsis")


class Output:
    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    def show(self, document: Any, *shown: "RenderableType") -> None:
        """The answer of a command: the document for programs, the rest for people."""
        if self.as_json:
            self.line(document)
        else:
            for part in shown:
                self.say(part)

    def line(self, document: Any) -> None:
        sys.stdout.write(json_text(document) + "\n")
        sys.stdout.flush()

    def say(self, part: "RenderableType", *, style: str | None = None) -> None:
        if isinstance(part, str):
            # Whole lines, for the terminal to wrap: a path or an id broken in two cannot be copied.
            text = clean(part, lines=True)
            self.console().print(text, style=style, markup=False, highlight=False, soft_wrap=True)
        else:
            console = self.console()
            with console.capture() as captured:
                console.print(part, style=style, highlight=False)
            # Cells are filled up with blanks, which nobody wants in a file.
            lines = captured.get().splitlines()
            sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))

    def note(self, text: str) -> None:
        """Something besides the answer, which therefore goes to stderr."""
        self.console(stderr=True).print(f"note: {clean(text)}", style="dim", markup=False, soft_wrap=True)

    def console(self, *, stderr: bool = False) -> "Console":
        from rich.console import Console

        stream = sys.stderr if stderr else sys.stdout
        return Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH, emoji=False)
