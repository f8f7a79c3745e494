"""Secrets of settings that lie in a store: sealed with a key made from the owner's token, each in its place.

Whoever has a copy of the database has none of them. A sealed secret that is put into another field, or was
changed, is not opened.
"""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from postroom.settings.errors import SealingUnavailable, SettingsBroken
from postroom.settings.secrets import is_shown_masked, map_texts

PREFIX = "sealed:1:"
SALT_BYTES = 16
_NONCE_BYTES = 12
# Somebody may have chosen a token that can be guessed: each guess costs about 50 ms.
_COST = {"n": 2**14, "r": 8, "p": 1}


class SettingsKey:
    def __init__(self, token: str, salt: bytes) -> None:
        made = hashlib.scrypt(token.encode(), salt=salt, dklen=64, **_COST)
        self.salt = salt
        self.check = made[32:].hex()
        """Tells whether a token is the right one, and nothing else."""
        self._cipher = _cipher(made[:32])

    @classmethod
    def new(cls, token: str) -> "SettingsKey":
        return cls(token, secrets.token_bytes(SALT_BYTES))

    def seal(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """With everything sealed that would not be shown."""
        return map_texts(document, self._sealed)

    def unseal(self, document: Mapping[str, Any]) -> dict[str, Any]:
        return map_texts(document, self._unsealed)

    def _sealed(self, text: str, path: tuple[str, ...], secret: bool) -> str:
        if not (is_shown_masked(text, secret) or text.startswith(PREFIX)):
            return text
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, text.encode("utf-8", "surrogatepass"), _place(path))
        return PREFIX + base64.urlsafe_b64encode(nonce + sealed).decode()

    def _unsealed(self, text: str, path: tuple[str, ...], secret: bool) -> str:
        if not text.startswith(PREFIX):
            return text
        from cryptography.exceptions import InvalidTag

        try:
            data = base64.urlsafe_b64decode(text.removeprefix(PREFIX))
            opened = self._cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _place(path))
        except (InvalidTag, ValueError):
            problem = f"{'.'.join(path)} was changed by somebody without the owner's token; set it anew"
            raise SettingsBroken(path="the store", problem=problem) from None
        return opened.decode("utf-8", "surrogatepass")


def drop_sealed(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What can be read without any key, and the names of what cannot."""
    lost: list[str] = []

    def kept(value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            return {
                key: kept(below, (*path, key))
                for key, below in value.items()
                if not _is_sealed(below, (*path, key), lost)
            }
        if isinstance(value, list):
            return [kept(below, path) for below in value if not _is_sealed(below, path, lost)]
        return value

    return kept(dict(document), ()), lost


def _is_sealed(value: Any, path: tuple[str, ...], lost: list[str]) -> bool:
    if not (isinstance(value, str) and value.startswith(PREFIX)):
        return False
    lost.append(".".join(path))
    return True


def _place(path: tuple[str, ...]) -> bytes:
    return "\0".join(path).encode("utf-8", "surrogatepass")


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise SealingUnavailable from None
    return AESGCM(key)
