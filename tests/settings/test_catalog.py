"""Every setting can be listed: what holds, where it comes from, its default, and what it means."""

from typing import Any

from postroom.settings.catalog import KnownSetting, list_settings
from postroom.settings.defaults import VARIABLES
from postroom.settings.field_names import unknown_names

DOCUMENT: dict[str, Any] = {
    "agents": {"coder": {"name": "Coder", "fallbacks": [{"provider": "openai"}]}},
    "custom_providers": {"lab": {"base_url": "http://127.0.0.1:1", "api_key": "********"}},
    "teams": {"dev": {"agents": ["coder"], "leader_agent": "coder"}},
    "budgets": {"daily_usd": 5},
    "api": {"port": 4000},
}


def listed(environment: dict[str, str] | None = None) -> dict[str, KnownSetting]:
    return {each.name: each for each in list_settings(DOCUMENT, environment or {})}


def test_every_setting_is_known_and_says_what_it_means() -> None:
    found = listed()
    assert not [name for name, each in found.items() if not each.meaning or unknown_names(name)]
    assert {"agents.coder.model", "custom_providers.lab.wire", "teams.dev.daily_usd"} < set(found)


def test_where_a_value_comes_from_is_told() -> None:
    found = listed({"POSTROOM_API_PORT": "4001", "POSTROOM_REMOTE": "1"})
    port, remote, budget, hops = (
        found[name] for name in ("api.port", "api.remote", "budgets.daily_usd", "guards.hops")
    )
    assert (port.value, port.source, port.default) == (4001, "environment", 3777)
    assert (remote.value, remote.source) == (True, "environment")
    assert (budget.value, budget.source, budget.default) == (5, "file", 100)
    assert (hops.value, hops.source) == (10, "default")


def test_secrets_of_the_environment_are_not_shown() -> None:
    secret = "a-secret-that-nobody-may-read"
    found = list_settings({}, dict.fromkeys(VARIABLES.values(), secret))
    shown = {each.name: each.value for each in found if each.source == "environment"}
    assert set(shown) == set(VARIABLES)
    assert {name for name, value in shown.items() if value == secret} == {"api.host", "api.port"}
