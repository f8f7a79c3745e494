"""A misspelt setting is told before it is written; what the file holds for others is kept."""

import json
from typing import Any

import pytest

from postroom.settings.field_names import known_names, nearest_name, unknown_names
from tests.terminal.cli.runner import Cli


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("api.prot", "api.port"),
        ("heartbeat_interval", "monitoring.heartbeat_interval"),
        ("budget.daily_usd", "budgets.daily_usd"),
        ("agents.coder.modle", "agents.coder.model"),
        ("agents.coder.heartbeat.intervall", "agents.coder.heartbeat.interval"),
        ("teams.dev.leader", "teams.dev.leader_agent"),
        ("api.port.x", "api.port"),
        ("zzz", None),
    ],
)
def test_an_unknown_name_is_found_and_the_nearest_told(written: str, known: str | None) -> None:
    assert unknown_names(written) == [written]
    assert nearest_name(written) == known
    assert known is None or not unknown_names(known)


@pytest.mark.parametrize(
    ("name", "value", "strange"),
    [
        ("budgets", {"dayly_usd": 5, "turn_usd": 1}, ["budgets.dayly_usd"]),
        ("agents.a", {"fallbacks": [{"provder": "x"}]}, ["agents.a.fallbacks.0.provder"]),
        ("agents.a.fallbacks", [{"provider": "x", "model": "y"}], []),
        ("channels.whatsapp.anything", {"x": 1}, ["channels.whatsapp.anything"]),
        ("channels.defaults.telegram:1", "coder", []),
        ("limits.turns_per_provider.claude", 3, []),
        ("models.anthropic.api_key", "env:KEY", []),
        ("api.origins", ["http://127.0.0.1:3000"], []),
    ],
)
def test_names_inside_a_value_are_looked_at_too(name: str, value: Any, strange: list[str]) -> None:
    assert unknown_names(name, value) == strange


def test_every_part_of_the_settings_is_known() -> None:
    # What is in a list is set with the list.
    names = [name for name in known_names() if ".fallbacks." not in name]
    assert len(names) > 100
    assert [strange for name in names for strange in unknown_names(name)] == []


def test_a_misspelt_setting_is_refused_unless_it_is_forced(cli: Cli) -> None:
    refused = cli("settings", "set", "api.prot", "4000")
    assert refused.code == 2
    assert refused.out == ""
    assert "unknown setting `api.prot`; did you mean `api.port`?" in refused.err
    assert "--force" in refused.err
    told = json.loads(cli("settings", "set", "api.prot", "4000", "--json").err)["error"]
    assert told["code"] == "SETTING_UNKNOWN"
    assert "prot" not in cli.ok("settings", "show").out
    cli.ok("settings", "set", "api.prot", "4000", "--force")
    assert cli.json("settings", "get", "api.prot") == {"api.prot": 4000}


def test_what_others_wrote_into_the_file_is_kept_and_can_be_taken_away(cli: Cli) -> None:
    cli.ok("settings", "set", "theirs", '{"colour": "red"}', "--force")
    cli.ok("settings", "set", "default_agent", "tinyagi")
    assert cli.json("settings", "get", "theirs.colour") == {"theirs.colour": "red"}
    cli.ok("settings", "unset", "theirs.colour")
    for words in (["get", "theirs.colour"], ["unset", "theirs.colour"], ["get", "api.prot"]):
        gone = cli("settings", *words)
        assert (gone.code, "unknown setting" in gone.err) == (2, True)
    assert cli.json("settings", "get", "api.port") == {"api.port": 3777}, "its default holds"
    nobody = cli("settings", "get", "agents.nobody.model")
    assert (nobody.code, "is not set" in nobody.err) == (2, True)
