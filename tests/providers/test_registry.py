"""A provider id of the settings becomes the provider that was meant, with the keys that were meant."""

from typing import Any

import pytest

from postroom.providers import (
    Choice,
    CustomProvider,
    ErrorKind,
    ProviderSettings,
    Registry,
    Script,
    ScriptRule,
    UnknownCustomProvider,
    UnknownProvider,
)
from postroom.providers.anthropic_api import AnthropicApi
from postroom.providers.claude import Claude
from postroom.providers.codex import Codex
from postroom.providers.openai_api import OpenAIApi
from postroom.providers.opencode import OpenCode
from postroom.providers.script import ScriptProvider
from tests.providers.conftest import Office, tell
from tests.providers.model_server import model_server

CUSTOM = {
    "a": CustomProvider(base_url="http://127.0.0.1:1", api_key="a-key", model="m1", harness="claude"),
    "b": CustomProvider(base_url="http://127.0.0.1:1/v1", api_key="b-key", harness="codex"),
    "c": CustomProvider(base_url="http://127.0.0.1:1/v1", harness="api", name="My llama"),
    "d": CustomProvider(base_url="http://127.0.0.1:1", harness="api", wire="anthropic"),
}


@pytest.mark.parametrize(
    ("provider_id", "kind", "name"),
    [
        ("", Claude, "anthropic"),
        ("anthropic", Claude, "anthropic"),
        ("openai", Codex, "openai"),
        ("opencode", OpenCode, "opencode"),
        ("anthropic-api", AnthropicApi, "anthropic-api"),
        ("openai-api", OpenAIApi, "openai-api"),
        ("anthropic_api", AnthropicApi, "anthropic-api"),
        ("openai_api", OpenAIApi, "openai-api"),
        ("script", ScriptProvider, "script"),
        ("custom:a", Claude, "custom:a"),
        ("custom:b", Codex, "custom:b"),
        ("custom:c", OpenAIApi, "custom:c"),
        ("custom:d", AnthropicApi, "custom:d"),
    ],
)
def test_an_id_gives_its_provider_and_always_the_same(provider_id: str, kind: type, name: str) -> None:
    registry = Registry(ProviderSettings(custom=CUSTOM), parent={})
    provider = registry.get(provider_id)
    assert isinstance(provider, kind)
    assert provider.name == name
    assert registry.get(provider_id) is provider


def test_an_unknown_id_is_said_with_what_there_is() -> None:
    registry = Registry(ProviderSettings(custom=CUSTOM), parent={})
    with pytest.raises(
        UnknownProvider, match=r"No adapter registered for provider 'gemini'.*script, custom:a"
    ):
        registry.get("gemini")
    with pytest.raises(
        UnknownCustomProvider, match=r"Custom provider 'x' not found in settings\.custom_providers"
    ):
        registry.get("custom:x")


def test_the_model_is_the_agents_own_else_the_custom_providers() -> None:
    registry = Registry(ProviderSettings(custom=CUSTOM), parent={})
    assert registry.model_for(Choice("anthropic", "sonnet")) == "claude-sonnet-4-6"
    assert registry.model_for(Choice("anthropic_api", "sonnet")) == "claude-sonnet-4-6"
    assert registry.model_for(Choice("", "opus")) == "claude-opus-4-6"
    assert registry.model_for(Choice("custom:a", "")) == "m1"
    assert registry.model_for(Choice("custom:a", "default")) == "m1"
    assert registry.model_for(Choice("custom:a", "sonnet")) == "sonnet"
    assert registry.model_for(Choice("openai", "")) == ""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"ANTHROPIC_API_KEY": "parents"}),
        ({"anthropic_api_key": "ours"}, {"ANTHROPIC_API_KEY": "ours"}),
        (
            {"anthropic_api_key": "ours", "anthropic_oauth_token": "login"},
            {"CLAUDE_CODE_OAUTH_TOKEN": "login", "ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": ""},
        ),
    ],
)
async def test_claude_code_gets_the_key_of_the_settings_and_a_login_wins(
    office: Office, settings: dict[str, Any], expected: dict[str, str]
) -> None:
    parent = {**office.parent, "ANTHROPIC_API_KEY": "parents"}
    await tell(Registry(ProviderSettings(**settings), parent=parent).get("anthropic"), office.request())
    environment = office.calls("claude")[0]["env"]
    assert {name: environment[name] for name in expected} == expected


