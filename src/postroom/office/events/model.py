"""An event as clients get it."""

from typing import Any

import msgspec

# The six names that clients know today, and those that earlier ones knew.
NEW = frozenset(
    {
        "message:incoming",
        "agent:invoke",
        "agent:progress",
        "agent:response",
        "agent:mention",
        "message:done",
    }
)
OLD = frozenset(
    {
        "processor_start",
        "message_enqueued",
        "message_received",
        "agent_routed",
        "chain_step_start",
        "chain_step_done",
        "chain_handoff",
        "team_chain_start",
        "team_chain_end",
        "response_ready",
        "agent_message",
        "agent_progress",
    }
)


class ContractEvent(msgspec.Struct, frozen=True):
    """`data` begins with its type and time. Of what one ledger event leads to, `part` counts."""

    seq: int
    part: int
    name: str
    data: dict[str, Any]

    @property
    def id(self) -> str:
        """The same whenever it is told, so that a client can say after which it goes on."""
        return f"{self.seq}.{self.part}"
