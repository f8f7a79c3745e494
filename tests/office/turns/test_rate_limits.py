"""What follows from a rate limit: when it is tried again, and who is told."""

from typing import Any

import pytest

from postroom.clock import SECOND, iso
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office.lanes.batches import Batch
from postroom.office.turns.outcomes import TurnRules
from postroom.office.turns.rate_limits import AgentWait, MessageWait, keep_waiting
from postroom.providers.protocol import ErrorKind, Failed

NOW = 1_800_000_000 * SECOND
HOUR = 3600 * SECOND


def mail(**fields: Any) -> Message:
    plain: dict[str, Any] = dict.fromkeys(Message.__struct_fields__)
    own = {"id": "m1", "claim_token": "t1", "attempts": 1, "hop": 0, "channel": "web", "sender": "Ann"}
    return Message(
        **{**plain, "metadata": {}, "labels": {}, "files": [], "body": {"text": "hi"}, **own, **fields}
    )


def after(
    problem: Failed, before: AgentWait | None = None, own: MessageWait | None = None
) -> list[c.Command]:
    wait = (before or AgentWait()).after(problem, NOW)
    return keep_waiting(Batch(mail()), "coder", wait, {"m1": own} if own else {}, TurnRules(), NOW)


def limited(retry_at: int | None, message: str = "The limit is reached.") -> Failed:
    return Failed(kind=ErrorKind.RATE_LIMIT, message=message, retry_at=retry_at)


def snoozed(commands: list[c.Command]) -> float:
    [seconds] = [command.seconds for command in commands if isinstance(command, c.Snooze)]
    assert seconds is not None
    return seconds


def told(commands: list[c.Command]) -> list[str]:
    published = [command for command in commands if isinstance(command, c.Publish)]
    return [message.body["text"] for command in published for message in command.messages]


@pytest.mark.parametrize(
    ("retry_at", "seconds"),
    [
        (None, 60.0),
        (NOW + 90 * SECOND, 90.0),
        (NOW, 60.0),
        (NOW - 24 * HOUR, 60.0),
        (NOW + 1, 1.0),
        (NOW + 5 * HOUR, 5 * 3600.0),
        (NOW + 400 * 24 * HOUR, 24 * 3600.0),
    ],
)
def test_a_rate_limit_is_waited_for_neither_in_no_time_nor_for_ever(
    retry_at: int | None, seconds: float
) -> None:
    """Programs name moments that are past, or that belong to something else."""
    assert snoozed(after(limited(retry_at))) == seconds


def test_the_pause_at_least_doubles_up_to_an_hour_and_never_falls_short_of_what_the_server_says() -> None:
    wait, pauses = AgentWait(), []
    for _ in range(9):
        wait = wait.after(limited(None), NOW)
        pauses.append((wait.until - NOW) / SECOND)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    assert (wait.after(limited(NOW + 5 * HOUR), NOW).until - NOW) / SECOND == 5 * 3600


def test_a_person_is_told_of_a_long_wait_once() -> None:
    later = f"Claude Code has reached its rate limit until {iso(NOW + 5 * HOUR)}."
    [text] = told(after(limited(NOW + 5 * HOUR, later)))
    assert later in text
    assert "nothing is lost" in text
    assert told(after(limited(NOW + 6 * HOUR), own=MessageWait(since=NOW - HOUR, told=True))) == []


def test_a_person_is_told_of_many_short_waits_that_are_long_together() -> None:
    [text] = told(after(limited(NOW + SECOND), own=MessageWait(since=NOW - HOUR)))
    assert "has to wait" in text


def test_waits_of_a_clock_that_was_ahead_end_when_it_is_put_back() -> None:
    ahead = AgentWait().after(limited(None), NOW + 72 * HOUR)
    assert ahead.holds(NOW + 72 * HOUR)
    assert not ahead.holds(NOW)
    assert AgentWait().after(limited(NOW + 400 * HOUR), NOW).holds(NOW), "the longest that may be"
    commands = after(limited(None), own=MessageWait(since=NOW + 72 * HOUR, told=True))
    [kept] = [command.data for command in commands if isinstance(command, c.AddRecord)]
    assert kept == {"since": NOW, "told": True}


def test_nobody_is_bothered_with_a_short_wait() -> None:
    assert told(after(limited(NOW + 30 * SECOND))) == []
