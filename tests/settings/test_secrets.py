"""Secrets are fetched when used, never shown, and a mask never takes the place of a secret."""

import copy
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postroom.errors import InvalidField
from postroom.settings import MASK, SecretMissing, masked, parse, reveal, unmasked
from postroom.settings.secret import Secret
from postroom.settings.secrets import names_secret

STORED: dict[str, Any] = {
    "channels": {"telegram": {"bot_token": "tg-secret"}, "discord": {"bot_token": "env:DISCORD"}},
    "models": {"anthropic": {"api_key": "sk-secret", "oauth_token": "", "model": "opus"}},
    "custom_providers": {"secret": {"api_key": "cp-secret", "name": "shown"}},
    "agents": {"token": {"name": "shown", "env": {"MY_API_KEY": "env-secret"}}},
    "store": {"url": "postgresql://u:pw-secret@h/db"},
    "extensions": [{"name": "a", "apiKey": "a-secret"}, {"name": "b", "apiKey": "b-secret"}],
    "credentials": {"inner": "deep-secret", "list": ["list-secret"]},
    "api": {"auth": "token", "token": "file:/run/token"},
    "note": "******** is a line of stars",
}


def test_secrets_are_masked_and_all_else_is_shown() -> None:
    shown = masked(STORED)
    assert "-secret" not in str(shown)
    assert shown["channels"] == {"telegram": {"bot_token": MASK}, "discord": {"bot_token": "env:DISCORD"}}
    assert shown["models"]["anthropic"] == {"api_key": MASK, "oauth_token": "", "model": "opus"}
    assert shown["custom_providers"]["secret"] == {"api_key": MASK, "name": "shown"}
    assert shown["agents"]["token"] == {"name": "shown", "env": {"MY_API_KEY": MASK}}
    assert shown["store"]["url"] == f"postgresql://u:{MASK}@h/db"
    assert shown["api"] == STORED["api"]


def test_what_was_shown_comes_back_as_what_is_stored() -> None:
    assert unmasked(masked(STORED), STORED) == STORED


def test_a_new_secret_is_taken_and_a_removed_one_is_gone() -> None:
    shown = masked(STORED)
    shown["models"]["anthropic"] = {"api_key": "new", "model": "sonnet"}
    del shown["channels"]["telegram"]
    back = unmasked(shown, STORED)
    assert back["models"]["anthropic"] == {"api_key": "new", "model": "sonnet"}
    assert back["channels"] == {"discord": {"bot_token": "env:DISCORD"}}


def test_entries_of_a_list_find_their_secret_in_any_order() -> None:
    shown = masked(STORED)
    shown["extensions"].reverse()
    assert [each["apiKey"] for each in unmasked(shown, STORED)["extensions"]] == ["b-secret", "a-secret"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("custom_providers", "new", "api_key"), MASK),
        (("channels", "discord", "bot_token"), MASK),
        (("store", "url"), f"postgresql://u:{MASK}@evil/db"),
        (("store", "redis"), f"redis://x:{MASK}@h"),
        (("models", "anthropic", "api_key"), f"sk-{MASK}"),
    ],
)
def test_a_mask_without_a_stored_secret_is_refused_by_name(path: tuple[str, ...], value: str) -> None:
    shown = masked(STORED)
    part = shown
    for key in path[:-1]:
        part = part.setdefault(key, {})
    part[path[-1]] = value
    with pytest.raises(InvalidField) as error:
        unmasked(shown, STORED)
    assert error.value.data["field"] == ".".join(path)


keys = st.sampled_from(["api_key", "botToken", "name", "url", "agents", "password", "x"])
values = (
    st.sampled_from(["sk-1", "", "env:X", "https://u:p@h/", "********", "plain"]) | st.integers() | st.none()
)
documents = st.dictionaries(
    keys,
    st.recursive(
        values, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
    ),
)


@settings(deadline=None, max_examples=300)
@given(documents)
def test_showing_and_writing_back_changes_nothing(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    assert unmasked(masked(document), document) == document
    assert document == before


@pytest.mark.parametrize(
    "name", ["token", "bot_token", "api_key", "apiKey", "ApiKey", "PASSWORD", "db-password", "clientSecret"]
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert names_secret(name)


@pytest.mark.parametrize("name", ["auth", "tokens", "max_tokens", "model", "key", "keyboard", "secretary"])
def test_other_names_are_not(name: str) -> None:
    assert not names_secret(name)


def test_settings_print_no_secret() -> None:
    loaded = parse(
        {**STORED, "channels": {"slack": {"app_token": "sl-secret"}, "telegram": {"bot_token": "tg-secret"}}}
    )
    assert "tg-secret" not in f"{loaded!r} {loaded} {loaded.values()}"
    assert "secret" not in repr(loaded.models)
    assert "secret" not in repr(Secret("secret"))


def test_a_secret_is_the_text_itself_or_what_its_handle_names(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-file\n")
    assert reveal("plain") == "plain"
    assert reveal("env:KEY", {"KEY": "from-env"}) == "from-env"
    assert reveal(f"file:{file}") == "from-file"
    assert Secret("env:KEY").handle == "env:KEY"
    assert Secret("plain").handle is None


def test_a_handle_is_followed_only_when_the_secret_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LATER", raising=False)
    token = parse({"api": {"token": "env:LATER"}}).api.token
    assert token is not None
    with pytest.raises(SecretMissing, match="LATER is not set"):
        token.reveal()
    monkeypatch.setenv("LATER", "now")
    assert token.reveal() == "now"


def test_a_secret_that_cannot_be_had_is_told_with_its_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "large").write_bytes(b"x" * 70_000)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    monkeypatch.setitem(sys.modules, "keyring", None)
    for handle, reason in {
        "env:": "",
        "env:NOT_THERE": "the environment variable NOT_THERE is not set",
        "file:relative": "its path is relative",
        f"file:{tmp_path}/none": "no such file",
        f"file:{tmp_path}": "is a directory",
        f"file:{tmp_path}/empty": "the file is empty",
        f"file:{tmp_path}/large": "larger than",
        f"file:{tmp_path}/binary": "no text",
        "keyring:only": "names no entry",
        "keyring:a/b": "keyring is not installed",
    }.items():
        if not reason:
            assert reveal(handle, {}) == handle
            continue
        with pytest.raises(SecretMissing, match=reason):
            reveal(handle, {})


def test_a_keyring_is_asked_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = types.ModuleType("keyring")
    entries = {("postroom/tg", "bot"): "from-ring"}

    def get_password(service: str, name: str) -> str | None:
        if service == "locked":
            raise RuntimeError("secret details")
        return entries.get((service, name))

    ring.__dict__["get_password"] = get_password
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert reveal("keyring:postroom/tg/bot") == "from-ring"
    with pytest.raises(SecretMissing, match="no such entry"):
        reveal("keyring:postroom/none")
    with pytest.raises(SecretMissing, match=r"refused \(RuntimeError\)"):
        reveal("keyring:locked/bot")
