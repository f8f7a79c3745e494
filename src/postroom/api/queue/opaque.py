"""Ids that tell nothing: numbers of scopes and queues would show how many other tenants have.

An id is a keyed hash of the number, with a secret of the store; the way back is among the tenant's own.
"""

import hashlib
import hmac
import uuid


class Opaque:
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
