"""What follows from a turn that failed: when it is tried again, and who is told."""

from typing import Any

import pytest

from postroom.clock import SECOND, iso
from postroom.kernel import commands as c
from postroom.kernel.model import Message
from postroom.office.lanes.batches import Batch
from postroom.office.turns.outcomes import Rules, failed
from postroom.office.turns.turn import TurnResult
from postroom.providers.protocol import ErrorKind, Failed

NOW = 1_800_000_000 * SECOND
HOUR = 3600 * SECOND


def mail(**fields: Any) -> Message:
    plain: dict[str, Any] = dict.fromkeys(Message.__struct_fields__)
    own = {"id": "m1", "claim_token": "t1", "attempts": 1, "hop": 0, "channel": "web", "sender": "Ann"}
    return Message(
        **{**plain, "metadata": {}, "labels": {}, "files": [], "body": {"text": "hi"}, **own, **fields}
    )


def after(problem: Failed, **fields: Any) -> list[c.Command]:
    turn = TurnResult(turn_id="t", verdict=problem, started_at=NOW, ended_at=NOW)
    return failed(Batch(mail(**fields)), "coder", turn, problem, Rules(), NOW)


def limited(retry_at: int | None, message: str = "The limit is reached.") -> Failed:
    return Failed(kind=ErrorKind.RATE_LIMIT, message=message, retry_at=retry_at)


def snoozed(commands: list[c.Command]) -> float:
    [until] = [command.until for command in commands if isinstance(command, c.Snooze)]
    assert until is not None
    return (until - NOW) / SECOND


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
        (NOW + 400 * 24 * HOUR, 24 * 3600.0),
    ],
)
def test_a_rate_limit_is_waited_for_neither_in_no_time_nor_for_ever(
    retry_at: int | None, seconds: float
) -> None:
    """Programs name moments that are past, or that belong to something else."""
    assert snoozed(after(limited(retry_at))) == seconds


def test_a_person_is_told_of_a_long_wait_once() -> None:
    later = f"Claude Code has reached its rate limit until {iso(NOW + 5 * HOUR)}."
    [text] = told(after(limited(NOW + 5 * HOUR, later)))
    assert later in text
    assert "nothing is lost" in text
    assert told(after(limited(NOW + 5 * HOUR, later), failure_reason=later)) == []


def test_nobody_is_bothered_with_a_short_wait() -> None:
    assert told(after(limited(NOW + 30 * SECOND))) == []
