"""Cuts a text into pieces that a platform takes: at a blank line, else at a line's end, else between words.

Styles go on in the next piece, so that no piece has broken markup. Only blank space at a cut is lost.
"""

import unicodedata
from collections.abc import Callable

from postroom.channels.styled_text import StyledText

Measure = Callable[[StyledText], int]


def split(styled: StyledText, limit: int, measure: Measure) -> list[StyledText]:
    """`measure` says how long the platform counts a text, with its markup."""
    pieces: list[StyledText] = []
    rest = styled.stripped()
    while rest.text:
        end = _cut(rest, limit, measure)
        pieces.append(rest.slice(0, end).stripped())
        rest = rest.slice(end, len(rest.text)).stripped()
    return pieces


def _cut(styled: StyledText, limit: int, measure: Measure) -> int:
    most = _longest(styled, limit, measure)
    if most == len(styled.text):
        return most
    text = styled.text[:most]
    blank = text.rfind("\n\n")
    # A paragraph is kept together unless that would leave most of the piece empty.
    for cut in (blank if blank > most // 2 else 0, text.rfind("\n"), text.rfind(" ")):
        if cut > 0 and text[:cut].strip():
            return cut
    return _between_characters(styled.text, most)


def _longest(styled: StyledText, limit: int, measure: Measure) -> int:
    """How many characters from the start fit; at least one, or it would never end."""
    low, high = 1, min(len(styled.text), max(limit, 1))
    if high == len(styled.text) and measure(styled) <= limit:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if measure(styled.slice(0, middle)) <= limit:
            low = middle
        else:
            high = middle - 1
    return low


def _between_characters(text: str, cut: int) -> int:
    """Not between a character and the marks, joiners and selectors that belong to it."""
    place = cut
    while place > 1 and (_joins(text[place]) or text[place - 1] == "\u200d"):
        place -= 1
    return place if place > 1 or not _joins(text[1:2]) else cut


def _joins(sign: str) -> bool:
    return bool(sign) and (
        sign == "\u200d"
        or unicodedata.category(sign) in ("Mn", "Me", "Mc")
        or "\U0001f3fb" <= sign <= "\U0001f3ff"
    )
