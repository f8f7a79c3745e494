"""Codex: its own events, failures and arguments, and usage that counts up."""

import json
import stat
import tomllib
from pathlib import Path

import pytest

from postroom.clock import SECOND, ManualClock
from postroom.providers import (
    Cause,
    ErrorKind,
    Permissions,
    Progress,
    SessionTotal,
    ToolDenied,
    ToolUse,
    Usage,
)
from postroom.providers.codex import Codex, CodexServer
from tests.providers.conftest import Office, tell

K, C = ErrorKind, Cause


@pytest.fixture
def codex(office: Office, still: ManualClock) -> Codex:
    return Codex(parent=office.parent, clock=still, network_patience=0.2)


@pytest.mark.parametrize(
    ("fake", "kind", "cause"),
    [
        ("e400", K.INVALID, C.UNKNOWN),
        ("e401", K.AUTH, C.UNKNOWN),
        ("only-error", K.AUTH, C.UNKNOWN),
        ("e403", K.AUTH, C.UNKNOWN),
        ("no-key", K.AUTH, C.UNKNOWN),
        ("quota", K.AUTH, C.QUOTA),
        ("e429", K.RATE_LIMIT, C.UNKNOWN),
        ("e500", K.OVERLOADED, C.UNKNOWN),
        ("e503", K.OVERLOADED, C.UNKNOWN),
        ("capacity", K.OVERLOADED, C.UNKNOWN),
        ("cut", K.OVERLOADED, C.STREAM_CUT),
        ("context", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("context-400", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("max-tokens", K.INVALID, C.TOKEN_LIMIT),
        ("filtered", K.REFUSED, C.UNKNOWN),
        ("e404", K.INVALID, C.MODEL),
    ],
)
async def test_a_failed_turn_is_of_the_kind_its_message_says(
    codex: Codex, office: Office, fake: str, kind: ErrorKind, cause: Cause
) -> None:
    failed = (await tell(codex, office.request(fake=fake))).failed
    assert (failed.kind, failed.cause) == (kind, cause)
    assert "0123456789abcdef" not in failed.detail + failed.message


async def test_a_usage_limit_says_when_it_ends(codex: Codex, office: Office, still: ManualClock) -> None:
    failed = (await tell(codex, office.request(fake="limit"))).failed
    assert failed.kind is ErrorKind.RATE_LIMIT
    assert failed.retry_at == still.now() + (27 * 3600 + 300) * SECOND


async def test_reconnecting_is_progress_not_a_verdict(codex: Codex, office: Office) -> None:
    told = await tell(codex, office.request(fake="retry"))
    assert told.answer == "final text"
    assert [event.kind for event in told.of(Progress)] == ["warning", "retry"]


async def test_waiting_for_the_network_without_end_is_ended(codex: Codex, office: Office) -> None:
    failed = (await tell(codex, office.request(fake="offline"))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.OVERLOADED, Cause.NETWORK)


async def test_another_thread_than_asked_for_means_that_the_thread_is_lost(
    codex: Codex, office: Office
) -> None:
    first = await tell(codex, office.request())
    failed = (await tell(codex, office.request(fake="other-thread", session_id=first.session))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.SESSION_LOST)


async def test_the_usage_of_a_turn_is_what_the_total_grew_by(codex: Codex, office: Office) -> None:
    first = await tell(codex, office.request(model="gpt-5"))
    second = await tell(
        codex,
        office.request(model="gpt-5", session_id=first.session, session_total=first.usage.session_total),
    )
    for usage in (first.usage, second.usage):
        assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (320, 900, 25)
        assert not usage.whole_session
    assert second.usage.session_total == SessionTotal(
        input_tokens=2440, cache_read_tokens=1800, output_tokens=50
    )


async def test_a_total_handed_back_after_a_restart_is_used(codex: Codex, office: Office) -> None:
    first = await tell(codex, office.request())
    restarted = Codex(parent=office.parent)
    second = await tell(
        restarted, office.request(session_id=first.session, session_total=first.usage.session_total)
    )
    assert second.usage.output_tokens == 25


async def test_a_total_that_is_not_known_is_said_to_be_of_the_whole_session(
    codex: Codex, office: Office
) -> None:
    first = await tell(codex, office.request())
    usage: Usage = (await tell(Codex(parent=office.parent), office.request(session_id=first.session))).usage
    assert usage.whole_session
    assert usage.output_tokens == 50


async def test_tools_are_told_with_how_they_went(codex: Codex, office: Office) -> None:
    tools = (await tell(codex, office.request(fake="tool"))).of(ToolUse)
    assert [(tool.name, tool.state) for tool in tools] == [
        ("shell", "started"),
        ("shell", "failed"),
        ("file_change", "finished"),
        ("mcp__echo__say", "finished"),
    ]


async def test_options_of_exec_stand_before_resume(codex: Codex, office: Office) -> None:
    first = await tell(codex, office.request())
    await tell(codex, office.request(session_id=first.session, model="gpt-5"))
    arguments = office.calls("codex")[1]["argv"]
    assert arguments.index("--sandbox") < arguments.index("resume") < arguments.index("-m")
    assert arguments[-2:] == [first.session, "-"]


async def test_what_is_private_travels_in_a_profile_only_the_owner_can_read(
    codex: Codex, office: Office, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    local = {"command": "serve", "args": ["--fast"], "env": {"TOKEN": "mcp-secret"}}
    remote = {
        "type": "http",
        "url": "http://127.0.0.1:1/mcp",
        "headers": {"Authorization": "Bearer mcp-secret"},
    }
    config.write_text(json.dumps({"mcpServers": {"local": local, "remote": remote}}))
    await tell(codex, office.request(system_prompt='be "nice"\n', mcp_config=config))
    call = office.calls("codex")[0]
    assert "mcp-secret" not in json.dumps(call["argv"])
    assert "mcp-secret" not in json.dumps(call["env"])
    written = _profile(office)
    assert written["developer_instructions"] == 'be "nice"\n'
    assert written["mcp_servers"]["local"]["env"] == {"TOKEN": "mcp-secret"}
    assert written["mcp_servers"]["remote"]["http_headers"] == {"Authorization": "Bearer mcp-secret"}
    assert written["features"] == {"plugins": False, "apps": False}
    assert _profile_mode(office) == 0o600


async def test_a_server_of_ones_own_is_declared_and_gets_its_own_key_only(office: Office) -> None:
    server = CodexServer(base_url="http://127.0.0.1:1/v1", api_key="own-key")
    codex = Codex(name="custom:x", parent={**office.parent, "OPENAI_API_KEY": "openai-key"}, server=server)
    told = await tell(codex, office.request(model="m1"))
    environment = office.calls("codex")[0]["env"]
    declared = _profile(office)["model_providers"]["postroom"]
    assert declared["base_url"] == "http://127.0.0.1:1/v1"
    assert environment[declared["env_key"]] == "own-key"
    assert "OPENAI_API_KEY" not in environment
    assert told.usage.vendor == "http://127.0.0.1:1/v1"
    assert "own-key" not in repr(server)


@pytest.mark.parametrize(
    ("permissions", "sandbox"),
    [(Permissions.READ, "read-only"), (Permissions.WORKSPACE, "workspace-write")],
)
async def test_tools_are_kept_in_the_sandbox(
    codex: Codex, office: Office, permissions: Permissions, sandbox: str
) -> None:
    await tell(codex, office.request(permissions=permissions))
    arguments = office.calls("codex")[0]["argv"]
    assert arguments[arguments.index("--sandbox") + 1] == sandbox


async def test_arguments_it_does_not_know_are_the_owners_matter(office: Office) -> None:
    old = Path(office.parent["PATH"].split(":")[0]) / "codex"
    old.unlink()
    old.write_text("#!/bin/sh\necho \"error: unexpected argument '--profile' found\" >&2; exit 2\n")
    old.chmod(0o755)
    failed = (await tell(Codex(parent=office.parent), office.request())).failed
    assert failed.kind is ErrorKind.INVALID
    assert "--profile" in failed.message


def _profile(office: Office) -> dict[str, dict[str, dict[str, object]]]:
    return tomllib.loads((office.state / "profile.toml").read_text())


def _profile_mode(office: Office) -> int:
    """As the fake saw it."""
    return stat.S_IMODE(int((office.state / "profile.mode").read_text()))


async def test_a_command_that_fails_without_barriers_was_not_denied(codex: Codex, office: Office) -> None:
    told = await tell(codex, office.request(fake="denied", permissions=Permissions.FULL))
    assert told.of(ToolDenied) == []
