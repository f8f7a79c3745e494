"""`postroom trace` tells as much as the demo's tree, by whatever id somebody has."""

import json

import pytest

from tests.terminal.cli.runner import Cli


@pytest.fixture
def office(cli: Cli) -> Cli:
    cli.home.mkdir(mode=0o700)
    settings = {
        "workspace": {"path": str(cli.folder / "work")},
        "agents": {"coder": {"name": "Coder", "provider": "script", "model": ""}},
        "monitoring": {"heartbeat_interval": 0},
    }
    (cli.home / "settings.json").write_text(json.dumps(settings))
    (cli.home / "script.json").write_text(json.dumps({"pace": 0.001}))
    return cli


def test_a_trace_tells_words_turns_tokens_and_waits_by_the_id_that_send_printed(office: Cli) -> None:
    office.ok("send", "@coder what is new?", "--id", "mine-1", "--wait")
    told = office.ok("trace", "mine-1").out
    first = next(line for line in told.splitlines() if "→ @coder" in line)
    assert "what is new?" in first
    assert "completed" in first
    assert "turn of @coder" in told
    assert "tokens" in told
    assert "This is @coder" in told
    assert "waited" in told
    assert office.json("trace", "mine-1")["trace_id"] == "cli:mine-1"
    for command in ("why", "show"):
        assert "completed" in office.ok(command, "mine-1").out
