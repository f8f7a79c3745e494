"""What the shell offers after Tab: wherever a command asks for something that has a name, its names."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.terminal.cli.runner import Cli, Shell
from tests.terminal.cli.test_help import COMMANDS

# Arguments and options by whose names one knows that there are things to offer.
NAMED = {"AGENT", "AGENT…", "TEAM", "AGENT|TEAM", "QUEUE", "SCOPE", "CHANNEL", "PROVIDER", "TASK", "PROJECT"}
OPTIONS = {"--agent", "--assign", "--channel", "--project", "--provider", "--queue", "--scope"}
# An id that is of no message, rule or key: of a sender on a platform, or of a reply that was not confirmed.
OTHER_IDS = {("pairing", "role"), ("pairing", "unpair"), ("channel", "resend"), ("channel", "dismiss")}


def test_whatever_has_a_name_is_offered() -> None:
    lacking: list[str] = []
    for path, command in COMMANDS.items():
        for each in command.params:
            asks = each.metavar in NAMED or not OPTIONS.isdisjoint(each.opts)
            if each.metavar in ("ID", "ID…") and each.param_type_name == "argument":
                asks = ("channel", *path[1:]) not in OTHER_IDS and path not in OTHER_IDS
            if asks and each._custom_shell_complete is None:
                lacking.append(f"{' '.join(path)}: {each.opts[0]}")
    assert lacking == []


def offer(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str) -> list[str]:
    """As bash asks, with the cursor at the end of the line."""
    monkeypatch.setenv("_POSTROOM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    with pytest.raises(SystemExit):
        cli()
    monkeypatch.delenv("_POSTROOM_COMPLETE")
    return cli._capsys.readouterr().out.split()


def test_names_are_offered_as_they_are_typed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def offered(line: str) -> list[str]:
        return offer(cli, monkeypatch, line)

    assert offered("postroom publish jo") == [], "there is no store yet, and none is made"
    assert not cli.store.exists()
    cli.ok("agent", "add", "coder", "--provider", "script")
    cli.ok("agent", "add", "cook", "--provider", "script")
    cli.ok("team", "add", "crew", "coder", "cook")
    cli.ok("provider", "add", "own", "--url", "http://127.0.0.1:9/v1")
    cli.ok("queue", "create", "jobs")
    cli.ok("scope", "create", "shop")
    message = cli.publish("jobs", "1")
    dead, token = cli.claim("jobs")
    cli.ok("fail", dead, token, "refused", "--final")
    open_ = cli.publish("jobs", "2")
    task = cli.json("task", "add", "Write it")["id"]
    cli.ok("project", "add", "Website")
    cli.ok("schedule", "add", "coder", "hello", "--cron", "0 9 * * *", "--label", "morning")
    key = cli.json("key", "create", "till", "--permission", "view")["id"]
    (cli.folder / "rule.json").write_text('{"name": "r", "action": {"type": "archive"}}', "utf-8")
    made = cli.json("rule", "add", "rule.json")["id"]

    assert message == dead
    assert offered("postroom publish jo") == ["jobs"]
    assert offered("postroom publish sh") == []
    assert offered("postroom scope pause sh") == ["shop"]
    assert offered("postroom agent show co") == ["coder", "cook"]
    assert offered("postroom agent reset coder c") == ["coder", "cook"]
    assert offered("postroom team visualize c") == ["crew"]
    assert offered("postroom chatroom c") == ["crew"]
    assert offered("postroom chat c") == ["coder", "cook", "crew"]
    assert offered("postroom send --agent coo") == ["cook"]
    assert offered("postroom settings get api.p") == ["api.port"]
    assert offered("postroom agent provider coder custom") == ["custom:own"]
    assert offered("postroom agent provider coder scr") == ["script"]
    assert offered("postroom channel setup tele") == ["telegram"]
    assert set(offered("postroom show 0")) == {dead, open_}
    assert offered(f"postroom cancel {open_}") == [open_]
    assert offered("postroom dead replay 0") == [dead]
    assert offered(f"postroom trace {open_}") == [open_]
    assert offered(f"postroom task show {task[:6]}") == [task]
    assert offered("postroom task add x --project W") == ["Website"]
    assert offered("postroom schedule pause m") == ["morning"]
    assert offered(f"postroom rule show {made[:8]}") == [made]
    assert offered(f"postroom key rotate {key[:8]}") == [key]
    assert offered("postroom sched") == ["schedule"]


def test_a_broken_store_or_settings_offer_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.home.mkdir()
    cli.store.write_bytes(b"this is no database, and longer than a header of one " * 20)
    (cli.home / "settings.json").write_text("[", "utf-8")
    for line in ("postroom publish ", "postroom show ", "postroom agent show ", "postroom task show "):
        assert offer(cli, monkeypatch, line) == []


def test_a_shell_gets_it_from_the_program_itself(shell: Shell) -> None:
    asked = {"_POSTROOM_COMPLETE": "complete_bash", "COMP_WORDS": "postroom hist", "COMP_CWORD": "1"}
    program = str(Path(sys.executable).with_name("postroom"))
    done = subprocess.run(
        [program], env={**shell.env, **asked}, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.stdout.split() == ["history"], done.stderr
