"""Ids of scopes and queues that tell nothing: their numbers would show how many other tenants have.

An id is a keyed hash of the number, with a secret of the store; the way back is among the tenant's own.
"""

import hashlib
import hmac
import uuid
from collections.abc import Iterable

# The document that holds the secret; it belongs to no tenant.
SECRETS = "secret"
NAME = "ids"


CHARS = 36


def is_public_id(name: str) -> bool:
    """Whether it may be one."""
    return isinstance(name, str) and len(name) == CHARS


class PublicIds:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: dict[tuple[str, int], str] = {}

    def id(self, kind: str, number: int) -> str:
        found = self._known.get((kind, number))
        if found is None:
            digest = hmac.new(self._secret, f"{kind}:{number}".encode(), hashlib.sha256).digest()
            found = self._known[(kind, number)] = str(uuid.UUID(bytes=digest[:16], version=4))
        return found

    def scope(self, number: int) -> str:
        return self.id("scope", number)

    def queue(self, number: int) -> str:
        return self.id("queue", number)

    def subscription(self, number: int) -> str:
        return self.id("subscription", number)

    def find(self, kind: str, wanted: str, numbers: Iterable[int]) -> int | None:
        """The one of these numbers that has this id."""
        return next((number for number in numbers if self.id(kind, number) == wanted), None)
