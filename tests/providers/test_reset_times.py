"""When a rate limit ends is taken from what was said, and never guessed."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom.clock import SECOND
from postroom.providers.reset_times import from_epoch, from_headers, from_text

NOW = 1_800_000_000 * SECOND  # 2027-01-15T08:00:00Z


def at(*moment: int, zone: str = "UTC") -> int:
    return round(datetime(*moment, tzinfo=ZoneInfo(zone)).timestamp()) * SECOND


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, NOW + 7 * SECOND),
        ({"retry-after": "0.5"}, NOW + SECOND // 2),
        ({"retry-after-ms": "1500", "retry-after": "9"}, NOW + 3 * SECOND // 2),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, NOW + 30 * SECOND),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_header_is_read_in_all_its_forms(headers: dict[str, str], expected: int | None) -> None:
    assert from_headers(headers, NOW) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Claude AI usage limit reached|1800003600", NOW + 3600 * SECOND),
        ("You've hit your session limit · resets 9am (UTC)", at(2027, 1, 15, 9)),
        ("5-hour limit reached ∙ resets 7:30am (UTC)", at(2027, 1, 16, 7, 30)),
        ("limit · resets 11pm (Europe/Berlin)", at(2027, 1, 15, 23, zone="Europe/Berlin")),
        ("limit · resets Jan 18, 12am (UTC)", at(2027, 1, 18, 0)),
        ("weekly limit · resets Jan 2 at 3pm (UTC)", at(2028, 1, 2, 15)),
        ("try again in 1 day 3 hours 5 minutes.", NOW + (27 * 3600 + 300) * SECOND),
        ("Please try again in 1.2s. Visit us", NOW + 6 * SECOND // 5),
        ("Rate limit reached. Please try again in 350ms.", NOW + 350_000),
        ("Please retry in 6m0s", NOW + 360 * SECOND),
        ("resets at 2027-01-15T09:00:00Z", NOW + 3600 * SECOND),
        ("or try again at 9:05 AM.", at(2027, 1, 15, 9, 5)),
        ("resets 3pm (Atlantis/Nowhere)", None),
        ("try again later", None),
        ("429 Too Many Requests", None),
        ("resets 3", None),
        ("", None),
    ],
)
def test_the_sentence_is_understood_or_left_alone(text: str, expected: int | None) -> None:
    assert from_text(text, NOW, local=UTC) == expected


def test_seconds_and_milliseconds_since_1970_are_told_apart() -> None:
    assert from_epoch(1_800_000_000) == NOW
    assert from_epoch(1_800_000_000_000) == NOW
    assert from_epoch(5) is None
    assert from_epoch("1800000000") is None


@given(st.text(), st.integers(0, 2**52))
def test_no_text_breaks_it(text: str, now: int) -> None:
    from_text("resets " + text, now, local=UTC)
    from_headers({"retry-after": text}, now)
