"""Secrets of the settings: kept as handles where possible, fetched only when used, and never shown.

A handle is `env:NAME`, `file:/path` or `keyring:service/name`; any other text is the secret itself.
"""

import importlib
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from postroom.errors import InvalidField
from postroom.settings.errors import SecretMissing

MASK = "********"

_HANDLE = re.compile(r"(env|file|keyring):(.+)", re.DOTALL)
_SECRET_KEY = re.compile(
    r"(?:^|[_-])(?:token|secret|password|passwd|passphrase|api[_-]?key|private[_-]?key|access[_-]?key"
    r"|credentials?|authorization|cookie)$"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_URL_PASSWORD = re.compile(r"(\A[A-Za-z][A-Za-z0-9+.-]*://[^/@\s:]*:)([^/@\s]+)(@)")
_MAX_BYTES = 64 * 1024

# Their keys are ids that people choose, and say nothing about what is below them.
_NAMED_BY_PEOPLE = frozenset({("agents",), ("teams",), ("custom_providers",), ("channels", "defaults")})


def is_handle(value: str) -> bool:
    return _HANDLE.fullmatch(value) is not None


def reveal(value: str, environment: Mapping[str, str] | None = None) -> str:
    match = _HANDLE.fullmatch(value)
    if match is None:
        return value
    kind, name = match[1], match[2].strip()
    if kind == "env":
        return _from_environment(value, name, os.environ if environment is None else environment)
    return _from_file(value, name) if kind == "file" else _from_keyring(value, name)


def _from_environment(handle: str, name: str, environment: Mapping[str, str]) -> str:
    secret = environment.get(name, "")
    if not secret:
        raise SecretMissing(
            handle=handle,
            reason=f"the environment variable {name} is not set",
            fix="Set it before Postroom starts.",
        )
    return secret


def _from_file(handle: str, name: str) -> str:
    path = Path(name).expanduser()
    if not path.is_absolute():
        raise SecretMissing(
            handle=handle, reason="its path is relative", fix="Write the path from / or ~/ on."
        )
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        secret = data.decode().strip()
    except OSError as error:
        raise SecretMissing(
            handle=handle, reason=(error.strerror or "it cannot be read").lower(), fix="Check the file."
        ) from None
    except UnicodeDecodeError:
        raise SecretMissing(handle=handle, reason="the file is no text", fix="Check the file.") from None
    if not secret or len(data) > _MAX_BYTES:
        reason = f"the file is larger than {_MAX_BYTES} bytes" if secret else "the file is empty"
        raise SecretMissing(handle=handle, reason=reason, fix="Put the secret, and only it, into the file.")
    return secret


def _from_keyring(handle: str, name: str) -> str:
    service, slash, user = name.rpartition("/")
    if not (slash and service and user):
        raise SecretMissing(
            handle=handle, reason="it names no entry", fix="Write it as keyring:service/name."
        )
    try:
        keyring: Any = importlib.import_module("keyring")
    except ImportError:
        raise SecretMissing(
            handle=handle, reason="the package keyring is not installed", fix="pip install keyring"
        ) from None
    try:
        secret = keyring.get_password(service, user)
    except Exception as error:  # every keyring has errors of its own
        raise SecretMissing(
            handle=handle, reason=f"the keyring refused ({type(error).__name__})", fix="Unlock the keyring."
        ) from None
    if not secret:
        raise SecretMissing(
            handle=handle, reason="the keyring has no such entry", fix=f"keyring set {service} {user}"
        )
    return secret


def names_secret(key: str) -> bool:
    """Whether a field of this name holds a secret, known to us or not."""
    return _SECRET_KEY.search(_HUMP.sub("_", key).lower()) is not None


ChangeText = Callable[[str, tuple[str, ...], bool], str]
"""Given a text, the names of the fields it stands in, and whether these hold a secret."""


def map_texts(document: Mapping[str, Any], change: ChangeText) -> dict[str, Any]:
    """The document with every text changed."""
    return _mapped(dict(document), (), False, change)


def is_shown_masked(text: str, secret: bool) -> bool:
    return _shown(text, secret) != text


def masked(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as it may be shown: handles as they are, secrets as a mask."""
    return map_texts(document, lambda text, path, secret: _shown(text, secret))


def unmasked(document: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """A document that comes back from being shown, with what is stored in the place of each mask."""
    return _unmasked(dict(document), dict(stored), (), False)


def _mapped(value: Any, path: tuple[str, ...], secret: bool, change: ChangeText) -> Any:
    if isinstance(value, dict):
        return {
            key: _mapped(below, (*path, key), _is_secret(path, key, secret), change)
            for key, below in value.items()
        }
    if isinstance(value, list):
        return [_mapped(below, path, secret, change) for below in value]
    return change(value, path, secret) if isinstance(value, str) else value


def _masked(value: Any, path: tuple[str, ...], secret: bool) -> Any:
    return _mapped(value, path, secret, lambda text, path, secret: _shown(text, secret))


def _unmasked(value: Any, stored: Any, path: tuple[str, ...], secret: bool) -> Any:
    if isinstance(value, dict):
        old = stored if isinstance(stored, dict) else {}
        return {
            key: _unmasked(below, old.get(key), (*path, key), _is_secret(path, key, secret))
            for key, below in value.items()
        }
    if isinstance(value, list):
        return _unmasked_list(value, stored if isinstance(stored, list) else [], path, secret)
    if not isinstance(value, str) or MASK not in value:
        return value
    if isinstance(stored, str) and value == _shown(stored, secret):
        return stored
    url = _URL_PASSWORD.match(value)
    if secret or (url and MASK in url[2]):
        raise InvalidField(
            ".".join(path), f"shows {MASK} where no such secret is stored; write the secret, or leave it out"
        )
    return value


def _unmasked_list(value: list[Any], stored: list[Any], path: tuple[str, ...], secret: bool) -> list[Any]:
    """Entries have no names, so a masked one is known again only if it came back just as it was shown."""
    left = list(stored)
    result: list[Any] = []
    for index, entry in enumerate(value):
        found = next((i for i, old in enumerate(left) if _masked(old, path, secret) == entry), None)
        if found is None:
            result.append(_unmasked(entry, None, (*path, str(index)), secret))
        else:
            result.append(left.pop(found))
    return result


def _is_secret(path: tuple[str, ...], key: str, above: bool) -> bool:
    return path not in _NAMED_BY_PEOPLE and (above or names_secret(key))


def _shown(value: str, secret: bool) -> str:
    if secret:
        return value if not value or is_handle(value) else MASK
    return _URL_PASSWORD.sub(rf"\g<1>{MASK}\g<3>", value)
