"""OpenCode: its own events, failures and arguments; the end of a turn is the end of the program."""

import json
from pathlib import Path
from typing import Any

import pytest

from postroom.clock import SECOND, ManualClock
from postroom.providers import Cause, ErrorKind, Finished, Permissions, TurnLimits, Usage
from postroom.providers.opencode import OpenCode
from tests.providers.conftest import Office, tell

K, C = ErrorKind, Cause


@pytest.fixture
def opencode(office: Office, still: ManualClock) -> OpenCode:
    return OpenCode(parent=office.parent, clock=still)


@pytest.mark.parametrize(
    ("fake", "kind", "cause"),
    [
        ("e400", K.INVALID, C.UNKNOWN),
        ("e401", K.AUTH, C.UNKNOWN),
        ("quota", K.AUTH, C.QUOTA),
        ("e429", K.RATE_LIMIT, C.UNKNOWN),
        ("e500", K.OVERLOADED, C.SERVER),
        ("e503", K.OVERLOADED, C.UNKNOWN),
        ("e529", K.OVERLOADED, C.UNKNOWN),
        ("overflow", K.CONTEXT_TOO_LONG, C.UNKNOWN),
        ("e404", K.INVALID, C.MODEL),
        ("unknown-model", K.INVALID, C.MODEL),
        ("filtered", K.REFUSED, C.UNKNOWN),
        ("denied", K.INVALID, C.PERMISSION),
    ],
)
async def test_a_failed_turn_is_of_the_kind_its_error_says(
    opencode: OpenCode, office: Office, fake: str, kind: ErrorKind, cause: Cause
) -> None:
    failed = (await tell(opencode, office.request(fake=fake))).failed
    assert (failed.kind, failed.cause) == (kind, cause)


async def test_a_rate_limit_says_when_it_ends(opencode: OpenCode, office: Office, still: ManualClock) -> None:
    failed = (await tell(opencode, office.request(fake="e429"))).failed
    assert failed.retry_at == still.now() + 30 * SECOND


async def test_usage_is_told_for_each_step(opencode: OpenCode, office: Office) -> None:
    steps = (await tell(opencode, office.request(fake="tool", model="vendor/m"))).of(Usage)
    assert len(steps) == 2
    for usage in steps:
        assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (300, 900, 25)
        assert (usage.cost_usd, usage.vendor) == (0.00044, "vendor")


async def test_a_price_it_does_not_know_is_not_zero(opencode: OpenCode, office: Office) -> None:
    assert (await tell(opencode, office.request(fake="free"))).usage.cost_usd is None


async def test_an_answer_cut_by_the_token_limit_says_so(opencode: OpenCode, office: Office) -> None:
    assert (await tell(opencode, office.request(fake="length"))).verdict == Finished(
        text="final text", stop_reason="length"
    )


async def test_a_step_after_the_last_one_is_the_answer(opencode: OpenCode, office: Office) -> None:
    assert (await tell(opencode, office.request(fake="one-more"))).answer == "one more"


async def test_a_step_that_is_repeated_is_answered_once(opencode: OpenCode, office: Office) -> None:
    assert (await tell(opencode, office.request(fake="retry"))).answer == "final text"


async def test_a_model_without_its_vendor_is_refused_before_anything_starts(
    opencode: OpenCode, office: Office
) -> None:
    failed = (await tell(opencode, office.request(model="sonnet"))).failed
    assert (failed.kind, failed.cause) == (ErrorKind.INVALID, Cause.MODEL)
    assert office.calls("opencode") == []


async def test_a_session_of_another_folder_hangs_and_is_stopped(
    opencode: OpenCode, office: Office, tmp_path: Path
) -> None:
    first = await tell(opencode, office.request())
    limits = TurnLimits(wall_clock=600, idle=0.5, term=0.1)
    request = office.request(session_id=first.session, workspace=tmp_path, limits=limits)
    assert (await tell(opencode, request)).failed.cause is Cause.IDLE


async def test_a_new_session_has_a_title_so_that_none_is_asked_of_the_model(
    opencode: OpenCode, office: Office
) -> None:
    first = await tell(opencode, office.request())
    await tell(opencode, office.request(session_id=first.session))
    assert ["--title" in call["argv"] for call in office.calls("opencode")] == [True, False]


async def test_prompt_rules_and_tools_travel_in_a_file(
    opencode: OpenCode, office: Office, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    local = {"command": "serve", "args": ["--fast"], "env": {"A": "1"}}
    remote = {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer x"}}
    config.write_text(json.dumps({"mcpServers": {"local": local, "remote": remote}}))
    await tell(opencode, office.request(system_prompt="be nice", mcp_config=config))
    written = _config(office)
    agent = written["agent"]["postroom-coder"]
    assert (agent["prompt"], agent["mode"]) == ("be nice", "primary")
    assert written["mcp"]["local"]["command"] == ["serve", "--fast"]
    assert written["mcp"]["remote"]["url"] == "http://127.0.0.1:1/mcp"
    arguments = office.calls("opencode")[0]["argv"]
    assert arguments[arguments.index("--agent") + 1] == "postroom-coder"


@pytest.mark.parametrize("permissions", list(Permissions))
async def test_nothing_is_ever_asked_since_nobody_would_answer(
    opencode: OpenCode, office: Office, permissions: Permissions
) -> None:
    await tell(opencode, office.request(permissions=permissions))
    assert set(_config(office)["permission"].values()) <= {"allow", "deny"}


def _config(office: Office) -> dict[str, Any]:
    return json.loads((office.state / "opencode.json").read_text())
