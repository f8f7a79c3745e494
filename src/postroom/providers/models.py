"""Short names of models. What is not in the table goes to the provider as it is.

`default` leaves the choice to an agent program, which has its own; a server must be told one.
"""

DEFAULT = "default"

_SONNET, _OPUS, _HAIKU = "claude-sonnet-4-6", "claude-opus-4-6", "claude-haiku-4-5"
_ANTHROPIC = {"sonnet": _SONNET, "opus": _OPUS, "haiku": _HAIKU}
ALIASES: dict[str, dict[str, str]] = {
    "anthropic": _ANTHROPIC,
    "anthropic-api": _ANTHROPIC,
    "opencode": {alias: f"opencode/{model}" for alias, model in _ANTHROPIC.items()},
}
_SERVED = {"anthropic-api": _SONNET, "openai-api": "gpt-5.2"}


def resolve_model(provider_id: str, model: str) -> str:
    """The name to ask the provider for. Providers of the user's own have no short names."""
    model = model.strip()
    if model.lower() in ("", DEFAULT):
        return _SERVED.get(provider_id, "")
    return ALIASES.get(provider_id, {}).get(model.lower(), model)
