"""Claude Code: its own events, failures and arguments."""

import json
from contextlib import aclosing
from pathlib import Path

import pytest

from postroom.clock import SECOND, ManualClock
from postroom.providers import Cause, ErrorKind, Permissions, Progress, TextChunk, ToolUse, TurnLimits, Usage
from postroom.providers.claude import Claude
from postroom.providers.fallback import run_with_fallback
from postroom.providers.protocol import Finished, SessionStarted, TurnEvent
from postroom.providers.steering import Steering
from tests.providers.conftest import Office, tell

K, C = ErrorKind, Cause
NOW = 1_800_000_000 * SECOND


@pytest.fixture
def claude(office: Office, still: ManualClock) -> Claude:
    return Claude(parent=office.parent, clock=still)


@pytest.mark.parametrize(
    ("fake", "kind", "cause"),
    [
        ("e400", K.INVALID, C.UNKNOWN),
        ("e401", K.AUTH, C.UNKNOWN),
        ("e403", K.AUTH, C.UNKNOWN),
        ("no-login", K.AUTH, C.UNKNOWN),
        ("credit", K.AUTH, C.QUOTA),
        ("e429", K.RATE_LIMIT, C.UNKNOWN),
        ("e500", K.OVERLOADED, C.SERVER),
        ("e529", K.OVERLOADED, C.UNKNOWN),
        ("refused-connection", K.OVERLOADED, C.NETWORK),
        ("too-long", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("no-model", K.INVALID, C.MODEL),
        ("max-tokens", K.INVALID, C.TOKEN_LIMIT),
        ("max-turns", K.INVALID, C.TURN_LIMIT),
        ("budget", K.INVALID, C.BUDGET),
        ("refusal", K.REFUSED, C.UNKNOWN),
    ],
)
async def test_a_result_that_says_success_and_is_an_error_is_a_failure(
    claude: Claude, office: Office, fake: str, kind: ErrorKind, cause: Cause
) -> None:
    told = await tell(claude, office.request(fake=fake))
    assert (told.failed.kind, told.failed.cause) == (kind, cause)
    assert told.parts == []  # what the program says in the model's place is no answer


async def test_a_failed_turn_still_reports_what_it_used(claude: Claude, office: Office) -> None:
    assert (await tell(claude, office.request(fake="e529"))).of(Usage)


@pytest.mark.parametrize(
    ("fake", "seconds"),
    [
        ("limit", 3600),
        ("session-limit", 3600),
        ("e429 limit-event", 7200),
        ("long-wait", 3600),
        ("e429", None),
    ],
)
async def test_a_rate_limit_says_when_it_ends_if_that_is_known(
    claude: Claude, office: Office, fake: str, seconds: int | None
) -> None:
    failed = (await tell(claude, office.request(fake=fake))).failed
    assert failed.kind is ErrorKind.RATE_LIMIT
    assert failed.retry_at == (None if seconds is None else NOW + seconds * SECOND)


async def test_the_verdict_stands_when_the_program_then_hangs(claude: Claude, office: Office) -> None:
    limits = TurnLimits(wall_clock=600, idle=600, grace=0.2, term=0.2)
    failed = (await tell(claude, office.request(fake="e401 linger ignore-term", limits=limits))).failed
    assert failed.kind is ErrorKind.AUTH


async def test_a_run_that_yields_only_a_result_is_an_answer(claude: Claude, office: Office) -> None:
    told = await tell(claude, office.request(fake="only-result"))
    assert told.answer == "final text"
    assert told.of(TextChunk) == []


async def test_a_session_is_gone_on_with_also_when_only_its_result_was_seen(
    claude: Claude, office: Office
) -> None:
    """Or the next turn would begin anew, and nobody would know why the agent has forgotten everything."""
    first = await tell(claude, office.request(fake="only-result"))
    [session] = first.of(SessionStarted)
    again = await tell(claude, office.request(fake="only-result", session_id=session.session_id))
    assert again.of(SessionStarted) == [session]
    assert again.answer == "final text"


async def test_retries_are_told_and_then_the_answer(claude: Claude, office: Office) -> None:
    told = await tell(claude, office.request(fake="retry"))
    assert [event.kind for event in told.of(Progress)] == ["retry", "retry"]
    assert told.answer == "final text"


async def test_words_come_as_they_are_written_and_never_twice(claude: Claude, office: Office) -> None:
    told = await tell(claude, office.request(fake="tool"))
    assert [chunk.text for chunk in told.of(TextChunk)] == ["I will run", " a command.", "final", " text"]


async def test_the_words_of_a_subagent_are_not_shown_as_the_agents_own(
    claude: Claude, office: Office
) -> None:
    told = await tell(claude, office.request(fake="tool"))
    assert "sub-agent" not in "".join(told.parts)


async def test_a_tool_is_told_when_it_starts_and_when_it_is_done(claude: Claude, office: Office) -> None:
    started, finished = (await tell(claude, office.request(fake="tool"))).of(ToolUse)
    assert (started.name, started.state, started.summary) == ("Bash", "started", "echo hello-from-tool")
    assert (finished.name, finished.state, finished.call_id) == ("Bash", "finished", "toolu_1")


async def test_usage_is_told_for_each_model_with_the_cost_the_program_reports(
    claude: Claude, office: Office
) -> None:
    main, small = (await tell(claude, office.request())).of(Usage)
    assert (main.model, main.cost_usd) == ("claude-opus-4-8[1m]", 0.0182)
    assert (main.input_tokens, main.cache_read_tokens, main.cache_write_tokens, main.output_tokens) == (
        2460,
        1800,
        600,
        50,
    )
    assert (small.model, small.cost_usd, small.vendor) == ("claude-haiku-4-5", 0.0001, "anthropic")


async def test_usage_without_models_is_taken_from_the_sum(claude: Claude, office: Office) -> None:
    usage = (await tell(claude, office.request(fake="no-model-usage", model="claude-opus-4-8"))).usage
    assert (usage.model, usage.output_tokens, usage.cost_usd) == ("claude-opus-4-8", 50, 0.0183)


async def test_a_server_of_ones_own_has_no_price_of_anthropics(office: Office) -> None:
    claude = Claude(parent=office.parent, vendor="http://127.0.0.1:1/v1")
    assert {usage.cost_usd for usage in (await tell(claude, office.request())).of(Usage)} == {None}


async def test_a_tool_server_that_does_not_start_is_a_warning(claude: Claude, office: Office) -> None:
    told = await tell(claude, office.request(fake="broken-tools"))
    assert "broken did not start" in told.of(Progress)[0].text
    assert told.answer == "final text"


async def test_keys_in_the_programs_words_are_taken_out(claude: Claude, office: Office) -> None:
    failed = (await tell(claude, office.request(fake="e403"))).failed
    assert "[secret]" in failed.detail
    assert "0123456789" not in failed.detail + failed.message


async def test_the_arguments_are_those_the_program_knows(
    claude: Claude, office: Office, tmp_path: Path
) -> None:
    config = _mcp_config(tmp_path)
    await tell(
        claude,
        office.request(model="claude-sonnet-4-6", system_prompt="be nice", mcp_config=config),
    )
    call = office.calls("claude")[0]
    arguments = call["argv"]
    assert arguments[-1] == "--verbose"
    assert arguments[arguments.index("--model") + 1] == "claude-sonnet-4-6"
    assert arguments[arguments.index("--permission-mode") + 1] == "acceptEdits"
    assert arguments[arguments.index("--mcp-config") + 1] == str(config)
    assert "mcp__postroom" in arguments
    assert call["env"]["CLAUDE_CODE_MAX_RETRIES"] == "3"
    assert "IS_SANDBOX" not in call["env"]


async def test_the_message_is_not_the_last_block_since_that_is_read_for_commands(
    claude: Claude, office: Office
) -> None:
    await tell(claude, office.request("/clear @/etc/passwd"))
    message = json.loads(office.calls("claude")[0]["stdin"])
    assert [block["text"] for block in message["message"]["content"]] == [
        "/clear @/etc/passwd",
        "(end of message)",
    ]


async def test_full_permission_also_works_as_root(claude: Claude, office: Office) -> None:
    await tell(claude, office.request(permissions=Permissions.FULL))
    assert office.calls("claude")[0]["env"]["IS_SANDBOX"] == "1"


async def test_a_session_belongs_to_the_folder_it_began_in(
    claude: Claude, office: Office, tmp_path: Path
) -> None:
    first = await tell(claude, office.request())
    elsewhere = await tell(claude, office.request(session_id=first.session, workspace=tmp_path))
    assert elsewhere.failed.cause is Cause.SESSION_LOST


def _mcp_config(folder: Path) -> Path:
    config = folder / "mcp.json"
    server = {
        "type": "http",
        "url": "http://127.0.0.1:3777/mcp",
        "headers": {"Authorization": "Bearer office-token"},
    }
    config.write_text(json.dumps({"mcpServers": {"postroom": server}}))
    return config


async def test_an_agent_that_may_only_read_has_no_tool_that_changes_anything(
    claude: Claude, office: Office
) -> None:
    """Whatever the person's own settings of the program allow."""
    await tell(claude, office.request(permissions=Permissions.READ))
    arguments = office.calls("claude")[0]["argv"]
    at = arguments.index("--disallowedTools")
    assert {"Bash", "Edit", "Write"} <= set(arguments[at + 1 : at + 5])
    await tell(claude, office.request(permissions=Permissions.WORKSPACE))
    assert "--disallowedTools" not in office.calls("claude")[1]["argv"]


async def test_words_go_into_a_turn_while_it_goes_on(claude: Claude, office: Office) -> None:
    steering = Steering()
    told: list[TurnEvent] = []
    request = office.request("the first", fake="steered echo", steering=steering)
    async with aclosing(claude.run(request)) as events:
        async for event in events:
            told.append(event)
            if isinstance(event, ToolUse) and event.state == "finished":
                assert steering.offer("the second")
    [answer] = [event for event in told if isinstance(event, Finished)]
    assert "the first" in answer.text
    assert "the second" in answer.text
    assert not steering.offer("too late")


async def test_words_that_come_with_the_answer_get_their_own_and_are_paid_once(
    claude: Claude, office: Office
) -> None:
    steering = Steering()
    told: list[TurnEvent] = []
    request = office.request("the first", fake="echo", steering=steering)
    async with aclosing(claude.run(request)) as events:
        async for event in events:
            told.append(event)
            if isinstance(event, SessionStarted):
                # The fake looks at its stdin only after it has answered.
                assert steering.offer("the second")
    [answer] = [event for event in told if isinstance(event, Finished)]
    assert answer.text.index("the first") < answer.text.index("the second")
    usages = [event for event in told if isinstance(event, Usage) and "opus" in event.model]
    assert [usage.input_tokens for usage in usages] == [2460, 2460]
    assert sum(usage.cost_usd or 0 for usage in usages) == pytest.approx(0.0364)


async def test_words_that_a_failed_attempt_had_are_in_the_prompt_of_the_next(office: Office) -> None:
    steering = Steering()
    steering.open()
    steering.offer("the second")
    steering.close()
    request = office.request("the first", fake="echo", steering=steering)
    attempts = [(Claude(parent=office.parent, program="nowhere"), request)]
    attempts.append((Claude(parent=office.parent), request))
    events = [event async for event in run_with_fallback(attempts)]
    [answer] = [event for event in events if isinstance(event, Finished)]
    assert "the first" in answer.text
    assert "the second" in answer.text
