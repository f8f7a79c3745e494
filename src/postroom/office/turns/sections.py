"""Marked sections of a text file: what we write stands between marks, and nothing outside them is touched.

A section is `<!-- NAME_START -->` … `<!-- NAME_END -->`. Texts are bytes here, because what a person wrote
must come back as it was, whatever its encoding and line ends.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

_COMMENT = re.compile(r"<!--|--!?>|[\x00-\x1f\x7f]")


class FoundSection(msgspec.Struct, frozen=True):
    """Where a section stands: its marks included, and what is between them."""

    start: int
    inner_start: int
    inner_end: int
    end: int


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}_START -->", f"<!-- {name}_END -->"


def wrapped(name: str, content: str) -> str:
    start, end = marks(name)
    return f"{start}\n{content.strip()}\n{end}"


def find(text: bytes, name: str) -> FoundSection | None:
    """The section, if it is there once and whole; where it is not, nobody can tell what is ours."""
    start, end = (mark.encode() for mark in marks(name))
    if text.count(start) != 1 or text.count(end) != 1:
        return None
    first, last = text.index(start), text.index(end)
    if last < first + len(start):
        return None
    return FoundSection(first, first + len(start), last, last + len(end))


def refreshed(text: bytes, contents: Mapping[str, str]) -> bytes:
    """The text with new contents in those of the sections that it has."""
    for name, content in contents.items():
        found = find(text, name)
        if found is not None:
            inner = f"\n{content.strip()}\n".encode()
            text = text[: found.inner_start] + inner + text[found.inner_end :]
    return text


def without(text: bytes, names: Iterable[str]) -> bytes:
    """The text without these sections, so that what they say is not said twice."""
    for name in names:
        found = find(text, name)
        if found is not None:
            text = text[: found.start] + text[found.end :]
    return text


def harmless(text: str, chars: int = 200) -> str:
    """Words of others for one line of a section: no line ends, and no mark that could end it."""
    # A blank in the place of a mark, so that taking one out cannot make another.
    line = " ".join(_COMMENT.sub(" ", text.encode(errors="replace").decode()).split())
    return line if len(line) <= chars else f"{line[: chars - 1]}…"
