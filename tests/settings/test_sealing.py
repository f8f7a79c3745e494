"""Sealed secrets open in their place with their token, and nowhere else."""

import json
import sys

import pytest

from postroom.settings.errors import SealingUnavailable, SettingsBroken
from postroom.settings.sealing import PREFIX, SettingsKey

TOKEN = "the-token-of-the-owner"
SECRETS = ("123:a-bot-token", "sk-a-key-of-a-vendor", "hunter22", "pässwörd\udc80", "sealed:1:no")
DOCUMENT = {
    "channels": {"telegram": {"bot_token": SECRETS[0], "base_url": "http://127.0.0.1:1"}},
    "models": {"anthropic": {"api_key": SECRETS[1], "model": "opus"}},
    "custom_providers": {"token": {"base_url": f"https://me:{SECRETS[2]}@host/v1", "api_key": "env:KEY"}},
    "channels_of_others": [{"password": SECRETS[3]}, {"password": ""}],
    "agents": {"coder": {"system_prompt": SECRETS[4], "readable": ["/srv"]}},
    "budgets": {"daily_usd": 5, "turn_usd": None},
}


@pytest.fixture(scope="module")
def key() -> SettingsKey:
    return SettingsKey.new(TOKEN)


def test_no_secret_can_be_read_and_everything_else_can(key: SettingsKey) -> None:
    sealed = key.seal(DOCUMENT)
    text = json.dumps(sealed)
    assert not [secret for secret in SECRETS[:4] if json.dumps(secret).strip('"') in text]
    assert sealed["models"]["anthropic"]["model"] == "opus"
    assert sealed["custom_providers"]["token"]["api_key"] == "env:KEY"
    assert sealed["agents"]["coder"]["readable"] == ["/srv"]
    assert sealed["budgets"] == DOCUMENT["budgets"]


def test_what_was_sealed_opens_as_it_was_also_elsewhere(key: SettingsKey) -> None:
    sealed = json.loads(json.dumps(key.seal(DOCUMENT)))
    other_host = SettingsKey(TOKEN, key.salt)
    assert other_host.check == key.check
    assert other_host.unseal(sealed) == DOCUMENT


def test_another_token_is_known_to_be_another(key: SettingsKey) -> None:
    assert SettingsKey("another-token-of-an-owner", key.salt).check != key.check
    assert SettingsKey.new(TOKEN).check != key.check


@pytest.mark.parametrize("cut", [PREFIX, PREFIX + "not base64", PREFIX + "AAAA"])
def test_what_was_never_sealed_is_not_opened(key: SettingsKey, cut: str) -> None:
    with pytest.raises(SettingsBroken, match=r"models\.anthropic\.api_key"):
        key.unseal({"models": {"anthropic": {"api_key": cut}}})


def test_a_secret_that_was_put_into_another_field_is_not_opened(key: SettingsKey) -> None:
    sealed = key.seal({"models": {"anthropic": {"api_key": SECRETS[1]}}})["models"]["anthropic"]["api_key"]
    with pytest.raises(SettingsBroken, match=r"models\.anthropic\.base_url"):
        key.unseal({"models": {"anthropic": {"base_url": sealed}}})


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(SealingUnavailable, match="pip install"):
        SettingsKey.new(TOKEN)
