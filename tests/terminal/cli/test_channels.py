"""Channels are set up by hand or by script; a token is checked, kept for its owner alone, and never shown."""

import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from postroom.app.home import Home
from tests.terminal.cli.runner import Cli, Shell

TOKEN = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"


def stored(cli: Cli) -> dict[str, object]:
    return Home(cli.home).settings.document()["channels"]


def test_a_token_is_kept_in_a_file_of_its_own_and_named_by_it(cli: Cli) -> None:
    done = cli.json("channel", "setup", "telegram", "--token", "-", stdin=TOKEN.encode() + b"\n")
    file = cli.home / "secrets" / "telegram_bot_token"
    assert (done["enabled"], done["token"], done["running"]) == (True, f"file:{file}", False)
    assert file.read_text().strip() == TOKEN
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stored(cli) == {"enabled": ["telegram"], "telegram": {"bot_token": f"file:{file}"}}
    for words in (("channel", "list"), ("settings", "show"), ("channel", "list", "--json")):
        assert TOKEN not in cli.ok(*words).out
    off = cli.json("channel", "setup", "telegram", "--off")
    assert off["enabled"] is False
    assert cli.json("channels", "list")["telegram"] == {"enabled": False, "token": True, "running": False}
    back = cli.json("channel", "reset", "telegram", "--yes")
    assert not file.exists()
    assert Path(back["backup"][0]).read_text().strip() == TOKEN
    assert stored(cli) == {"enabled": [], "telegram": {}}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("icq",), "there are telegram, discord, whatsapp"),
        ((), "name a channel"),
        (("--off",), "need the name of a channel"),
        (("telegram",), "nobody is there to answer"),
        (("telegram", "--token", "abc"), "no token of a Telegram bot"),
        (("discord", "--token", TOKEN), "no token of a Discord bot"),
        (("telegram", "--token", "env:NO_SUCH_VARIABLE"), "NO_SUCH_VARIABLE is not set"),
        (("telegram", "--token", "file:/nowhere/at/all"), "no such file"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(cli: Cli, words: tuple[str, ...], told: str) -> None:
    done = cli("channel", "setup", *words)
    assert done.code == 2
    assert told in done.err
    assert not (cli.home / "secrets").exists()
    assert "channels" not in Home(cli.home).settings.document()


def test_a_handle_stays_a_handle(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_BOT", TOKEN)
    cli.ok("setup", "telegram", "--token", "env:MY_BOT")
    assert stored(cli)["telegram"] == {"bot_token": "env:MY_BOT"}
    assert not (cli.home / "secrets").exists()


def test_what_a_platform_needs_besides_a_token_is_given_by_name_and_secrets_are_kept_apart(cli: Cli) -> None:
    given = ("--set", "homeserver=https://m.example.org", "--set", "user=@o:m", "--set", "access_token=abc")
    cli.ok("channel", "setup", "matrix", *given)
    file = cli.home / "secrets" / "matrix_access_token"
    assert file.read_text().strip() == "abc"
    assert stored(cli)["matrix"] == {
        "homeserver": "https://m.example.org",
        "user": "@o:m",
        "access_token": f"file:{file}",
    }
    refused = cli("channel", "setup", "matrix", "--set", "homeserver")
    assert (refused.code, "NAME=VALUE" in refused.err) == (2, True)


def test_a_channel_is_tried_without_a_server_and_says_what_is_missing(cli: Cli) -> None:
    cli.ok("channel", "setup", "webhook", "--set", "secret=s", "--set", "url=http://127.0.0.1:9/")
    assert "takes the settings" in cli.ok("channel", "test", "webhook").out
    refused = cli("channel", "test", "signal")
    assert refused.code == 2
    assert "with its +" in refused.err


def test_forgetting_is_asked_first(cli: Cli) -> None:
    needed = ("access_token", "phone_number_id", "app_secret", "verify_token")
    fields = [word for name in needed for word in ("--set", f"{name}=env:SOME")]
    cli.ok("channel", "setup", "whatsapp", *fields)
    refused = cli("channel", "reset", "whatsapp", stdin=b"n\n")
    assert (refused.code, stored(cli)["enabled"]) == (1, ["whatsapp"])
    (cli.home / "whatsapp-session").mkdir()
    kept = cli.json("channel", "reset", "whatsapp", "--yes")["backup"]
    assert Path(kept[0]).is_dir()
    assert not (cli.home / "whatsapp-session").exists()


def test_a_channel_is_started_only_in_a_house_that_runs(cli: Cli) -> None:
    for action in ("start", "stop", "restart"):
        done = cli("channel", action, "telegram")
        assert (done.code, "postroom start" in done.err) == (4, True)


def test_a_person_is_asked_and_the_token_does_not_show(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "postroom", "channel", "setup"],
        cwd=shell.folder,
        env={**shell.env, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    seen = b""

    def until(question: bytes) -> None:
        nonlocal seen
        while question not in seen:
            seen += os.read(ours, 4096)

    try:
        until(b"Use Telegram?")
        os.write(ours, b"y\n")
        until(b"BotFather")
        until(b"Token of the Telegram bot: ")
        os.write(ours, TOKEN.encode() + b"\n")
        until(b"Use Discord?")
        os.write(ours, b"\n")
        for question in (b"WhatsApp", b"Slack", b"E-mail", b"Matrix", b"Signal", b"Webhook"):
            until(b"Use " + question + b"?")
            os.write(ours, b"n\n")
        until(b"Channels: telegram.")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert TOKEN.encode() not in seen
    assert (shell.folder / "home" / "secrets" / "telegram_bot_token").read_text().strip() == TOKEN
