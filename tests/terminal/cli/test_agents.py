"""Agents are added and changed from a shell, with what they may do."""

from pathlib import Path

import pytest

from tests.terminal.cli.runner import Cli


def test_an_agents_permissions_are_set_and_shown(cli: Cli) -> None:
    cli.ok("agent", "add", "coder", "--provider", "script", "--permissions", "read")
    assert cli.json("agent", "show", "coder")["permissions"] == "read"
    assert cli.json("agent", "set", "coder", "--permissions", "full")["permissions"] == "full"
    kept = cli.json("agent", "set", "coder", "--name", "Code Bot")
    assert (kept["permissions"], kept["name"], kept["provider"]) == ("full", "Code Bot", "script")


def test_wrong_permissions_change_nothing(cli: Cli) -> None:
    cli.ok("agent", "add", "coder", "--provider", "script")
    for words in (
        ("agent", "set", "coder", "--permissions", "everything"),
        ("settings", "set", "agents.coder.permissions", "everything"),
        ("settings", "set", "security.permissions", "everything"),
        ("agent", "add", "other", "--permissions", "everything"),
    ):
        refused = cli(*words)
        assert refused.code == 2
        assert "permissions" in refused.err
    assert "permissions" not in cli.json("agent", "show", "coder")
    assert "other" not in cli.json("agent", "list")


def test_a_change_of_nothing_says_so(cli: Cli) -> None:
    cli.ok("agent", "add", "coder", "--provider", "script")
    refused = cli("agent", "set", "coder")
    assert refused.code == 2
    assert "nothing to change" in refused.err


def test_an_agent_whose_program_is_missing_is_added_with_a_word_about_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cli.ok("agent", "add", "coder", "--provider", "anthropic")
    assert done.err == "note: claude is not on this machine; postroom doctor says how to get it\n"
    (tmp_path / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "claude").chmod(0o755)
    assert cli.ok("agent", "add", "other", "--provider", "anthropic").err == ""
