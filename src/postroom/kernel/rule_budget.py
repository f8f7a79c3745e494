"""What the rules may make of one command: a number of messages, of bytes, and of looks at rules.

Each message that the command itself brought or ended adds to it, so that a large batch is not stopped by
what is right for each of its messages; copies of copies add nothing.
"""

from postroom.errors import PostroomError
from postroom.kernel.limits import Limits

MESSAGES_EACH = 50
BYTES_EACH = 20
LOOKS_EACH = 5000


class RuleBudgetSpent(PostroomError):
    """Rules made {spent} of one command; the limit is {limit}. Let fewer rules meet what others made."""

    code = "RULE_BUDGET_SPENT"
    http_status = 409


class RuleBudget:
    def __init__(self, limits: Limits) -> None:
        self.is_spent = False
        self.is_acting = False
        self.copies: list[str] = []
        """What rules have made and no rule has met: they are met when the rule that made them is done."""
        self._messages = self._most_messages = limits.rule_messages
        self._bytes = self._most_bytes = limits.rule_bytes
        self._looks = self._most_looks = LOOKS_EACH

    def add_root(self, size: int) -> None:
        """A message of the command itself, of so many bytes."""
        self._messages += MESSAGES_EACH
        self._most_messages += MESSAGES_EACH
        self._bytes += BYTES_EACH * size
        self._most_bytes += BYTES_EACH * size
        self._looks += LOOKS_EACH
        self._most_looks += LOOKS_EACH

    def spend_messages(self, count: int, size: int) -> None:
        self._messages -= count
        self._bytes -= size
        if self._messages < 0:
            self._refuse("messages", self._most_messages - self._messages, self._most_messages)
        if self._bytes < 0:
            self._refuse("bytes", self._most_bytes - self._bytes, self._most_bytes)

    def spend_looks(self, count: int) -> None:
        self._looks -= count
        if self._looks < 0:
            self._refuse("looks at rules", self._most_looks - self._looks, self._most_looks)

    def _refuse(self, unit: str, spent: int, limit: int) -> None:
        self.is_spent = True
        raise RuleBudgetSpent(spent=f"{spent} {unit}", limit=limit)
