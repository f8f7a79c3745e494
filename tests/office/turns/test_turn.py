"""One turn: every event told, one verdict kept, and its cost reckoned beside the event loop."""

import threading
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from postroom.kernel.limits import Limits
from postroom.office.turns import turn as turns
from postroom.office.turns.turn import TurnResult, take_turn
from postroom.providers.costs import Cost
from postroom.providers.protocol import (
    ErrorKind,
    Failed,
    Finished,
    SessionStarted,
    SessionTotal,
    TextChunk,
    TurnEvent,
    TurnStream,
    Usage,
)


async def stream(*events: TurnEvent) -> TurnStream:
    for event in events:
        yield event


async def taken(*events: TurnEvent) -> tuple[TurnResult, list[TurnEvent]]:
    told: list[TurnEvent] = []

    async def tell(event: TurnEvent) -> None:
        told.append(event)

    return await take_turn("t1", stream(*events), lambda: 7, tell), told


async def test_every_event_is_told_and_what_matters_is_kept() -> None:
    events = (
        SessionStarted(session_id="s1", provider="one"),
        SessionStarted(session_id="s2", provider="two"),
        TextChunk(text="Do"),
        Usage(provider="two", model="m", cost_usd=0.5, session_total=SessionTotal(input_tokens=9)),
        Finished(text="Done."),
    )
    turn, told = await taken(*events)
    assert told == list(events)
    assert (turn.sessions, turn.provider) == ({"one": "s1", "two": "s2"}, "two")
    assert turn.totals == {"two": SessionTotal(input_tokens=9)}
    assert (turn.cost_usd, turn.verdict) == (Decimal("0.5"), Finished(text="Done."))


async def test_a_turn_of_very_many_steps_can_be_kept() -> None:
    """Some providers tell what each step has used. A record has a limit, and a turn that cannot be kept would
    be taken, and paid for, again."""
    steps = [
        Usage(provider="one", model=f"m{n % 2}", vendor="v", input_tokens=3, output_tokens=n, cost_usd=0.5)
        for n in range(3000)
    ]
    steps.append(Usage(provider="one", model="m0", vendor="v", cache_read_tokens=7))
    turn, _ = await taken(SessionStarted(session_id="s", provider="one"), *steps, Finished(text="Done."))
    record = turn.record("coder")
    assert len(msgspec.json.encode(record)) < Limits().record_bytes
    kept = [(u["model"], u["input_tokens"], u["cache_read_tokens"], u["cost_usd"]) for u in record["usage"]]
    assert kept == [("m0", 4500, 0, 750.0), ("m1", 4500, 0, 750.0), ("m0", 0, 7, None)]
    assert sum(u["output_tokens"] for u in record["usage"]) == sum(range(3000))


async def test_a_stream_without_a_verdict_has_crashed() -> None:
    turn, _ = await taken(TextChunk(text="Do"))
    assert isinstance(turn.verdict, Failed)
    assert turn.verdict.kind is ErrorKind.CRASHED


async def test_words_that_cannot_be_written_are_made_writable() -> None:
    turn, _ = await taken(Finished(text="half \ud83d a pair"))
    assert isinstance(turn.verdict, Finished)
    assert turn.verdict.text == "half ? a pair"


@pytest.mark.parametrize(("reported", "beside"), [(0.1, False), (None, True)])
async def test_a_price_that_must_be_looked_up_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch, reported: float | None, beside: bool
) -> None:
    """The list of prices takes a while to load."""
    threads: list[threading.Thread] = []

    def reckon(*_: Any) -> Cost:
        threads.append(threading.current_thread())
        return Cost(Decimal("0.1"), "a list")

    monkeypatch.setattr(turns, "turn_cost", reckon)
    turn, _ = await taken(Usage(provider="p", model="m", cost_usd=reported), Finished(text="ok"))
    assert turn.cost_usd == Decimal("0.1")
    assert (threads[0] is not threading.main_thread()) is beside


async def test_a_turn_that_failed_at_once_is_kept_with_its_provider() -> None:
    failed = Failed(kind=ErrorKind.AUTH, message="Not logged in.", provider="one")
    turn, _ = await taken(failed)
    assert (turn.provider, turn.record("coder")["provider"]) == ("one", "one")


async def test_the_record_says_whether_the_answer_was_cut() -> None:
    cut, _ = await taken(Finished(text="half", stop_reason="max_tokens"))
    whole, _ = await taken(Finished(text="whole"))
    assert (cut.record("coder")["cut"], whole.record("coder")["cut"]) == (True, False)
