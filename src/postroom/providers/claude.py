"""Turns through Claude Code (`claude -p`)."""

import contextlib
import json
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path

from postroom.clock import Clock, SystemClock
from postroom.providers.claude_events import ClaudeReader
from postroom.providers.cli import (
    Invocation,
    is_uuid,
    refusal_to_start,
    run_program,
    with_turn_id,
    write_private,
)
from postroom.providers.environment import child_environment
from postroom.providers.failures import Product
from postroom.providers.mcp import read_servers
from postroom.providers.protocol import Permissions, TurnRequest, TurnStream
from postroom.providers.steering import Steering
from postroom.providers.turn_folders import turn_folder
from postroom.providers.verdict import guarded

PRODUCT = Product(
    label="Claude Code",
    install="npm install -g @anthropic-ai/claude-code",
    login="run `claude` once and log in, or set an Anthropic API key",
)
OWN_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR",
)
# Whatever the person's own settings of the program allow, nothing is written or run with READ.
CHANGING_TOOLS = ("Bash", "Edit", "NotebookEdit", "Write")
# Of its home, what decides over what it runs: a turn must not plant anything there for others.
CONFIGURATION = (
    "settings.json",
    "settings.local.json",
    "CLAUDE.md",
    "agents",
    "commands",
    "hooks",
    "output-styles",
    "plugins",
    "rules",
    "skills",
)
# Few retries inside the program: a hiccup must not cost a long turn, but waiting is the queue's business.
QUIET = {
    "CLAUDE_CODE_MAX_RETRIES": "3",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
# Claude Code runs a message that begins with "/" as a command, and puts the file behind every "@path" into
# the request, whoever wrote it. It does so in the last block of a message only, so the last block is this.
LAST_BLOCK = "(end of message)"


class Claude:
    takes_more = True  # between two tools, or after its answer as a second one

    def __init__(
        self,
        *,
        name: str = "anthropic",
        program: str = "claude",
        settings: Mapping[str, str] | None = None,
        pass_variables: tuple[str, ...] = (),
        parent: Mapping[str, str] = os.environ,
        clock: Clock | None = None,
        product: Product = PRODUCT,
        vendor: str = "anthropic",
    ) -> None:
        self.name = name
        self._program = program
        self._settings = {**QUIET, **(settings or {})}
        self._own = (*OWN_VARIABLES, *pass_variables)
        self._parent = parent
        self._clock = clock or SystemClock()
        self._product = product
        self._vendor = vendor

    def run(self, request: TurnRequest) -> TurnStream:
        return guarded(self._product, self._run(with_turn_id(request)))

    async def _run(self, request: TurnRequest) -> TurnStream:
        reader = ClaudeReader(self.name, self._product, request, self._clock, self._vendor)
        if refusal := refusal_to_start(request, self._product):
            yield refusal
            return
        if request.session_id is not None and not is_uuid(request.session_id):
            # The program would take it for the title of some session.
            yield reader.session_lost("not a session id of Claude Code")
            return
        with turn_folder() as folder:
            async with aclosing(run_program(self._invocation(request, folder), reader)) as events:
                async for event in events:
                    yield event

    def _invocation(self, request: TurnRequest, folder: Path) -> Invocation:
        environment = child_environment(request, self._parent, own=self._own, settings=self._settings)
        if request.permissions is Permissions.FULL:
            environment["IS_SANDBOX"] = "1"  # without it the program refuses to do as root what FULL asks for
        return Invocation(
            program=self._program,
            arguments=tuple(_arguments(request, folder)),
            stdin=_describe_message(request.prompt),
            more=None if request.steering is None else _describe_more(request.steering),
            environment=environment,
            homes=(home := _home(environment), Path(environment.get("HOME", "/")) / ".claude.json"),
            configuration=(folder, *(home / name for name in CONFIGURATION)),
        )


def _describe_message(text: str) -> str:
    content = [{"type": "text", "text": text}, {"type": "text", "text": LAST_BLOCK}]
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}}) + "\n"


async def _describe_more(steering: Steering) -> AsyncIterator[str]:
    async for text in steering.words():
        yield _describe_message(text)


def _home(environment: Mapping[str, str]) -> Path:
    """Where sessions and logins are kept; made here, or in a sandbox they would be gone with the turn."""
    home = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME", "/")) / ".claude")
    with contextlib.suppress(OSError):  # the program will say what it misses
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home


def _arguments(request: TurnRequest, folder: Path) -> list[str]:
    arguments = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"]
    arguments += ["--include-partial-messages"]
    if request.session_id is None:
        arguments += ["--session-id", str(uuid.uuid4())]
    else:
        arguments += ["--resume", request.session_id]
    if request.model:
        arguments += ["--model", request.model]
    if request.system_prompt:
        path = write_private(folder / "system-prompt.md", request.system_prompt)
        arguments += ["--append-system-prompt-file", str(path)]
    if request.limits.budget_usd is not None:
        arguments += ["--max-budget-usd", f"{request.limits.budget_usd:.6f}"]
    if request.permissions is Permissions.FULL:
        arguments += ["--dangerously-skip-permissions"]
    else:
        mode = "acceptEdits" if request.permissions is Permissions.WORKSPACE else "default"
        arguments += ["--permission-mode", mode]
    if request.permissions is Permissions.READ:
        arguments += ["--disallowedTools", *CHANGING_TOOLS]
    if request.mcp_config is not None:
        tools = [f"mcp__{name}" for name in read_servers(request.mcp_config)]
        arguments += ["--mcp-config", str(request.mcp_config), "--strict-mcp-config"]
        arguments += ["--allowedTools", *tools] if tools else []
    # Last, since options that take many values swallow what follows up to the next option.
    return [*arguments, "--verbose"]
