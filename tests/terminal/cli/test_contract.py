"""Every word people know from TinyAGI is there, and does the same or says what to do instead."""

import json

import pytest

from tests.terminal.cli.runner import Cli
from tests.terminal.cli.test_help import ROOT

WORDS = """
run | install | start | stop | restart | status | logs | send | reset | setup | heartbeat | chatroom | office
update | version | help | model
channel setup | channel start | channel stop | channel restart | channel reset
channels setup | channels start | channels stop | channels restart | channels reset
agent add | agent remove | agent rm | agent list | agent ls | agent show | agent reset | agent provider
team add | team remove | team rm | team list | team ls | team show
team add-agent | team agent-add | team member-add | team remove-agent | team agent-remove | team member-remove
team visualize | team viz
provider list | provider add | provider remove | provider anthropic | provider openai | provider opencode
pairing pending | pairing approved | pairing list | pairing ls | pairing approve | pairing unpair
schedule list | schedule ls | schedule create | schedule add | schedule delete | schedule rm | schedule remove
"""


@pytest.mark.parametrize(
    "line", [words.strip() for row in WORDS.split("\n") for words in row.split("|") if words.strip()]
)
def test_a_word_of_the_contract_is_known(line: str) -> None:
    command = ROOT
    for word in line.split():
        command = command.commands[word]  # type: ignore[attr-defined]


@pytest.mark.parametrize("option", ["-v", "-V", "--version"])
def test_short_options_tell_the_version(cli: Cli, option: str) -> None:
    assert cli.ok(option).out.strip() == cli.json("version")["postroom"]


def test_help_is_also_a_word(cli: Cli) -> None:
    assert "Usage: postroom send" in cli.ok("help", "send").out
    assert "Start here" in cli.ok("help").out
    assert cli("help", "nonsense").code == 2


def test_what_makes_no_sense_here_says_what_to_do_instead(cli: Cli) -> None:
    assert "postroom import tinyagi" in cli.ok("install").out
    told = cli.json("update")
    assert told["version"] == cli.json("version")["postroom"]
    assert "newest" not in told, "nothing is asked over the network unless wanted"


def test_an_update_that_cannot_be_looked_for_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    done = cli("update", "--check")
    assert done.code == 6
    assert "could not be found out" in done.err


@pytest.mark.parametrize("words", ["office", "login", "channel start telegram"])
def test_what_needs_a_house_says_how_to_open_one(cli: Cli, words: str) -> None:
    done = cli(*words.split())
    assert (done.code, "postroom start" in done.err) == (4, True)


def test_sessions_begin_anew_for_all_or_for_nobody(cli: Cli) -> None:
    assert cli.json("reset", "assistant")["reset"] == ["assistant"]
    unknown = cli("reset", "assistant", "ghost")
    assert (unknown.code, "ghost" in unknown.err) == (4, True)


def test_heartbeats_are_told_by_agent(cli: Cli) -> None:
    agent = {"every": 0, "every_s": 0, "last": None, "last_at": None}
    assert cli.json("heartbeat") == {"interval": 0, "interval_s": 0, "agents": {"assistant": agent}}
    assert "off" in cli.ok("heartbeat").out


def test_the_log_is_shown_by_its_parts(cli: Cli) -> None:
    (cli.home / "logs").mkdir(parents=True)
    lines = [
        {"time": "t1", "level": "INFO", "from": "channels.telegram", "text": "polls"},
        {"time": "t2", "level": "INFO", "from": "daemon", "text": "ready"},
    ]
    (cli.home / "logs" / "postroom.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert cli.ok("logs").out.splitlines() == ["[t1] [INFO] polls", "[t2] [INFO] ready"]
    assert cli.ok("logs", "all").out == cli.ok("logs", "queue").out == cli.ok("logs").out
    assert cli.ok("logs", "telegram").out.splitlines() == ["[t1] [INFO] polls"]
    nothing = cli.ok("logs", "discord")
    assert (nothing.out, "nothing of discord" in nothing.err) == ("", True)


def test_agents_come_back_from_backups(cli: Cli) -> None:
    cli.ok("agent", "add", "coder", "--provider", "script")
    twice = cli("agent", "add", "coder")
    assert (twice.code, "already" in twice.err) == (5, True)
    assert cli("agent", "remove", "coder", stdin=b"n\n").code == 1
    assert cli("agent", "remove", "ghost").code == 4
    backup = cli.json("agent", "rm", "coder", "--yes")["backup"]
    [listed] = cli.json("agent", "backups")
    assert (listed["name"], listed["agent"], listed["has_workspace"]) == (backup, "coder", True)
    assert "coder" not in cli.json("agent", "ls")
    cli.ok("agent", "restore", "coder")
    assert "coder" in cli.json("agent", "list")
    assert cli("agent", "restore", "../../etc").code == 4
    assert cli("agent", "restore", backup).code == 5


def test_plugins_are_listed_allowed_and_forbidden(cli: Cli) -> None:
    assert cli.json("plugins", "list") == []
    folder = cli.home / "plugins"
    (folder / "polite.py").write_text("def transform_outgoing(text, context):\n    return text + ' please'\n")
    [found] = cli.json("plugins", "list")
    assert (found["name"], found["state"]) == ("polite", "not_allowed")
    assert cli("plugins", "allow", "polite", stdin=b"n\n").code == 1
    assert cli.json("plugins", "allow", "polite", "--yes") == {"allowed": ["polite"]}
    [found] = cli.json("plugins", "list")
    assert found["state"] in ("running", "broken")
    assert cli.json("plugins", "forbid", "polite") == {"allowed": []}
    assert cli("plugins", "allow", "../x", "--yes").code == 2
