"""Tokens of agents: an agent's program gets one of its own, which opens its tools and nothing else.

A token is signed with a key made from the owner's, names its agent and the message its turn is about, and
ends after a while.
"""

import hashlib
import hmac

from postroom.api.auth.owner_token import OwnerToken
from postroom.clock import SECOND, Clock
from postroom.services import callers
from postroom.services.callers import Caller
from postroom.settings.names import is_id

PREFIX = "pra"
LIFE_S = 24 * 3600


class AgentTokens:
    def __init__(self, owner: OwnerToken, clock: Clock) -> None:
        self._key = hashlib.sha256(b"agents " + owner.signing_key).digest()
        self._clock = clock

    def make(self, agent: str, message_id: str = "") -> str:
        """`message_id` is what the agent works on while it holds the token."""
        body = f"{PREFIX}.{agent}.{message_id}.{self._clock.now() // SECOND + LIFE_S}"
        return f"{body}.{self._sign(body)}"

    def caller(self, token: str) -> Caller | None:
        """Whose token it is, while it holds."""
        body, _, signature = token.rpartition(".")
        given = signature.encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._sign(body).encode()):
            return None
        _, agent, message_id, end = body.split(".")
        if not is_id(agent) or int(end) <= self._clock.now() // SECOND:
            return None
        return callers.agent(agent, message_id)

    def _sign(self, body: str) -> str:
        return hmac.new(self._key, body.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
