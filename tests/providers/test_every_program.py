"""What must hold with each of the three programs, however it misbehaves."""

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from postroom.providers import (
    Cause,
    ErrorKind,
    Finished,
    Permissions,
    Progress,
    Provider,
    SessionStarted,
    TextChunk,
    ToolDenied,
    ToolUse,
    TurnLimits,
)
from postroom.providers.claude import Claude
from postroom.providers.codex import Codex
from postroom.providers.opencode import OpenCode
from tests.providers.conftest import Office, is_alive, tell, until

PROGRAMS: dict[str, Callable[..., Provider]] = {"claude": Claude, "codex": Codex, "opencode": OpenCode}
SECRETS = {
    "ANTHROPIC_API_KEY": "anthropic-secret",
    "OPENAI_API_KEY": "openai-secret",
    "VENDOR_API_KEY": "vendor-secret",
    "POSTROOM_TOKEN": "office-secret",
    "TELEGRAM_BOT_TOKEN": "telegram-secret",
    "AWS_SECRET_ACCESS_KEY": "aws-secret",
}
OWN_SECRET = {"claude": "anthropic-secret", "codex": "openai-secret", "opencode": "vendor-secret"}


@pytest.fixture(params=list(PROGRAMS))
def program(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def provider(program: str, office: Office) -> Provider:
    return PROGRAMS[program](parent=office.parent)


async def test_an_answer_is_told_once_and_whole(provider: Provider, office: Office) -> None:
    told = await tell(provider, office.request())
    assert told.answer == "final text"
    assert told.parts == ["final text"]
    assert told.session


async def test_tools_and_remarks_before_the_answer_are_events_not_the_answer(
    provider: Provider, office: Office
) -> None:
    told = await tell(provider, office.request(fake="tool"))
    assert told.answer == "final text"
    assert told.parts == ["I will run a command.", "final text"]
    assert told.of(ToolUse)


async def test_a_session_is_resumed_by_its_id(provider: Provider, program: str, office: Office) -> None:
    first = await tell(provider, office.request())
    second = await tell(provider, office.request(session_id=first.session))
    assert second.session == first.session
    arguments = office.calls(program)[1]["argv"]
    assert first.session in arguments
    assert not {"-c", "--continue", "--last"} & set(arguments)


async def test_without_an_id_the_session_is_new_even_where_there_is_an_older_one(
    provider: Provider, program: str, office: Office
) -> None:
    first, second = [await tell(provider, office.request()) for _ in range(2)]
    assert first.session != second.session
    assert not {"-c", "--continue", "--last", "resume", "--resume"} & set(office.calls(program)[1]["argv"])


async def test_a_session_that_is_gone_is_said_to_be_lost(
    provider: Provider, program: str, office: Office
) -> None:
    unknown = "ses_nowhere" if program == "opencode" else "99999999-9999-4999-8999-999999999999"
    failed = (await tell(provider, office.request(session_id=unknown))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.SESSION_LOST)
    assert unknown in failed.message


async def test_an_id_of_another_program_never_reaches_this_one(
    provider: Provider, program: str, office: Office
) -> None:
    foreign = "the nice session" if program == "opencode" else "ses_0001abc"
    failed = (await tell(provider, office.request(session_id=foreign))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.SESSION_LOST)
    assert office.calls(program) == []


@pytest.mark.parametrize("prompt", ["- item one", "--help", "/clear", "@/etc/passwd ü", "x" * 300_000])
async def test_the_prompt_travels_on_stdin_and_never_in_the_arguments(
    provider: Provider, program: str, office: Office, prompt: str
) -> None:
    told = await tell(provider, office.request(prompt, system_prompt="private instructions"))
    assert told.answer == "final text"
    call = office.calls(program)[0]
    assert not any(prompt in argument or "private" in argument for argument in call["argv"])
    if program == "claude":
        first = json.loads(call["stdin"])["message"]["content"][0]
        assert first == {"type": "text", "text": prompt}
    else:
        assert call["stdin"] == prompt


async def test_a_system_prompt_of_any_size_gets_through(provider: Provider, office: Office) -> None:
    assert (await tell(provider, office.request(system_prompt="s" * 400_000))).answer == "final text"


async def test_a_program_sees_its_own_key_and_no_other_secret(program: str, office: Office) -> None:
    provider = PROGRAMS[program](parent={**office.parent, **SECRETS})
    await tell(provider, office.request(model="vendor/some-model"))
    environment = office.calls(program)[0]["env"]
    assert [value for value in environment.values() if value.endswith("-secret")] == [OWN_SECRET[program]]
    assert environment["POSTROOM_AGENT_ID"] == environment["TINYAGI_AGENT_ID"] == "coder"
    assert environment["POSTROOM_TURN_ID"]


async def test_a_program_runs_in_the_workspace(provider: Provider, program: str, office: Office) -> None:
    await tell(provider, office.request())
    assert office.calls(program)[0]["cwd"] == str(office.workspace)


async def test_what_was_denied_is_told(provider: Provider, office: Office) -> None:
    """Each program says it in its own way; one that is not allowed a tool at all finds it missing."""
    fake = "unavailable" if isinstance(provider, OpenCode) else "denied"
    told = await tell(provider, office.request(fake=fake))
    [denied] = told.of(ToolDenied)
    assert denied.name in ("Bash", "shell", "bash")
    assert ("http://127.0.0.1:9/" in denied.summary) == isinstance(provider, Claude)
    assert told.answer == "final text", "the turn goes on"


@pytest.mark.parametrize("permissions", list(Permissions))
async def test_every_level_of_permission_is_understood(
    provider: Provider, office: Office, permissions: Permissions
) -> None:
    assert (await tell(provider, office.request(permissions=permissions))).answer == "final text"


async def test_barriers_stay_up_unless_they_are_lifted(
    provider: Provider, program: str, office: Office
) -> None:
    await tell(provider, office.request())
    await tell(provider, office.request(permissions=Permissions.FULL))
    lifted = {
        "claude": "--dangerously-skip-permissions",
        "codex": "--dangerously-bypass-approvals-and-sandbox",
        "opencode": "--auto",
    }[program]
    assert [lifted in call["argv"] for call in office.calls(program)] == [False, True]


async def test_a_missing_program_is_told_with_how_to_install_it(program: str, office: Office) -> None:
    provider = PROGRAMS[program](parent={**office.parent, "PATH": "/nowhere"})
    failed = (await tell(provider, office.request())).failed
    assert failed.kind is ErrorKind.NOT_INSTALLED
    assert "npm install -g" in failed.message


@pytest.mark.parametrize(
    ("fields"), [{"prompt": " \n"}, {"workspace": Path("/no/such/folder")}, {"mcp_config": Path("/dev/null")}]
)
async def test_a_turn_that_makes_no_sense_is_not_started(
    provider: Provider, program: str, office: Office, fields: dict[str, object]
) -> None:
    failed = (await tell(provider, office.request(**fields))).failed  # type: ignore[arg-type]
    assert failed.kind is ErrorKind.INVALID
    assert office.calls(program) == []


@pytest.mark.parametrize(("fake", "ended"), [("crash", "exit code 101"), ("killed", "signal 9")])
async def test_a_crash_is_a_failure_with_what_was_said_last(
    provider: Provider, office: Office, fake: str, ended: str
) -> None:
    failed = (await tell(provider, office.request(fake=fake))).failed
    assert failed.kind is ErrorKind.CRASHED
    assert ended in failed.message
    assert ("panicked" in failed.detail) == (fake == "crash")


async def test_noise_between_the_events_is_passed_over(provider: Provider, office: Office) -> None:
    assert (await tell(provider, office.request(fake="garbage noisy"))).answer == "final text"


async def test_a_partial_last_line_is_a_crash_not_an_answer(provider: Provider, office: Office) -> None:
    assert (await tell(provider, office.request(fake="partial"))).failed.kind is ErrorKind.CRASHED


async def test_line_separators_and_emoji_arrive_unchanged(provider: Provider, office: Office) -> None:
    told = await tell(provider, office.request(fake="separator"))
    assert told.answer == told.parts[0] == "line one\u2028line two — ünïcödé 🙂"


async def test_a_long_answer_arrives_whole(provider: Provider, office: Office) -> None:
    assert (await tell(provider, office.request(fake="long"))).answer == "x" * 100_000


async def test_an_empty_answer_is_an_answer(provider: Provider, office: Office) -> None:
    assert (await tell(provider, office.request(fake="empty"))).answer == ""


async def test_a_huge_line_is_skipped_and_the_turn_goes_on(provider: Provider, office: Office) -> None:
    limits = TurnLimits(wall_clock=200, idle=100, grace=60, term=0.2, line_bytes=1_000_000)
    told = await tell(provider, office.request(fake="huge", limits=limits))
    assert told.answer == "final text"
    assert "too long" in told.of(Progress)[-1].text


async def test_an_answer_in_a_line_that_is_too_long_is_not_asked_for_again_and_again(
    provider: Provider, office: Office
) -> None:
    """The program has done its work and ended well; what it did would only be paid for once more."""
    limits = TurnLimits(wall_clock=200, idle=100, grace=60, term=0.2, line_bytes=20)
    failed = (await tell(provider, office.request(limits=limits))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.OUTPUT_LIMIT)
    assert not failed.kind.may_pass


async def test_a_flood_of_output_is_stopped(provider: Provider, office: Office) -> None:
    limits = TurnLimits(wall_clock=200, idle=100, term=0.2, output_bytes=1_000_000)
    failed = (await tell(provider, office.request(fake="flood", limits=limits))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.OUTPUT_LIMIT)


@pytest.mark.parametrize("fake", ["silent", "hang", "silent ignore-term"])
async def test_a_program_that_hangs_is_stopped_after_the_idle_limit(
    provider: Provider, office: Office, fake: str
) -> None:
    limits = TurnLimits(wall_clock=600, idle=0.4, grace=0.2, term=0.1)
    failed = (await tell(provider, office.request(fake=fake, limits=limits))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.TIMED_OUT, Cause.IDLE)
    assert "0.4 s" in failed.message


async def test_a_turn_ends_at_the_wall_clock_limit_however_busy_it_is(
    provider: Provider, office: Office
) -> None:
    limits = TurnLimits(wall_clock=0.4, idle=600, grace=0.2, term=0.1)
    failed = (await tell(provider, office.request(fake="tool slowly", limits=limits))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.TIMED_OUT, Cause.WALL_CLOCK)


@pytest.mark.parametrize("fake", ["linger", "linger ignore-term", "close-and-linger"])
async def test_an_answer_counts_even_if_the_program_does_not_exit_after_it(
    provider: Provider, office: Office, fake: str
) -> None:
    limits = TurnLimits(wall_clock=600, idle=600, grace=0.2, term=0.2)
    async with asyncio.timeout(200):
        told = await tell(provider, office.request(fake=fake, limits=limits))
    assert told.answer == "final text"


@pytest.mark.parametrize("kind", ["child", "setsid", "stubborn"])
async def test_nothing_is_left_running_after_an_answer(provider: Provider, office: Office, kind: str) -> None:
    told = await tell(provider, office.request(fake=f"leave-{kind}"))
    assert told.answer == "final text"
    assert office.left()
    assert office.living() == []
    assert told.of(Progress)[-1].kind == "leftovers"


@pytest.mark.parametrize("kind", ["child", "setsid", "stubborn"])
async def test_closing_the_stream_ends_the_whole_tree(provider: Provider, office: Office, kind: str) -> None:
    request = office.request(fake=f"leave-{kind} hang ignore-term", turn_id=str(office.state))
    stream = provider.run(request)
    assert isinstance(await anext(stream), SessionStarted)
    assert office.living()
    await stream.aclose()
    assert office.living() == []
    assert _marked(str(office.state)) == []


async def test_cancelling_the_task_ends_the_whole_tree(provider: Provider, office: Office) -> None:
    request = office.request(fake="leave-stubborn hang", turn_id=str(office.state))
    turn = asyncio.create_task(tell(provider, request))
    await until(lambda: bool(office.living()))
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert office.living() == []
    assert _marked(str(office.state)) == []


async def test_a_consumer_that_breaks_off_ends_the_whole_tree(provider: Provider, office: Office) -> None:
    request = office.request(fake="leave-setsid hang")
    async with aclosing(provider.run(request)) as events:
        async for _ in events:
            break
    assert office.left()
    assert office.living() == []


async def test_turns_of_different_agents_run_side_by_side(provider: Provider, office: Office) -> None:
    requests = [office.request(fake="slowly", agent_id=f"agent-{number}") for number in range(4)]
    told = await asyncio.gather(*(tell(provider, request) for request in requests))
    assert [turn.answer for turn in told] == ["final text"] * 4
    assert len({turn.session for turn in told}) == 4


async def test_no_private_file_of_a_turn_stays_behind(provider: Provider, office: Office) -> None:
    for fake in ("", "crash"):
        await tell(provider, office.request(fake=fake, system_prompt="private"))
    kept = [name for _, _, names in os.walk(office.parent["HOME"]) for name in names]
    assert kept == []


async def test_the_first_text_comes_before_the_last_event(provider: Provider, office: Office) -> None:
    kinds = [type(event) for event in (await tell(provider, office.request())).events]
    assert kinds.index(SessionStarted) < kinds.index(TextChunk) < kinds.index(Finished)


def _marked(turn_id: str) -> list[int]:
    """Living processes that carry the mark of this turn."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            marked = f"POSTROOM_TURN_ID={turn_id}".encode() in Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if marked and is_alive(int(name)):
            found.append(int(name))
    return found
