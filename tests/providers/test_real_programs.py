"""The adapters against the real programs, which talk to a model server on loopback. Opt-in, never online:

    npm install --prefix /tmp/clis @anthropic-ai/claude-code @openai/codex opencode-ai
    POSTROOM_REAL_PROGRAMS=/tmp/clis/node_modules/.bin unshare -n sh -c 'ip link set lo up; exec pytest …'

They show when a new version of a program no longer does what the fakes do.
"""

import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from postroom.providers import (
    Cause,
    ErrorKind,
    Finished,
    Permissions,
    Provider,
    ToolDenied,
    ToolUse,
    TurnLimits,
    TurnRequest,
)
from postroom.providers.claude import Claude
from postroom.providers.codex import Codex, CodexServer
from postroom.providers.opencode import OpenCode
from postroom.providers.steering import Steering
from tests.providers.conftest import tell
from tests.providers.model_server import ModelServer, model_server

FOLDER = os.environ.get("POSTROOM_REAL_PROGRAMS", "")
REPLY = "Hello from the fake — model."


def _online() -> bool:
    with open("/proc/net/route") as routes:
        return len(routes.readlines()) > 1


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER, reason="POSTROOM_REAL_PROGRAMS is not set"),
    pytest.mark.skipif(bool(FOLDER) and _online(), reason="only without a network (unshare -n)"),
]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with model_server() as served:
        yield served


@pytest.fixture(params=["claude", "codex", "opencode"])
def program(request: pytest.FixtureRequest) -> str:
    if not shutil.which(request.param, path=FOLDER):
        pytest.skip(f"{request.param} is not in {FOLDER}")
    return request.param


@pytest.fixture
def connect(program: str, server: ModelServer, tmp_path: Path) -> Callable[..., Provider]:
    home = tmp_path / "home"
    home.mkdir()
    parent = {"PATH": f"{FOLDER}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}

    def connected(scenario: str = "ok") -> Provider:
        base = server.scenario(scenario)
        if program == "claude":
            keys = {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "fake", "CLAUDE_CODE_MAX_RETRIES": "0"}
            return Claude(parent=parent, settings=keys)
        if program == "codex":
            return Codex(parent=parent, server=CodexServer(base_url=f"{base}/v1", api_key="fake"))
        options = {"baseURL": f"{base}/v1", "apiKey": "fake"}
        vendor = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "L",
            "options": options,
            "models": {"m1": {"name": "M1"}},
        }
        quiet = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}
        return OpenCode(parent=parent, settings=quiet, config={"provider": {"loc": vendor}})

    return connected


@pytest.fixture
def ask(program: str, tmp_path: Path) -> Callable[..., TurnRequest]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "coder").write_text("INLINED-FILE")
    model = {"claude": "claude-sonnet-4-6", "codex": "fake-model", "opencode": "loc/m1"}[program]

    def asking(prompt: str = "hello", **fields: Any) -> TurnRequest:
        limits = fields.pop("limits", TurnLimits(wall_clock=60, idle=45))
        return TurnRequest(
            agent_id="coder", prompt=prompt, workspace=workspace, model=model, limits=limits, **fields
        )

    return asking


Connect = Callable[..., Provider]
Ask = Callable[..., TurnRequest]


async def test_a_turn_and_its_continuation(connect: Connect, ask: Ask, server: ModelServer) -> None:
    provider = connect()
    first = await tell(provider, ask("the first message", system_prompt="SYSTEM-PROMPT " * 20_000))
    assert first.answer == REPLY
    assert first.parts == [REPLY]
    second = await tell(
        provider,
        ask("the second message", session_id=first.session, session_total=first.usage.session_total),
    )
    assert second.answer == REPLY
    assert second.session == first.session
    for told in (first, second):
        assert told.usage.output_tokens == 25
        assert told.usage.cache_read_tokens == 900
    asked = [str(received.body) for received in server.received if received.body]
    assert "SYSTEM-PROMPT" in asked[0]
    assert "the first message" in asked[-1]


@pytest.mark.parametrize(
    "prompt", ["/clear MARK", "- MARK", "hi @coder MARK", "@./coder\nMARK", "MARK " + "x" * 300_000]
)
async def test_a_message_reaches_the_model_as_it_was_written(
    connect: Connect, ask: Ask, server: ModelServer, prompt: str
) -> None:
    assert (await tell(connect(), ask(prompt))).answer == REPLY
    asked = [str(received.body) for received in server.received if received.body]
    assert any("MARK" in body for body in asked)
    assert not any("INLINED-FILE" in body for body in asked)


async def test_a_session_that_is_gone_is_lost(connect: Connect, ask: Ask, program: str) -> None:
    unknown = "ses_nowhere" if program == "opencode" else "99999999-9999-4999-8999-999999999999"
    failed = (await tell(connect(), ask(session_id=unknown))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.SESSION_LOST)


async def test_a_wrong_key_is_said_to_be_one(connect: Connect, ask: Ask) -> None:
    assert (await tell(connect("e401"), ask())).failed.kind is ErrorKind.AUTH


async def test_a_context_that_is_full_is_said_to_be(connect: Connect, ask: Ask) -> None:
    assert (await tell(connect("context"), ask())).failed.kind is ErrorKind.CONTEXT_TOO_LONG


async def test_a_server_that_never_answers_meets_the_idle_limit(connect: Connect, ask: Ask) -> None:
    started = time.monotonic()
    told = await tell(connect("silent"), ask(limits=TurnLimits(wall_clock=60, idle=4, term=1)))
    assert told.failed.kind is ErrorKind.TIMED_OUT
    assert time.monotonic() - started < 20


WRITE = "USE-TOOL:echo hi > made.txt"


@pytest.mark.parametrize("permissions", list(Permissions))
async def test_permissions_are_what_the_program_keeps_to(
    connect: Connect, ask: Ask, program: str, permissions: Permissions
) -> None:
    request = ask(f"please {WRITE}", permissions=permissions)
    told = await tell(connect("shell"), request)
    assert told.answer.startswith("it said: ")
    wrote = (request.workspace / "made.txt").exists()
    # OpenCode has no shell that is kept to its folder, so only FULL has one.
    assert wrote == (
        permissions is Permissions.FULL or (permissions is Permissions.WORKSPACE and program != "opencode")
    )


async def test_what_a_program_was_not_allowed_is_told(connect: Connect, ask: Ask) -> None:
    told = await tell(connect("shell"), ask("please USE-TOOL:touch /etc/made.txt"))
    assert [denied.name for denied in told.of(ToolDenied)] != []


async def test_claude_code_takes_words_into_a_turn_that_goes_on(
    connect: Connect, ask: Ask, program: str, server: ModelServer
) -> None:
    if program != "claude":
        pytest.skip("only Claude Code takes more")
    steering = Steering()
    request = ask("USE-TOOL: sleep 3; echo done", permissions=Permissions.FULL, steering=steering)
    answers: list[str] = []
    async with aclosing(connect("shell").run(request)) as events:
        async for event in events:
            if isinstance(event, ToolUse) and event.state == "started":
                assert steering.offer("THE-SECOND")
            if isinstance(event, Finished):
                answers.append(event.text)
    assert len(answers) == 1
    assert "THE-SECOND" in str(server.received[-1].body)
