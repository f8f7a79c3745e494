"""Placeholders are filled with values of any kind, and what is missing is told or left out."""

import pytest

from postroom.errors import InvalidField
from postroom.kernel.templates import filled, holes

VALUES = {"text": "hello", "n": 3, "deep": {"er": [1, 2]}, "empty": None}


def test_a_text_that_is_one_placeholder_becomes_its_value() -> None:
    assert filled({"a": "{{n}}", "b": ["{{ deep.er }}"], "c": 7}, VALUES) == {"a": 3, "b": [[1, 2]], "c": 7}


def test_in_longer_texts_values_are_written_out() -> None:
    assert filled("say {{text}} {{n}} times: {{deep}}", VALUES) == 'say hello 3 times: {"er":[1,2]}'


def test_what_is_missing_is_an_error_or_nothing() -> None:
    with pytest.raises(InvalidField, match=r"has no deep\.est"):
        filled("{{deep.est}}", VALUES)
    assert filled({"a": "{{deep.est}}", "b": "x{{nope}}y"}, VALUES, strict=False) == {"a": None, "b": "xy"}


def test_values_are_not_filled_again() -> None:
    assert filled("{{text}}", {"text": "{{n}}", "n": 1}) == "{{n}}"


def test_holes_are_found_wherever_they_are() -> None:
    assert holes({"a": ["{{x}} and {{y.z}}", 3], "b": {"c": "{{x}}"}}) == {"x", "y.z"}
