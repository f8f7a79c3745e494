"""Reads the Markdown that agents write. Whatever is no Markdown stays as it was written."""

from markdown_it import MarkdownIt
from markdown_it.token import Token

from postroom.channels.styled_text import Span, Style, StyledText

BULLET = "•"
RULE = "———"
_INLINE = {"strong": Style.BOLD, "em": Style.ITALIC, "s": Style.STRIKE}
_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["strikethrough", "table"])


def parse(text: str) -> StyledText:
    reader = _MarkdownReader()
    reader.read_blocks(_PARSER.parse(text))
    return StyledText(reader.text, tuple(sorted(reader.spans, key=lambda s: (s.start, -s.end)))).stripped()


class _MarkdownReader:
    def __init__(self) -> None:
        self.text = ""
        self.spans: list[Span] = []
        self._open: list[tuple[Style, int, str]] = []
        # The marker of each list we are in: the next number, or none for bullets.
        self._lists: list[int | None] = []
        self._rows: list[list[str]] = []
        self._in_cell = False
        self._after_marker = False

    def read_blocks(self, tokens: list[Token]) -> None:
        for token in tokens:
            match token.type:
                case "paragraph_open":
                    self._separate()
                case "heading_open":
                    self._separate()
                    self._begin(Style.BOLD)
                case "heading_close":
                    self._end()
                case "bullet_list_open":
                    self._separate()
                    self._lists.append(None)
                case "ordered_list_open":
                    self._separate()
                    self._lists.append(int(token.attrGet("start") or 1))
                case "bullet_list_close" | "ordered_list_close":
                    self._lists.pop()
                case "list_item_open":
                    self._begin_item()
                case "blockquote_open":
                    self._separate()
                    self._begin(Style.QUOTE)
                case "blockquote_close":
                    self._end()
                case "fence" | "code_block":
                    self._separate()
                    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
                    self._write(token.content.rstrip("\n"), Style.PRE, language)
                case "hr":
                    self._separate()
                    self.text += RULE
                case "table_open":
                    self._rows = []
                case "tr_open":
                    self._rows.append([])
                case "table_close":
                    self._separate()
                    self._write(_align(self._rows), Style.PRE)
                case "th_open" | "td_open":
                    self._in_cell = True
                case "th_close" | "td_close":
                    self._in_cell = False
                case "inline" if self._in_cell:
                    self._rows[-1].append("".join(child.content for child in token.children or []))
                case "inline":
                    self._read_inline(token.children or [])

    def _read_inline(self, tokens: list[Token]) -> None:
        for token in tokens:
            kind, _, edge = token.type.rpartition("_")
            if edge == "open" and kind in _INLINE:
                self._begin(_INLINE[kind])
            elif token.type == "link_open":
                self._begin(Style.LINK, str(token.attrGet("href") or ""))
            elif edge == "close" and (kind in _INLINE or kind == "link"):
                self._end()
            elif token.type == "code_inline":
                self._write(token.content, Style.CODE)
            elif token.type in ("softbreak", "hardbreak"):
                self.text += "\n"
            elif token.type == "image":
                self._write(token.content or "image", Style.LINK, str(token.attrGet("src") or ""))
            else:
                self.text += token.content

    def _begin(self, style: Style, detail: str = "") -> None:
        self._open.append((style, len(self.text), detail))

    def _end(self) -> None:
        style, start, detail = self._open.pop()
        if len(self.text) > start:
            self.spans.append(Span(style, start, len(self.text), detail))

    def _write(self, text: str, style: Style, detail: str = "") -> None:
        self._begin(style, detail)
        self.text += text
        self._end()

    def _separate(self) -> None:
        """Begins a new block. The first one of an item stands in the line of its marker."""
        if self._after_marker:
            self._after_marker = False
        elif self.text:
            self.text = self.text.rstrip("\n") + ("\n" if self._lists else "\n\n")

    def _begin_item(self) -> None:
        if self.text:
            self.text = self.text.rstrip("\n") + "\n"
        marker = BULLET
        if (number := self._lists[-1]) is not None:
            marker = f"{number}."
            self._lists[-1] = number + 1
        self.text += f"{'  ' * (len(self._lists) - 1)}{marker} "
        self._after_marker = True


def _align(rows: list[list[str]]) -> str:
    """A table as monospaced text."""
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(len(rows[0]))]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows]
    if len(lines) > 1:
        lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)
