"""Short names are filled in for the providers that have them; all others pass through."""

import pytest

from postroom.providers import resolve_model


@pytest.mark.parametrize(
    ("provider", "model", "expected"),
    [
        ("anthropic", "sonnet", "claude-sonnet-4-6"),
        ("anthropic", "Opus", "claude-opus-4-6"),
        ("anthropic-api", "sonnet", "claude-sonnet-4-6"),
        ("opencode", "sonnet", "opencode/claude-sonnet-4-6"),
        ("opencode", "opus", "opencode/claude-opus-4-6"),
        ("openai", "sonnet", "sonnet"),
        ("openai", "gpt-5.3-codex", "gpt-5.3-codex"),
        ("anthropic", "claude-next", "claude-next"),
        ("anthropic", "", ""),
        ("openai", "default", ""),
        ("opencode", "Default", ""),
        ("anthropic-api", "default", "claude-sonnet-4-6"),
        ("openai-api", "", "gpt-5.2"),
        ("custom:mine", "opus", "opus"),
    ],
)
def test_a_name_becomes_the_one_to_ask_for(provider: str, model: str, expected: str) -> None:
    assert resolve_model(provider, model) == expected
