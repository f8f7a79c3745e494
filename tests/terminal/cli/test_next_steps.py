"""Whoever made a mistake reads what is wrong and where to look next, and a script gets the right code."""

import json
import sqlite3

import httpx2
import pytest

from postroom.services import callers
from postroom.terminal.cli.connection import Answered, Unreachable
from postroom.terminal.cli.remote import RemoteServices
from tests.terminal.cli.runner import Cli


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["agent", "show", "ghost"], 4, "See: postroom agent list"),
        (["team", "show", "ghost"], 4, "See: postroom team list"),
        (["schedule", "remove", "ghost", "--yes"], 4, "See: postroom schedule list"),
        (["show", "ghost"], 4, "See: postroom list"),
        (["publish", "ghost", "1"], 4, "See: postroom queue list"),
        (["publish", "ghost/jobs", "1"], 4, "See: postroom scope list"),
        (["queue", "create", "jobs"], 5, "See: postroom queue list"),
        (["agent", "add", "coder", "--provider", "antrophic"], 2, "there are anthropic"),
        (["agent", "provider", "assistant", "antrophic"], 2, "there are anthropic"),
        (["provider", "add", "lab", "--url", "127.0.0.1:80"], 2, "like http://127.0.0.1:8080"),
        (["schedule", "add", "assistant", "x", "--at", "2020-01-01T00:00"], 2, "--at: lies in the past"),
        (
            ["settings", "set", "api.port", "many"],
            2,
            "api.port: must be a whole number. Nothing was changed.",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line_with_what_to_do(
    jobs: Cli, words: list[str], code: int, told: str
) -> None:
    done = jobs(*words)
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert len(done.err.strip().splitlines()) == 1
    told_again = jobs(*words, "--json")
    assert told_again.code == code
    assert json.loads(told_again.err)["error"]["code"] not in ("", "UNEXPECTED")


def test_a_value_that_is_refused_is_not_told_as_a_damaged_file(cli: Cli) -> None:
    refused = json.loads(cli("settings", "set", "api.auth", "open", "--json").err)["error"]
    assert refused["code"] == "SETTINGS_INVALID"
    assert "settings.json" not in refused["message"]


def test_mail_for_nobody_is_refused_or_told(cli: Cli) -> None:
    assert cli("send", "   ").code == 2
    refused = cli("send", "hello", "--agent", "ghost")
    assert (refused.code, 'no agent or team "ghost"' in refused.err) == (4, True)
    assert cli("send", "@ghost hello").err.count("goes to the default agent") == 1
    known = next(iter(cli.json("agent", "list")))
    for words in ([f"@{known} hello"], ["hello"], ["hello", "--agent", known.upper()], ["@default hello"]):
        sent = cli.ok("send", *words)
        assert "no agent or team" not in sent.err
        assert "Message enqueued" in sent.out


def test_a_file_that_is_no_store_is_told_as_perhaps_another(cli: Cli) -> None:
    with sqlite3.connect(cli.folder / "other.db") as db:
        db.execute("CREATE TABLE mine (a)")
    db.close()
    done = cli("list", "--store", "other.db")
    assert (done.code, "check --store and POSTROOM_STORE" in done.err) == (6, True)


def test_a_channel_that_needs_more_says_what_and_is_not_switched_on(cli: Cli) -> None:
    refused = cli("channel", "setup", "whatsapp", "--set", "verify_token=hush")
    assert refused.code == 2
    assert "WhatsApp needs access_token" in refused.err
    assert "--set NAME=VALUE" in refused.err
    assert "whatsapp" not in cli.ok("settings", "get", "channels.enabled").out


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        (httpx2.Response(401, json={"error": "Not valid here.", "code": "UNAUTHORIZED"}), Answered, 3),
        (httpx2.Response(502, text="<html>"), Unreachable, 6),
    ],
)
async def test_a_wrong_token_is_not_told_as_silence(
    answer: httpx2.Response, error: type[Answered | Unreachable], code: int
) -> None:
    transport = httpx2.MockTransport(lambda _: answer)
    async with httpx2.AsyncClient(base_url="http://127.0.0.1:1", transport=transport) as http:
        with pytest.raises(error) as refused:
            await RemoteServices(http, "http://127.0.0.1:1").scopes.list_all(callers.owner())
    assert refused.value.exit_code == code
