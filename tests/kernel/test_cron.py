"""When expressions come due, over changes of the clock, leap days and years that never come."""

from datetime import UTC, datetime
from itertools import islice, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.office.schedules.desk import moment

from postroom.clock import SECOND
from postroom.errors import InvalidField
from postroom.kernel.schedules.cron import NICKNAMES, Cron
from postroom.office.schedules.errors import InvalidCron

BERLIN, LORD_HOWE = "Europe/Berlin", "Australia/Lord_Howe"


def times(cron: str, after: str, count: int, zone: str = BERLIN) -> list[str]:
    """The next times, as they are in UTC."""
    found = islice(Cron(cron, zone).times(moment(after)), count)
    return [datetime.fromtimestamp(at / SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S") for at in found]


def test_five_fields_are_minute_hour_day_month_weekday() -> None:
    assert times("30 9 * * MON-FRI", "2026-11-13T12:00+01:00", 2) == [
        "2026-11-16 08:30:00",
        "2026-11-17 08:30:00",
    ]


def test_six_fields_begin_with_the_second() -> None:
    assert times("*/20 0 9 * * *", "2026-11-13T07:00Z", 4, "UTC") == [
        "2026-11-13 09:00:00",
        "2026-11-13 09:00:20",
        "2026-11-13 09:00:40",
        "2026-11-14 09:00:00",
    ]


def test_seven_fields_end_with_the_year() -> None:
    assert times("0 0 12 1 7 * 2030,2032", "2026-01-01T00:00Z", 5, "UTC") == [
        "2030-07-01 12:00:00",
        "2032-07-01 12:00:00",
    ]
    assert times("0 0 0 1 1 * 2030/4", "2026-01-01T00:00Z", 2, "UTC") == [
        "2030-01-01 00:00:00",
        "2034-01-01 00:00:00",
    ]


def test_a_time_is_never_its_own_next() -> None:
    for cron in ("* * * * *", "* * * * * *", "0 9 * * *"):
        at = Cron(cron, BERLIN).next(moment("2026-05-05T08:59:30+02:00"))
        assert at is not None
        following = Cron(cron, BERLIN).next(at)
        assert following is not None
        assert following > at


def test_names_nicknames_and_question_marks() -> None:
    assert times("0 0 1 jan ?", "2026-05-05T00:00Z", 1, "UTC") == ["2027-01-01 00:00:00"]
    for name in NICKNAMES:
        assert Cron(name.upper()).next(0) == Cron(NICKNAMES[name]).next(0)
    assert times("0 9 * * FRI#L", "2026-11-01T00:00Z", 1, "UTC") == times(
        "0 9 * * 5L", "2026-11-01T00:00Z", 1, "UTC"
    )
    assert times("0 9 L * *", "2027-02-01T00:00Z", 1, "UTC") == ["2027-02-28 09:00:00"]
    assert times("0 9 * * MON#1", "2026-11-03T00:00Z", 1, "UTC") == ["2026-12-07 09:00:00"]


def test_a_time_that_the_clock_leaves_out_comes_right_after_the_gap() -> None:
    """On 29 March 2026 the clocks of Berlin go from 02:00 to 03:00."""
    for cron in ("30 2 * * *", "0 30 2 * * *"):
        assert times(cron, "2026-03-28T12:00+01:00", 2) == ["2026-03-29 01:00:00", "2026-03-30 00:30:00"]


def test_several_times_in_the_gap_are_one() -> None:
    assert times("15,45 2 * * *", "2026-03-28T12:00+01:00", 2) == [
        "2026-03-29 01:00:00",
        "2026-03-30 00:15:00",
    ]


def test_a_time_that_the_clock_shows_twice_comes_once() -> None:
    """On 25 October 2026 the clocks of Berlin go from 03:00 back to 02:00."""
    for cron in ("30 2 * * *", "0 30 2 * * *"):
        assert times(cron, "2026-10-24T12:00+02:00", 2) == ["2026-10-25 00:30:00", "2026-10-26 01:30:00"]
    # Also when asked from within the hour that comes again.
    assert times("45 2 * * *", "2026-10-25T01:20Z", 1) == ["2026-10-26 01:45:00"]


def test_what_is_of_every_hour_follows_real_time() -> None:
    assert times("30 * * * *", "2026-10-24T23:45Z", 3) == [
        "2026-10-25 00:30:00",
        "2026-10-25 01:30:00",
        "2026-10-25 02:30:00",
    ]
    assert times("30 * * * *", "2026-03-29T00:00Z", 2) == ["2026-03-29 00:30:00", "2026-03-29 01:30:00"]


def test_half_an_hour_of_summer_time_is_handled_too() -> None:
    """Lord Howe Island moves its clocks by half an hour, on 5 April and 4 October 2026."""
    assert times("15 2 * * *", "2026-10-03T00:00Z", 2, LORD_HOWE) == [
        "2026-10-03 15:30:00",
        "2026-10-04 15:15:00",
    ]
    assert times("45 1 * * *", "2026-04-04T00:00Z", 2, LORD_HOWE) == [
        "2026-04-04 14:45:00",
        "2026-04-05 15:15:00",
    ]


def test_a_leap_day_comes_in_leap_years_only() -> None:
    assert times("0 0 29 2 *", "2026-01-01T00:00Z", 3, "UTC") == [
        "2028-02-29 00:00:00",
        "2032-02-29 00:00:00",
        "2036-02-29 00:00:00",
    ]
    assert times("0 0 29 2 *", "2097-01-01T00:00Z", 1, "UTC") == ["2104-02-29 00:00:00"], "2100 is none"


def test_what_never_comes_is_known_not_to_come() -> None:
    assert Cron("* * */20 * 1L").next(moment("2026-01-01T00:00Z")) is None
    assert Cron("0 0 0 1 1 * 2020").next(moment("2026-01-01T00:00Z")) is None


def test_the_last_year_there_is_has_an_end() -> None:
    last = Cron("0 0 0 31 12 * 9999")
    at = last.next(moment("2026-01-01T00:00Z"))
    assert at == moment("9999-12-31T00:00Z")
    assert last.next(moment("9999-12-31T00:00Z")) is None
    assert Cron("* * * * *", BERLIN).next(moment("9999-12-31T23:59:59Z")) is None
    assert Cron("* * * * *").next(2**62) is None


@pytest.mark.parametrize(
    ("cron", "word"),
    [
        ("", "five fields"),
        ("nope", "five fields"),
        ("* * * *", "five fields"),
        ("* * * * * * * *", "five fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of month"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "day of week"),
        ("* * * * MON-", "day of week"),
        ("*/0 * * * *", "minute"),
        ("5-1 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("0 0 30 2 *", "day of month"),
        ("0 0 0 1 1 * 20", "year"),
        ("0 0 0 1 1 * 2030-2020", "year"),
        ("0 0 0 1 1 * 1900", "year"),
        ("0 0 0 1 1 * 2030/0", "year"),
        ("٣ * * * *", "minute"),
        ("* * * * * " + "1," * 200, "200"),
    ],
)
def test_what_is_not_understood_is_refused_by_field(cron: str, word: str) -> None:
    with pytest.raises(InvalidCron, match=word):
        Cron(cron)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../../etc/passwd", "/etc/localtime", "Europe", "a\0b"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(InvalidField, match="zone"):
        Cron("* * * * *", zone)


FIELDS = st.tuples(
    st.sampled_from(["0", "*", "*/10", "30", "15,45"]),
    st.sampled_from(["2", "*", "1-3", "*/3", "0", "23"]),
    st.sampled_from(["*", "25", "29", "L", "1"]),
    st.sampled_from(["*", "3", "10", "3,10"]),
    st.sampled_from(["*", "SUN", "1-5"]),
).map(" ".join)
NEAR_CHANGES = st.sampled_from(
    ["2026-03-28T00:00Z", "2026-10-24T00:00Z", "2026-04-04T00:00Z", "2026-10-03T00:00Z"]
)


@given(FIELDS, NEAR_CHANGES, st.integers(0, 3 * 24 * 3600), st.sampled_from([BERLIN, LORD_HOWE, "UTC"]))
@example("15,45 2 * * *", "2026-10-24T00:00Z", 90_000, BERLIN)
def test_the_times_are_the_same_from_wherever_one_looks(cron: str, start: str, ahead: int, zone: str) -> None:
    """So a restart at any moment neither leaves a time out nor adds one."""
    expression = Cron(cron, zone)
    begin, within = moment(start), moment(start) + ahead * SECOND
    sequence = list(islice(expression.times(begin), 300))
    assert all(one < other for one, other in pairwise(sequence))
    later = [at for at in sequence if at > within]
    if later:
        assert expression.next(within) == later[0]


@given(st.text(alphabet="0123456789*/-,#?LWAPRMONJ @", max_size=30))
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        expression = Cron(text, BERLIN)
    except InvalidCron:
        return
    at = expression.next(moment("2026-01-01T00:00Z"))
    assert at is None or at > moment("2026-01-01T00:00Z")
