"""Output becomes lines, however it arrives, and no line can fill the memory."""

from hypothesis import given
from hypothesis import strategies as st

from postroom.providers.lines import LineSplitter


@given(st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"))), st.integers(1, 7))
def test_lines_do_not_depend_on_how_the_bytes_arrive(lines: list[str], step: int) -> None:
    data = "\n".join(lines).encode()
    splitter = LineSplitter(limit=10_000)
    got = [line for at in range(0, len(data), step) for line in splitter.feed(data[at : at + step])]
    got += splitter.rest()
    assert got == [text for text in (line.encode().strip().decode() for line in lines) if text]


def test_line_separators_inside_json_strings_do_not_split() -> None:
    assert LineSplitter(100).feed('{"a": "x\u2028y\u0085z"}\n'.encode()) == ['{"a": "x\u2028y\u0085z"}']


def test_a_line_over_the_limit_is_dropped_and_the_next_one_kept() -> None:
    splitter = LineSplitter(limit=10)
    got = [line for chunk in (b"aaaa", b"aaaa", b"aaaa", b"a\nshort\n") for line in splitter.feed(chunk)]
    assert got == ["short"]
    assert splitter.dropped == 1


def test_a_last_line_without_newline_is_kept() -> None:
    splitter = LineSplitter(100)
    assert splitter.feed(b"one\ntw") == ["one"]
    assert splitter.rest() == ["tw"]


def test_bytes_that_are_no_text_do_not_stop_the_reading() -> None:
    assert LineSplitter(100).feed(b"\xff\xfe\nfine\n")[1] == "fine"
