"""Texts fit where they have to, whatever they hold."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from postroom.office.texts import CUT, clean, excerpt, fitted

ANY = st.text(st.characters(codec=None), max_size=400)


@given(ANY)
def test_a_clean_text_can_be_written_and_a_writable_one_is_left_alone(text: str) -> None:
    made = clean(text)
    made.encode()
    assert clean(made) == made
    if max(text, default="") < "\ud800" or min(text, default="\uffff") > "\udfff":
        assert made == text


@given(st.text(max_size=400), st.integers(100, 1000))
def test_a_fitted_text_takes_no_more_than_it_may(text: str, most: int) -> None:
    made = fitted(text, most)
    assert len(msgspec.json.encode(made)) <= most
    if len(msgspec.json.encode(text)) <= most:
        assert made == text
    else:
        assert made.endswith(CUT)
        assert text.startswith(made.removesuffix(CUT))


@given(st.text(max_size=100), st.integers(1, 50))
def test_an_excerpt_is_the_beginning(text: str, most: int) -> None:
    made = excerpt(text, most)
    assert len(made) <= most
    assert text.strip().startswith(made.removesuffix("…").rstrip())
