"""Where the ledger's time was set back. Between two such places times only rise, so a moment can be found by
halving; across them nothing may be concluded from times alone."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from postroom.kernel.facts import MEMO, ROOM, Fact, FactKey

NAME = "time_steps"
KEY: FactKey = (ROOM, MEMO, NAME)


class TimeStep(msgspec.Struct, frozen=True):
    """From the event with this number on, times begin anew at `to`."""

    seq: int
    to: int


decode_steps = msgspec.json.Decoder(list[TimeStep]).decode


def read_steps(fact: Fact | None) -> list[TimeStep]:
    return [] if fact is None else decode_steps(fact.data)


def rising_parts(low: int, high: int, steps: Sequence[TimeStep]) -> list[tuple[int, int]]:
    """The numbers from `low` to before `high`, cut where time was set back."""
    return list(pairwise([low, *(step.seq for step in steps if low < step.seq < high), high]))


def first_at(moment: int, low: int, high: int, time_of: Callable[[int], int | None]) -> int:
    """Of numbers from `low` to before `high`, whose times only rise, the first at or after a moment. It is
    found by halving: an index by time would slow down whoever writes."""
    while low < high:
        middle = (low + high) // 2
        time = time_of(middle)
        if time is not None and time < moment:
            low = middle + 1
        else:
            high = middle
    return low
