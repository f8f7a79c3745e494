"""Turns through Codex (`codex exec`)."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from pathlib import Path

import msgspec

from postroom.clock import Clock, SystemClock
from postroom.providers.cli import (
    Invocation,
    is_uuid,
    refusal_to_start,
    run_program,
    with_turn_id,
    write_private,
)
from postroom.providers.codex_events import CodexReader, Totals
from postroom.providers.environment import child_environment
from postroom.providers.failures import Product
from postroom.providers.mcp import McpServer, read_servers
from postroom.providers.protocol import Permissions, TurnRequest, TurnStream
from postroom.providers.toml import Table, toml
from postroom.providers.verdict import guarded

PRODUCT = Product(
    label="Codex",
    install="npm install -g @openai/codex",
    login="run `codex login`, or set an OpenAI API key",
)
OWN_VARIABLES = ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME")
# Of its home, what decides over what it runs: a turn must not plant anything there for others.
CONFIGURATION = ("config.toml", "AGENTS.md", "hooks.json", "prompts", "rules", "skills")
KEY_VARIABLE = "POSTROOM_CODEX_KEY"
# Without these it asks its vendor's hosts at every start, and loses seconds where they cannot be reached.
QUICK_START: Table = {
    "check_for_update_on_startup": False,
    "analytics": {"enabled": False},
    "features": {"plugins": False, "apps": False},
}


class CodexServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server other than OpenAI's; it must speak the Responses API."""

    base_url: str
    api_key: str = ""

    def __repr__(self) -> str:
        return f"CodexServer({self.base_url!r})"


class Codex:
    def __init__(
        self,
        *,
        name: str = "openai",
        program: str = "codex",
        settings: Mapping[str, str] | None = None,
        pass_variables: tuple[str, ...] = (),
        parent: Mapping[str, str] = os.environ,
        clock: Clock | None = None,
        product: Product = PRODUCT,
        server: CodexServer | None = None,
        network_patience: float = 60.0,
    ) -> None:
        self.name = name
        self._program = program
        self._settings = dict(settings or {})
        self._own = (*OWN_VARIABLES, *pass_variables) if server is None else ("CODEX_HOME", *pass_variables)
        self._parent = parent
        self._clock = clock or SystemClock()
        self._product = product
        self._server = server
        self._network_patience = network_patience
        self._totals = Totals()

    def run(self, request: TurnRequest) -> TurnStream:
        return guarded(self._product, self._run(with_turn_id(request)))

    async def _run(self, request: TurnRequest) -> TurnStream:
        reader = CodexReader(
            self.name,
            self._product,
            request,
            self._clock,
            vendor=self._server.base_url if self._server else "openai",
            totals=self._totals,
            network_patience=self._network_patience,
        )
        if refusal := refusal_to_start(request, self._product):
            yield refusal
            return
        if request.session_id is not None and not is_uuid(request.session_id):
            # The program would take it for a thread's name, and silently begin a new thread.
            yield reader.session_lost("not a thread id of Codex")
            return
        environment = child_environment(request, self._parent, own=self._own, settings=self._settings)
        if self._server:
            environment[KEY_VARIABLE] = self._server.api_key
        with _profile(request, environment, self._config(request)) as profile:
            invocation = Invocation(
                program=self._program,
                arguments=tuple(_arguments(request, profile)),
                stdin=request.prompt,
                environment=environment,
                homes=(home := _home(environment),),
                configuration=tuple(home / name for name in CONFIGURATION),
                bare_arguments=tuple(_arguments(request, profile, bare=True)),
            )
            async with aclosing(run_program(invocation, reader)) as events:
                async for event in events:
                    yield event

    def _config(self, request: TurnRequest) -> Table:
        config = dict(QUICK_START)
        if request.system_prompt:
            config["developer_instructions"] = request.system_prompt
        if self._server:
            config["model_provider"] = "postroom"
            config["model_providers"] = {
                "postroom": {
                    "name": self.name,
                    "base_url": self._server.base_url,
                    "env_key": KEY_VARIABLE,
                    "wire_api": "responses",
                }
            }
        servers = read_servers(request.mcp_config)
        if servers:
            config["mcp_servers"] = {name: _tool_server(server) for name, server in servers.items()}
        return config


def _arguments(request: TurnRequest, profile: str, *, bare: bool = False) -> list[str]:
    """`bare`: without the program's own sandbox."""
    # These belong to `exec` and must stand before `resume`.
    arguments = ["exec", "--profile", profile]
    if bare or request.permissions is Permissions.FULL:
        arguments += ["--dangerously-bypass-approvals-and-sandbox"]
    else:
        writing = request.permissions is Permissions.WORKSPACE
        arguments += ["--sandbox", "workspace-write" if writing else "read-only"]
    if request.session_id is not None:
        arguments += ["resume"]
    if request.model:
        arguments += ["-m", request.model]
    arguments += ["--skip-git-repo-check", "--json"]
    if request.session_id is not None:
        arguments += [request.session_id]
    return [*arguments, "-"]


def _home(environment: Mapping[str, str]) -> Path:
    home = Path(environment.get("CODEX_HOME") or Path(environment.get("HOME", "/")) / ".codex")
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home


@contextmanager
def _profile(request: TurnRequest, environment: Mapping[str, str], config: Table) -> Iterator[str]:
    """What goes along with a turn, as a profile in the program's home: arguments can be read by every user of
    the machine, and hold 128 KiB at most. The name is the agent's, so a crash leaves one file, not many."""
    home = _home(environment)
    place = hashlib.sha256(f"{request.workspace.absolute()}\0{request.agent_id}".encode()).hexdigest()[:12]
    name = f"postroom-{re.sub(r'[^A-Za-z0-9_-]', '-', request.agent_id)[:40]}-{place}"
    path = write_private(home / f"{name}.config.toml", toml(config))
    try:
        yield name
    finally:
        path.unlink(missing_ok=True)


# There is nobody to ask, so a tool that had to be approved could never be used.
_APPROVED: Table = {"default_tools_approval_mode": "approve"}


def _tool_server(server: McpServer) -> Table:
    if server.url:
        return {"url": server.url, "http_headers": dict(server.headers), **_APPROVED}
    return {"command": server.command, "args": list(server.args), "env": dict(server.env), **_APPROVED}
