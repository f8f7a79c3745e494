"""A long text is cut where people would cut it, and every piece fits and is whole."""

from hypothesis import given
from hypothesis import strategies as st

from postroom.channels.markdown import parse
from postroom.channels.splitting import split
from postroom.channels.styled_text import Span, Style, StyledText


def length(styled: StyledText) -> int:
    return len(styled.text)


def length_with_markup(styled: StyledText) -> int:
    return len(styled.text) + 4 * len(styled.spans)


def texts(source: StyledText, limit: int) -> list[str]:
    return [piece.text for piece in split(source, limit, length)]


def test_a_text_that_fits_is_one_piece() -> None:
    assert texts(StyledText("hello"), 5) == ["hello"]
    assert texts(StyledText("  \n "), 5) == []


def test_cuts_are_at_paragraphs_then_lines_then_words_then_anywhere() -> None:
    assert texts(StyledText("one two\n\nthree four"), 14) == ["one two", "three four"]
    assert texts(StyledText("a\n\nbbb bbb\nccc"), 11) == ["a\n\nbbb bbb", "ccc"]
    assert texts(StyledText("aaa bbb ccc"), 8) == ["aaa bbb", "ccc"]
    assert texts(StyledText("aaaaaaaaaa"), 4) == ["aaaa", "aaaa", "aa"]


def test_marks_and_joined_emoji_stay_with_their_character() -> None:
    family = "👨\u200d👩\u200d👧"
    assert texts(StyledText("aaa" + family + "b"), 5) == ["aaa", family, "b"]
    assert texts(StyledText("aae\u0301x"), 3) == ["aa", "e\u0301x"]


def test_a_style_goes_on_in_the_next_piece() -> None:
    styled = parse("**" + "word " * 10 + "end**")
    pieces = split(styled, 20, length)
    assert all(piece.spans == (Span(Style.BOLD, 0, len(piece.text)),) for piece in pieces)
    code = parse("```python\n" + "x = 1\n" * 10 + "```")
    assert {span.detail for piece in split(code, 20, length) for span in piece.spans} == {"python"}


@given(
    st.text(alphabet=st.sampled_from("ab \n👍e\u0301\u200d"), max_size=200),
    st.integers(min_value=8, max_value=40),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=4),
)
def test_every_piece_fits_and_nothing_but_blank_space_is_lost(
    text: str, limit: int, bounds: list[tuple[int, int]]
) -> None:
    spans = tuple(
        Span(Style.BOLD, start, min(end, len(text)))
        for start, end in map(sorted, bounds)
        if start < min(end, len(text))
    )
    styled = StyledText(text, spans[:1])
    pieces = split(styled, limit, length_with_markup)
    assert all(length_with_markup(piece) <= limit for piece in pieces)
    assert "".join("".join(piece.text.split()) for piece in pieces) == "".join(text.split())
