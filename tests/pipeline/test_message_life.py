"""A message's life comes out of its events, in whatever portions they arrive."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest

from postroom.pipeline.lake.tables import LEDGER, MESSAGE_LIFE
from postroom.pipeline.silver.message_life import lives, merge_lives
from tests.pipeline.tiny import columns

T0 = 1_794_000_000_000_000
ID = "01a1b1f6-0800-7000-8000-000000000001"
AFTER_ALL = "ffffffff-ffff-7000-8000-000000000001"


def event(seq: int, change: str, seconds: float, message: str = ID, **data: Any) -> dict[str, Any]:
    return {
        "seq": seq,
        "time": T0 + round(seconds * 1e6),
        "type": f"message.{change}",
        "tenant": "default",
        "scope": "office",
        "queue": "inbox/coder",
        "message_id": message,
        "correlation_id": "talk",
        "actor": "web",
        "data": json.dumps(data),
    }


LIFE = [
    event(
        1,
        "published",
        0,
        state="pending",
        attempts=0,
        type="office.mail",
        tier="normal",
        bytes=10,
        channel="web",
    ),
    event(2, "claimed", 2, state="claimed", attempts=1),
    event(3, "failed", 5, state="delayed", attempts=1, reason="too slow", kind="timed_out"),
    event(4, "ready", 10, state="pending", attempts=1),
    event(5, "claimed", 11, state="claimed", attempts=2),
    event(6, "extended", 15, state="claimed", attempts=2),
    event(7, "completed", 20, state="completed", attempts=2),
]


def the(rows: Any) -> dict[str, Any]:
    [row] = rows.to_pylist()
    return row


def test_waits_work_and_failures_of_a_whole_life() -> None:
    row = the(lives(columns(LEDGER, LIFE)))
    assert (row["state"], row["outcome"], row["attempts"], row["claims"]) == ("completed", "completed", 2, 2)
    assert (row["wait_us"], row["work_us"], row["total_us"]) == (2_000_000, 12_000_000, 20_000_000)
    assert (row["error_class"], row["error_reason"], row["failures"]) == ("timed_out", "too slow", 1)
    assert (row["agent"], row["channel"], row["queue"]) == ("coder", "web", "inbox/coder")
    assert row["finished_at"] == datetime.fromtimestamp((T0 + 20_000_000) / 1e6, UTC)


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_life_that_arrives_in_two_portions_is_the_same(cut: int) -> None:
    whole = the(lives(columns(LEDGER, LIFE)))
    first = lives(columns(LEDGER, LIFE[:cut]))
    rest = columns(LEDGER, LIFE[cut:])
    assert the(lives(rest, first)) == whole
    assert the(merge_lives([lives(rest), first])) == whole, "in whatever order their lives are put together"


def test_what_is_claimed_now_counts_only_finished_work() -> None:
    row = the(lives(columns(LEDGER, LIFE[:5])))
    assert (row["outcome"], row["work_us"], row["finished_at"]) == ("open", 3_000_000, None)


def test_a_claim_that_was_cancelled_from_outside_ends_there() -> None:
    ended = [*LIFE[:2], event(3, "cancelled", 9, state="cancelled", attempts=1)]
    row = the(lives(columns(LEDGER, ended)))
    assert (row["outcome"], row["work_us"]) == ("cancelled", 7_000_000)


def test_unknown_events_and_states_are_passed_over() -> None:
    odd = [
        *LIFE,
        event(8, "teleported", 30, state="pending", attempts=3),
        event(9, "claimed", 31, state="limbo", attempts=3),
        {**event(10, "claimed", 32), "data": "{broken"},
    ]
    assert the(lives(columns(LEDGER, odd))) == the(lives(columns(LEDGER, LIFE)))


def test_the_day_comes_from_the_id_and_foreign_ids_get_day_zero() -> None:
    foreign = [
        event(number, "published", 0, message=name, state="pending", attempts=0)
        for number, name in enumerate(("my-own-id", AFTER_ALL), 1)
    ]
    rows = lives(columns(LEDGER, [*LIFE, *foreign])).to_pylist()
    days = {row["message_id"]: row["day"] for row in rows}
    assert days["my-own-id"] == date(1970, 1, 1)
    assert days[AFTER_ALL] == date(1970, 1, 1), "of the year 10889, which no calendar has"
    assert days[ID] == datetime.fromtimestamp(int(ID[:8] + ID[9:13], 16) / 1000, UTC).date()


def test_a_message_that_was_taken_and_given_back_thousands_of_times_has_a_life() -> None:
    """Times are large numbers: those of some five thousand claims added up are more than a number can be."""
    often = [LIFE[0]]
    for turn in range(6000):
        often.append(event(2 * turn + 2, "claimed", 2 * turn + 1, state="claimed", attempts=1))
        often.append(event(2 * turn + 3, "snoozed", 2 * turn + 2, state="delayed", attempts=0))
    row = the(lives(columns(LEDGER, often)))
    assert (row["claims"], row["snoozes"], row["work_us"]) == (6000, 6000, 6_000_000_000)
    known = columns(MESSAGE_LIFE, [row])
    last = [
        event(20_000, "claimed", 20_000, state="claimed", attempts=1),
        event(20_001, "completed", 20_003, state="completed", attempts=1),
    ]
    row = the(lives(columns(LEDGER, last), known))
    assert (row["outcome"], row["claims"], row["work_us"]) == ("completed", 6001, 6_003_000_000)


def test_a_life_as_it_was_kept_before_goes_on() -> None:
    """The sums of an older lake: of the times of all claims, and of the times of all their ends."""
    kept = the(lives(columns(LEDGER, LIFE[:3])))
    kept |= {"claimed_sum": LIFE[1]["time"], "given_up_sum": LIFE[2]["time"]}
    row = the(lives(columns(LEDGER, LIFE[3:]), columns(MESSAGE_LIFE, [kept])))
    assert row == the(lives(columns(LEDGER, LIFE)))


def test_an_event_that_does_not_tell_its_attempts_counts_none() -> None:
    row = the(lives(columns(LEDGER, [event(1, "published", 0, state="pending")])))
    assert (row["state"], row["attempts"]) == ("pending", 0)