async def test_codex_gets_the_key_of_the_settings(office: Office) -> None:
    registry = Registry(ProviderSettings(openai_api_key="ours"), parent=office.parent)
    await tell(registry.get("openai"), office.request())
    assert office.calls("codex")[0]["env"]["OPENAI_API_KEY"] == "ours"


async def test_a_custom_server_behind_claude_code_never_sees_anthropics_key(office: Office) -> None:
    parent = {**office.parent, "ANTHROPIC_API_KEY": "parents", "CLAUDE_CODE_OAUTH_TOKEN": "parents"}
    settings = ProviderSettings(custom=CUSTOM, anthropic_api_key="ours")
    await tell(Registry(settings, parent=parent).get("custom:a"), office.request())
    environment = office.calls("claude")[0]["env"]
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert environment["ANTHROPIC_AUTH_TOKEN"] == "a-key"
    assert environment["ANTHROPIC_API_KEY"] == environment["CLAUDE_CODE_OAUTH_TOKEN"] == ""


async def test_a_local_server_needs_no_key(office: Office) -> None:
    async with model_server() as server:
        custom = CustomProvider(base_url=f"{server.url}/v1", harness="api", model="llama")
        registry = Registry(ProviderSettings(custom={"local": custom}), parent={})
        choice = Choice("custom:local")
        request = office.request(model=registry.model_for(choice))
        told = await tell(registry.get(choice.provider), request)
    assert told.answer == "Hello from the fake — model."
    assert server.received[0].body["model"] == "llama"


async def test_choices_are_tried_in_order_each_with_its_own_model_and_session(office: Office) -> None:
    settings = ProviderSettings(script=Script(rules=(ScriptRule(reply="$session"),), pace=0))
    registry = Registry(settings, parent=office.parent)
    first = await tell(registry.get("anthropic"), office.request())
    request = office.request(fake="e529", session_id=first.session)
    told = []
    async for event in registry.run(
        [Choice("anthropic", "sonnet"), Choice("script")], request, {"script": "my-script-session"}
    ):
        told.append(event)
    assert told[-1].text == "my-script-session"
    arguments = office.calls("claude")[1]["argv"]
    assert arguments[arguments.index("--resume") + 1] == first.session
    assert arguments[arguments.index("--model") + 1] == "claude-sonnet-4-6"


async def test_another_program_can_be_named(office: Office) -> None:
    registry = Registry(ProviderSettings(programs={"claude": "my-claude"}), parent=office.parent)
    failed = (await tell(registry.get("anthropic"), office.request())).failed
    assert failed.kind is ErrorKind.NOT_INSTALLED
    assert "my-claude" in failed.detail


def test_keys_do_not_show_when_settings_are_printed() -> None:
    settings = ProviderSettings(anthropic_api_key="a-key", openai_api_key="o-key", custom=CUSTOM)
    assert "key" not in repr(settings) + repr(CUSTOM["a"])


@pytest.mark.parametrize("flavour", ["anthropic", "openai"])
@pytest.mark.parametrize(("own", "sent"), [("our-key", "our-key"), ("", "none")])
async def test_a_built_in_api_asks_the_server_it_is_led_to_and_takes_no_vendors_key_there(
    office: Office, flavour: str, own: str, sent: str
) -> None:
    parent = {"ANTHROPIC_API_KEY": "vendors-key", "OPENAI_API_KEY": "vendors-key"}
    async with model_server() as server:
        url = server.scenario("ok", "" if flavour == "anthropic" else "/v1")
        fields: dict[str, Any] = {f"{flavour}_base_url": url, f"{flavour}_api_key": own}
        settings = ProviderSettings(**fields)
        provider = Registry(settings, parent=parent).get(f"{flavour}_api")
        assert (await tell(provider, office.request(model="m"))).answer == "Hello from the fake — model."
    headers = str(server.received[0].headers)
    assert sent in headers
    assert "vendors-key" not in headers
