"""How values read on a terminal, and how words become values."""

from datetime import UTC, datetime

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from postroom.clock import SECOND
from postroom.kernel import jsontext
from postroom.terminal.cli.output import ago, clean, json_text, short, some, span
from postroom.terminal.cli.values import duration, label, when


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"),
        (0.25, "250 ms"),
        (1, "1 s"),
        (1.26, "1.3 s"),
        (59.4, "59 s"),
        (59.96, "1 min"),
        (90, "1.5 min"),
        (300, "5 min"),
        (5400, "90 min"),
        (9000, "2.5 h"),
        (86400, "24 h"),
        (30 * 86400, "30 days"),
    ],
)
def test_a_span_reads_as_people_say_it(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_moment_is_past_or_to_come() -> None:
    assert ago(10 * SECOND, 15 * SECOND) == "5 s ago"
    assert ago(15 * SECOND, 10 * SECOND) == "in 5 s"
    assert ago(None, 0) == ""


def test_nouns_have_numbers() -> None:
    assert [some(n, "message") for n in (0, 1, 2000)] == ["0 messages", "1 message", "2,000 messages"]


@given(st.text())
def test_no_text_keeps_a_control_character(text: str) -> None:
    assert all(character.isprintable() or ord(character) >= 0xA0 for character in clean(text))


@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists, max_leaves=5))
def test_json_means_the_same_when_it_is_cleaned(value: object) -> None:
    assert jsontext.decode(json_text(value)) == value
    assert "\n" not in json_text(value)


def test_a_long_value_is_cut() -> None:
    assert short("x" * 100, 10) == '"xxxxxxxx…'
    assert short(b"abc") == "(3 bytes)"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("0.5", 0.5), ("500ms", 0.5), ("5m", 300), ("2h", 7200), ("7d", 604800), (" 1 h ", 3600)],
)
def test_a_duration_is_written_in_many_ways(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "1w", "5mm", "1e3", "inf", "nan", "1h30m", "٣"])
def test_other_words_are_no_durations(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        duration(text)


def test_a_time_is_absolute_or_relative() -> None:
    fixed = round(datetime(2027, 1, 31, 12, tzinfo=UTC).timestamp() * SECOND)
    assert when("2027-01-31T12:00Z").ahead_of(0) == fixed
    assert when("2027-01-31T13:00+01:00").before(0) == fixed
    assert when("2027-01-31").ahead_of(0) == round(datetime(2027, 1, 31).astimezone().timestamp() * SECOND)
    assert when("2h").ahead_of(0) == 7200 * SECOND
    assert when("2h").before(7200 * SECOND) == 0


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("a=b", ("a", "b")),
        ("a=", ("a", "")),
        ("a=b=c", ("a", "b=c")),
        ("n:=5", ("n", 5)),
        ("a:b=c", ("a:b", "c")),
    ],
)
def test_a_label_is_a_name_and_a_value(text: str, pair: tuple[str, object]) -> None:
    assert label(text) == pair
