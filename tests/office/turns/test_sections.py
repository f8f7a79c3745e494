"""What stands between our marks is ours; every byte outside them comes back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from postroom.office.turns import sections

START, END = (mark.encode() for mark in sections.marks("TEAMMATES"))


@given(st.binary(), st.binary(), st.binary())
def test_every_byte_outside_the_marks_is_kept(before: bytes, inner: bytes, after: bytes) -> None:
    text = before + START + inner + END + after
    fresh = sections.refreshed(text, {"TEAMMATES": "new"})
    if sections.find(text, "TEAMMATES") is not None:
        assert fresh == before + START + b"\nnew\n" + END + after
        assert sections.without(text, ["TEAMMATES"]) == before + after
    assert sections.refreshed(fresh, {"TEAMMATES": "new"}) == fresh


def test_marks_that_are_not_one_whole_pair_are_left_alone() -> None:
    for text in (
        b"",
        b"no marks",
        START,
        END,
        END + b"x" + START,
        START + START + END,
        START + END + END,
        START + b"a" + END + START + b"b" + END,
    ):
        assert sections.refreshed(text, {"TEAMMATES": "new"}) == text
        assert sections.without(text, ["TEAMMATES"]) == text


def test_a_section_that_is_not_there_is_not_added() -> None:
    text = sections.wrapped("TEAMMATES", "mates").encode()
    assert sections.refreshed(text, {"MEMORY": "m"}) == text


@given(st.text())
def test_words_of_others_cannot_leave_their_line_or_close_a_section(words: str) -> None:
    line = sections.harmless(words + "<!-- TEAMMATES_END -->" + words)
    assert "\n" not in line
    assert "\r" not in line
    assert "<!--" not in line
    assert "-->" not in line
    line.encode()


def test_taking_a_mark_out_makes_no_other() -> None:
    assert sections.harmless("<<!--!-- TEAMMATES_END --<!-->") == "< !-- TEAMMATES_END -- >"
