"""Turns through OpenCode (`opencode run`)."""

import contextlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from postroom.clock import Clock, SystemClock
from postroom.providers.cli import Invocation, refusal_to_start, run_program, with_turn_id, write_private
from postroom.providers.environment import child_environment
from postroom.providers.failures import Product
from postroom.providers.mcp import McpServer, read_servers
from postroom.providers.opencode_events import OpenCodeReader
from postroom.providers.protocol import Cause, ErrorKind, Permissions, TurnRequest, TurnStream
from postroom.providers.turn_folders import turn_folder
from postroom.providers.verdict import guarded

PRODUCT = Product(
    label="OpenCode",
    install="npm install -g opencode-ai",
    login="run `opencode auth login`, or set the API key of the model's vendor",
)
QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
_XDG = {
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}
# Of its configuration, what decides over what it runs: a turn must not plant anything there for others.
CONFIGURATION = (
    "opencode.json",
    "opencode.jsonc",
    "config.json",
    "AGENTS.md",
    "agent",
    "agents",
    "command",
    "commands",
    "plugin",
    "plugins",
    "skills",
    "tool",
    "tools",
)
_SESSION = re.compile(r"ses_[A-Za-z0-9]+")
_VENDOR_KEYS = {
    "google": ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"),
    "azure": ("AZURE_API_KEY", "AZURE_RESOURCE_NAME"),
    "github-copilot": ("GITHUB_TOKEN",),
    "amazon-bedrock": ("AWS_*",),
}
# "ask" would end the turn in silence, as there is nobody to ask: what is not allowed is denied.
_RULES: dict[Permissions, dict[str, str]] = {
    Permissions.READ: {"edit": "deny", "bash": "deny", "external_directory": "deny"},
    Permissions.WORKSPACE: {"edit": "allow", "bash": "deny", "external_directory": "deny"},
    Permissions.FULL: {"edit": "allow", "bash": "allow", "webfetch": "allow", "external_directory": "allow"},
}


class OpenCode:
    def __init__(
        self,
        *,
        name: str = "opencode",
        program: str = "opencode",
        settings: Mapping[str, str] | None = None,
        pass_variables: tuple[str, ...] = (),
        parent: Mapping[str, str] = os.environ,
        clock: Clock | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self._program = program
        self._settings = {**QUIET, **(settings or {})}
        self._pass = pass_variables
        self._parent = parent
        self._clock = clock or SystemClock()
        self._extra = dict(config or {})

    def run(self, request: TurnRequest) -> TurnStream:
        return guarded(PRODUCT, self._run(with_turn_id(request)))

    async def _run(self, request: TurnRequest) -> TurnStream:
        reader = OpenCodeReader(self.name, PRODUCT, request, self._clock)
        if refusal := refusal_to_start(request, PRODUCT):
            yield refusal
            return
        if request.model and "/" not in request.model:
            yield reader.failed(
                ErrorKind.INVALID,
                Cause.MODEL,
                "OpenCode names models as vendor/model, such as opencode/big-pickle.",
            )
            return
        if request.session_id is not None and not _SESSION.fullmatch(request.session_id):
            yield reader.session_lost("not a session id of OpenCode")
            return
        with turn_folder() as folder:
            async with aclosing(run_program(self._invocation(request, folder), reader)) as events:
                async for event in events:
                    yield event

    def _invocation(self, request: TurnRequest, folder: Path) -> Invocation:
        own = (*_own_variables(request.model), *self._pass)
        environment = child_environment(request, self._parent, own=own, settings=self._settings)
        config = write_private(folder / "opencode.json", json.dumps(self._config(request)))
        environment["OPENCODE_CONFIG"] = str(config)
        return Invocation(
            program=self._program,
            arguments=tuple(_arguments(request)),
            stdin=request.prompt,
            environment=environment,
            homes=(homes := _homes(environment)),
            configuration=(folder, *(homes[0] / name for name in CONFIGURATION)),
        )

    def _config(self, request: TurnRequest) -> dict[str, Any]:
        agent: dict[str, Any] = {"mode": "primary", "permission": _RULES[request.permissions]}
        if request.system_prompt:
            agent["prompt"] = request.system_prompt
        servers = {name: _tool_server(server) for name, server in read_servers(request.mcp_config).items()}
        return {
            "$schema": "https://opencode.ai/config.json",
            "autoupdate": False,
            "share": "disabled",
            "permission": _RULES[request.permissions],
            **self._extra,
            "agent": {_agent_name(request): agent},
            **({"mcp": servers} if servers else {}),
        }


def _homes(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Configuration, data, state and cache; made here, or in a sandbox they would be gone with the turn."""
    home = Path(environment.get("HOME", "/"))
    homes = tuple(
        Path(environment.get(variable) or home / place) / "opencode" for variable, place in _XDG.items()
    )
    for folder in homes:
        with contextlib.suppress(OSError):  # the program will say what it misses
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return homes


def _arguments(request: TurnRequest) -> list[str]:
    arguments = ["run", "--format", "json", "--agent", _agent_name(request)]
    if request.model:
        arguments += ["--model", request.model]
    # From another folder than the session's own the program calls the model, prints nothing, and hangs.
    arguments += ["--dir", str(request.workspace.absolute())]
    if request.session_id is None:
        # Without a title it makes a further call to the model, which no event reports.
        arguments += ["--title", f"postroom {request.agent_id}"]
    else:
        arguments += ["--session", request.session_id]
    if request.permissions is Permissions.FULL:
        arguments += ["--auto"]
    return arguments


def _agent_name(request: TurnRequest) -> str:
    """Not the bare id, which may be the name of one of the program's own agents."""
    return "postroom-" + re.sub(r"[^A-Za-z0-9_-]", "-", request.agent_id)


def _own_variables(model: str) -> tuple[str, ...]:
    """The key of the vendor of this model, and of no other."""
    vendor = model.partition("/")[0].lower()
    if not vendor:
        return ("OPENCODE_API_KEY",)
    return _VENDOR_KEYS.get(vendor, (f"{re.sub(r'[^A-Z0-9]', '_', vendor.upper())}_API_KEY",))


def _tool_server(server: McpServer) -> dict[str, Any]:
    if server.url:
        return {"type": "remote", "url": server.url, "headers": dict(server.headers), "enabled": True}
    command = [server.command, *server.args]
    return {"type": "local", "command": command, "environment": dict(server.env), "enabled": True}
