"""The offline provider does as its script says, the same every time."""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postroom.clock import SECOND, ManualClock
from postroom.providers import (
    Cause,
    ErrorKind,
    Script,
    ScriptProvider,
    ScriptRule,
    SessionStarted,
    TextChunk,
    ToolUse,
    TurnLimits,
    TurnRequest,
    read_script,
)
from postroom.providers.script_rules import pieces
from tests.providers.conftest import tell


def ask(prompt: str = "hello", **fields: Any) -> TurnRequest:
    return TurnRequest(agent_id=fields.pop("agent_id", "coder"), prompt=prompt, workspace=Path("/"), **fields)


def scripted(*rules: ScriptRule, pace: float = 0.0, clock: ManualClock | None = None) -> ScriptProvider:
    return ScriptProvider(Script(rules=rules, pace=pace), clock=clock)


async def test_without_a_script_it_says_who_it_is_and_what_it_read() -> None:
    told = await tell(ScriptProvider(), ask("What is\nthe plan?"))
    assert "@coder" in told.answer
    assert "“What is the plan?”" in told.answer
    assert told.parts == [told.answer]


async def test_the_same_messages_give_the_same_answers() -> None:
    script = read_script('{"rules": [{"match": "x", "reply": "$agent $session $turn"}], "pace": 0}')
    runs = []
    for _ in range(2):
        provider = ScriptProvider(script)
        runs.append([(await tell(provider, ask(text))).events for text in ("x", "y", "x")])
    assert runs[0] == runs[1]


async def test_the_first_rule_that_matches_decides() -> None:
    provider = scripted(ScriptRule(match="deploy", reply="one"), ScriptRule(match=".*", reply="two"))
    assert (await tell(provider, ask("please DEPLOY it"))).answer == "one"
    assert (await tell(provider, ask("something else"))).answer == "two"


async def test_a_rule_can_be_for_one_agent() -> None:
    provider = scripted(ScriptRule(agent="writer", reply="I write"), ScriptRule(reply="I do not"))
    assert (await tell(provider, ask(agent_id="writer"))).answer == "I write"
    assert (await tell(provider, ask(agent_id="coder"))).answer == "I do not"


async def test_a_reply_uses_the_groups_of_the_match_and_hands_work_on() -> None:
    rule = ScriptRule(
        match=r"ask (?P<mate>\w+) to (?P<task>.+)", reply="Right.", hand_off={"$mate": "$task, says $agent"}
    )
    told = await tell(scripted(rule), ask("ask writer to rhyme"))
    assert told.answer == "Right.\n[@writer: rhyme, says coder]"


async def test_dollars_in_a_message_are_only_dollars() -> None:
    assert (await tell(scripted(ScriptRule(reply="$prompt $5 $nothing")), ask("cost: $agent"))).answer == (
        "cost: $agent $5 $nothing"
    )


async def test_an_answer_can_come_in_pieces() -> None:
    told = await tell(scripted(ScriptRule(reply="abcdefg", chunks=3)), ask())
    assert [chunk.text for chunk in told.of(TextChunk)] == ["ab", "cd", "efg"]
    assert told.answer == "abcdefg"
    assert pieces("ab", 5) == ["a", "b"]
    assert pieces("", 3) == [""]


async def test_it_can_fail_a_number_of_times_and_then_work(still: ManualClock) -> None:
    rule = ScriptRule(match="flaky", fail=ErrorKind.RATE_LIMIT, times=2, retry_after=60, reply="at last")
    provider = scripted(rule, clock=still)
    for _ in range(2):
        failed = (await tell(provider, ask("flaky"))).failed
        assert (failed.kind, failed.retry_at) == (ErrorKind.RATE_LIMIT, still.now() + 60 * SECOND)
    assert (await tell(provider, ask("flaky"))).answer == "at last"


@pytest.mark.parametrize("kind", list(ErrorKind))
async def test_it_can_fail_in_every_way(kind: ErrorKind) -> None:
    provider = scripted(ScriptRule(fail=kind))
    for _ in range(3):
        assert (await tell(provider, ask())).failed.kind is kind


async def test_time_is_scaled() -> None:
    rule = ScriptRule(seconds=100, chunks=5, reply="done now")
    started = time.monotonic()
    assert (await tell(scripted(rule, pace=0.001), ask())).answer == "done now"
    assert 0.1 <= time.monotonic() - started < 60


@pytest.mark.parametrize(
    ("limits", "cause"),
    [
        (TurnLimits(wall_clock=600, idle=0.05), Cause.IDLE),
        (TurnLimits(wall_clock=0.05, idle=600), Cause.WALL_CLOCK),
    ],
)
@pytest.mark.parametrize("rule", [ScriptRule(hang=True), ScriptRule(seconds=1000)])
async def test_limits_hold_for_it_too(rule: ScriptRule, limits: TurnLimits, cause: Cause) -> None:
    failed = (await tell(scripted(rule, pace=1), ask(limits=limits))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.TIMED_OUT, cause)


async def test_a_turn_that_hangs_can_be_cancelled() -> None:
    async with aclosing(scripted(ScriptRule(hang=True)).run(ask())) as events:
        assert isinstance(await anext(events), SessionStarted)
        turn = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn


async def test_a_session_counts_its_turns() -> None:
    provider = scripted(ScriptRule(reply="turn $turn"))
    first = await tell(provider, ask())
    assert first.answer == "turn 1"
    assert (await tell(provider, ask(session_id=first.session))).answer == "turn 2"
    assert (await tell(provider, ask())).answer == "turn 1"


async def test_tools_are_told() -> None:
    told = await tell(scripted(ScriptRule(tools=("Bash", "Read"))), ask())
    assert [tool.name for tool in told.of(ToolUse)] == ["Bash", "Bash", "Read", "Read"]


async def test_it_costs_nothing_and_says_so() -> None:
    assert (await tell(ScriptProvider(), ask())).usage.cost_usd == 0.0


def test_a_script_with_a_word_that_does_not_exist_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="replay"):
        read_script('{"rules": [{"replay": "x"}]}')
    with pytest.raises(msgspec.ValidationError):
        read_script('{"rules": [{"fail": "sometimes"}]}')
