"""The owner's token: made once, readable by the owner only, compared in constant time."""

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from postroom.errors import PostroomError

SHORTEST = 16


class TokenUnusable(PostroomError):
    """The token in {where} cannot be used: {reason}. {fix}"""

    code = "TOKEN_UNUSABLE"
    exit_code = 2


def find_token(path: Path, given: str | None = None) -> str | None:
    """The token of the settings or the environment, if there is one; else the file's, if it is there."""
    if given:
        return check_token(
            given, "POSTROOM_TOKEN or api.token", "Take a longer one, or none, and one is made."
        )
    with contextlib.suppress(FileNotFoundError):
        return _read(path)
    return None


def check_token(token: str, where: str, fix: str) -> str:
    if len(token) < SHORTEST:
        raise TokenUnusable(where=where, reason=f"it has fewer than {SHORTEST} characters", fix=fix)
    return token


def new_token() -> str:
    return secrets.token_urlsafe(32)


def owners_token(path: Path, given: str | None = None) -> str:
    """As `find_token`; where there is none, one is made."""
    if (found := find_token(path, given)) is not None:
        return found
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = new_token()
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(token + "\n")
            file.flush()
            os.fsync(file.fileno())
        # A link fails where a file is already: of two first starts at once, both use the same token.
        with contextlib.suppress(FileExistsError):
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
    return _read(path)


def _read(path: Path) -> str:
    try:
        mode = path.stat().st_mode
        if mode & 0o077:
            path.chmod(0o600)
        token = path.read_text("utf-8").strip()
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise TokenUnusable(where=str(path), reason=reason, fix="Check the file.") from None
    return check_token(token, str(path), "Remove the file, and a new one is made.")


class OwnerToken:
    """Keeps only what is needed to compare: a digest, so that lengths tell nothing either."""

    def __init__(self, token: str) -> None:
        self._digest = hashlib.sha256(token.encode()).digest()
        self.signing_key = hashlib.sha256(b"postroom sessions " + token.encode()).digest()

    def matches(self, given: str) -> bool:
        digest = hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(digest, self._digest)
