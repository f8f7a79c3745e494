"""Commands work on the store that the office works on: by the settings, when nobody names another."""

import json
from pathlib import Path

from tests.terminal.cli.runner import Cli


def write_settings(cli: Cli, text: str) -> None:
    cli.home.mkdir(exist_ok=True)
    (cli.home / "settings.json").write_text(text)


def set_store(cli: Cli, url: str) -> None:
    write_settings(cli, json.dumps({"store": {"url": url}}))


def names(cli: Cli, *words: str) -> list[str]:
    return [
        queue["queue"].removeprefix("default/")
        for queue in cli.json("queue", "list", *words)
        if not queue["system"]
    ]


def test_another_file_in_the_settings_is_the_store(cli: Cli, tmp_path: Path) -> None:
    other = tmp_path / "other" / "room.db"
    other.parent.mkdir()
    set_store(cli, f"sqlite:///{other}")
    cli.ok("queue", "create", "jobs")
    message = cli.publish("jobs", "1")
    assert (other.exists(), cli.store.exists()) == (True, False)
    assert cli.json("show", message)["body"] == 1
    assert cli.ok("backup", str(tmp_path / "copy.db")).code == 0
    [found] = [one for one in cli("doctor", "--json").json["findings"] if one["about"] == "store"]
    assert str(other) in found["text"]


def test_a_store_that_is_named_comes_before_the_settings(cli: Cli, tmp_path: Path) -> None:
    set_store(cli, f"sqlite:///{tmp_path / 'settings.db'}")
    cli.ok("queue", "create", "in-settings")
    cli.ok("queue", "create", "in-option", "--store", str(tmp_path / "option.db"))
    cli._monkeypatch.setenv("POSTROOM_STORE", f"sqlite:///{tmp_path / 'environment.db'}")
    cli.ok("queue", "create", "in-environment")
    assert names(cli) == ["in-environment"]
    assert names(cli, "--store", str(tmp_path / "option.db")) == ["in-option"]
    cli._monkeypatch.delenv("POSTROOM_STORE")
    assert names(cli) == ["in-settings"]


def test_a_handle_in_the_settings_is_followed(cli: Cli, tmp_path: Path) -> None:
    set_store(cli, "env:THE_STORE")
    cli._monkeypatch.setenv("THE_STORE", f"sqlite:///{tmp_path / 'handle.db'}")
    cli.ok("queue", "create", "jobs")
    assert (tmp_path / "handle.db").exists()
    cli._monkeypatch.delenv("THE_STORE")
    refused = cli("queue", "list")
    assert (refused.code != 0, "THE_STORE is not set" in refused.err) == (True, True)
    assert not cli.store.exists()


def test_a_server_that_nobody_runs_on_is_refused_and_no_file_is_made(cli: Cli, tmp_path: Path) -> None:
    set_store(cli, "postgresql://nobody:hush@127.0.0.1:9/none")
    for words in (
        ("queue", "create", "jobs"),
        ("publish", "jobs", "1"),
        ("queue", "list"),
        ("backup", str(tmp_path / "copy.db")),
    ):
        refused = cli(*words)
        assert refused.code == 2, refused.err
        assert "store.url in settings.json" in refused.err
        assert "postroom start" in refused.err
        assert "hush" not in refused.err
    unreachable = cli("ledger", "verify")
    assert (unreachable.code, "Connection refused" in unreachable.err) == (6, True)
    assert "hush" not in unreachable.err
    assert not cli.store.exists()
    [found] = [one for one in cli("doctor", "--json").json["findings"] if one["about"] == "store"]
    assert (found["level"], "Connection refused" in found["text"]) == ("bad", True)
    assert cli.json("pipeline", "status")["lake"] == str(cli.home / "lake"), "as the office has it"


def test_settings_without_a_store_leave_the_file_of_the_home(cli: Cli) -> None:
    for text in (
        '{"store": {}}',
        '{"store": null}',
        '{"theirs": {"store": 1}}',
        '["store"]',
        "{",
        '{"agents":',
    ):
        write_settings(cli, text)
        cli.ok("queue", "create", "jobs", "--exist-ok")
    assert cli.store.exists()


def test_settings_that_may_name_a_store_but_cannot_be_read_are_said_to_be_broken(cli: Cli) -> None:
    write_settings(cli, 'this is no "store" at all')
    refused = cli("queue", "create", "jobs")
    assert refused.code != 0
    assert "settings.json" in refused.err
    assert not cli.store.exists()
