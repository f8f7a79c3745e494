"""`send --wait` ends when a guard stops the work: it says which, that nothing is lost, and how to go on."""

import json

import pytest

from tests.terminal.cli.runner import Cli


@pytest.fixture
def office(cli: Cli) -> Cli:
    """With an agent that costs money, if it is let."""
    cli.home.mkdir(mode=0o700)
    agents = {"coder": {"name": "Coder", "provider": "anthropic", "model": "opus"}}
    settings = {
        "workspace": {"path": str(cli.folder / "work")},
        "agents": agents,
        "monitoring": {"heartbeat_interval": 0},
    }
    (cli.home / "settings.json").write_text(json.dumps(settings))
    (cli.home / "script.json").write_text(json.dumps({"pace": 0.001}))
    return cli


@pytest.mark.parametrize("budget", ["daily_usd", "agent_daily_usd"])
def test_a_budget_that_is_used_up_ends_the_wait(office: Cli, budget: str) -> None:
    office.ok("settings", "set", f"budgets.{budget}", "0")
    stopped = office("send", "@coder hello", "--wait", "--timeout", "120", "--id", "one")
    assert stopped.code == 5
    assert "The conversation waits for you (budget); nothing is lost." in stopped.err
    assert "postroom guards list" in stopped.err
    assert "postroom guards raise" in stopped.err
    assert "Traceback" not in stopped.err
    told = json.loads(office("send", "@coder hi", "--wait", "--timeout", "120", "--json").err)["error"]
    assert told["code"] == "PAUSED"
    frozen = [each for each in office.json("guards", "list")["budgets"] if each["frozen"]]
    assert len(frozen) == 1
    office.ok("agent", "provider", "coder", "script")
    office.ok("guards", "raise", frozen[0]["account"], "5")
    answered = office.json("send", "@coder and now?", "--wait", "--timeout", "120")
    assert "I have read your message" in answered["replies"][-1]["message"]
    inbox = office.json("list", "office/inbox/coder")["messages"]
    assert {message["state"] for message in inbox} == {"completed"}
    assert len(inbox) == 3


def test_the_limit_of_a_conversation_ends_the_wait_and_names_the_conversation(office: Cli) -> None:
    office.ok("settings", "set", "budgets.conversation_usd", "0")
    stopped = office("send", "@coder hello", "--wait", "--timeout", "120", "--id", "two")
    assert stopped.code == 5
    assert "The conversation waits for you (cost); nothing is lost." in stopped.err
    assert "postroom guards continue cli:two" in stopped.err
    assert "postroom guards stop cli:two" in stopped.err
    office.ok("guards", "continue", "cli:two")
    assert office.json("guards", "list")["conversations"] == []


def test_a_pause_of_everybody_ends_the_wait(office: Cli) -> None:
    office.ok("guards", "pause-all")
    stopped = office("send", "@coder hello", "--wait", "--timeout", "120")
    assert stopped.code == 5
    assert "postroom guards resume-all" in stopped.err
