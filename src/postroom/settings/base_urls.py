"""Addresses of model servers: by http or https only, so that no key goes to a file or in clear in a URL."""

from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from postroom.settings.part import Check


def base_url(value: str) -> str:
    """The address without a slash at its end. Raises ValueError with what is wrong."""
    text = value.strip().rstrip("/")
    parts = _split(text)
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a name or password; put the key into api_key")
    if parts.query or parts.fragment:
        raise ValueError("must end with the path, without ? and #")
    return text


def server_url(value: str) -> str:
    """The address of a server of one's own, as it was written; empty while none is named."""
    if value:
        _split(value)
    return value


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
        parts = urlsplit("")
    if not usable or any(sign.isspace() or not sign.isprintable() for sign in text):
        raise ValueError("must be an address like https://models.example.org/v1, by http or https")
    return parts


BaseUrl = Annotated[str, Check(base_url)]
ServerUrl = Annotated[str, Check(server_url)]
