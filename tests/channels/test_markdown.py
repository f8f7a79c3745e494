"""What agents write is read as Markdown, and what is none stays as it was written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.channels.markdown import parse
from postroom.channels.styled_text import Span, Style, StyledText


def styles(styled: StyledText) -> list[tuple[str, str]]:
    return [(span.style.value, styled.text[span.start : span.end]) for span in styled.spans]


@pytest.mark.parametrize(
    ("source", "text", "spans"),
    [
        ("plain words", "plain words", []),
        ("a **b *c* d**", "a b c d", [("bold", "b c d"), ("italic", "c")]),
        ("~~old~~ `x < y`", "old x < y", [("strike", "old"), ("code", "x < y")]),
        ("see [docs](https://e.org/a_b)", "see docs", [("link", "docs")]),
        ("# Title\ntext", "Title\n\ntext", [("bold", "Title")]),
        ("one\ntwo\n\n\nthree", "one\ntwo\n\nthree", []),
        ("- a\n- b\n  - c\n\nend", "• a\n• b\n  • c\n\nend", []),
        ("3. a\n4. b", "3. a\n4. b", []),
        ("> quoted\n> more\n\nmine", "quoted\nmore\n\nmine", [("quote", "quoted\nmore")]),
        ("```python\nif a < b:\n    pass\n```", "if a < b:\n    pass", [("pre", "if a < b:\n    pass")]),
        ("1 < 2 & snake_case_name *", "1 < 2 & snake_case_name *", []),
        ("<b>not html</b>", "<b>not html</b>", []),
        ("an **open star", "an **open star", []),
        ("| a | b |\n|---|---|\n| 1 | 22 |", "a | b\n--+---\n1 | 22", [("pre", "a | b\n--+---\n1 | 22")]),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
    ],
)
def test_markdown_becomes_text_and_styles(source: str, text: str, spans: list[tuple[str, str]]) -> None:
    styled = parse(source)
    assert styled.text == text
    assert styles(styled) == spans


def test_details_of_links_and_code_are_kept() -> None:
    styled = parse("[docs](https://e.org) and\n\n```sh\nls\n```")
    assert [span.detail for span in styled.spans] == ["https://e.org", "sh"]
    assert styled.plain() == "docs (https://e.org) and\n\nls"


@given(st.text(alphabet=st.sampled_from("ab *_`~[]()#->\n1.|\\<&"), max_size=60))
def test_styles_always_lie_within_the_text(source: str) -> None:
    styled = parse(source)
    assert styled.text == styled.text.strip()
    for span in styled.spans:
        assert 0 <= span.start < span.end <= len(styled.text)


def test_a_slice_cuts_styles_to_itself() -> None:
    styled = StyledText("abcdef", (Span(Style.BOLD, 1, 5), Span(Style.CODE, 0, 2)))
    assert styled.slice(2, 4) == StyledText("cd", (Span(Style.BOLD, 0, 2),))
