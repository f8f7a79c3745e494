"""Why a message of somebody is not answered yet, in words for that person."""

from postroom.clock import iso
from postroom.kernel.model import Message
from postroom.kernel.states import OPEN, State
from postroom.office.guards import budgets
from postroom.office.ports import RoomPort
from postroom.services.agent_hosts import list_agent_hosts

# By the beginning of the account for which a message is held.
_HELD = {
    budgets.CONVERSATION: "for a decision: a guard has paused this conversation",
    budgets.MESSAGES: "for a decision: this conversation has reached its limit of messages",
    budgets.HOPS: "for a decision: this was handed on too often",
    "agent/": "for its budget: today's is used up",
    "team/": "for the budget of its team: today's is used up",
    "day/": "for the budget of the office: today's is used up",
}


async def explain_guards(room: RoomPort, message: Message) -> list[str]:
    """What keeps the whole conversation, its agent, or everybody, from going on."""
    account = budgets.conversation(message.correlation_id or "")
    found = await room.accounts(account, budgets.OFFICE)
    lines: list[str] = []
    if (frozen := found[account].frozen) is not None:
        lines.append(f"It is paused by the guard {frozen}. /continue lets it go on, /stop ends it.")
    if found[budgets.OFFICE].frozen is not None:
        lines.append("Everybody is paused, until the owner lets them go on.")
    host = (await list_agent_hosts(room)).get(message.agent or "")
    if host is not None and host.is_gone and message.state in OPEN:
        lines.append(f"@{message.agent} works on the host {host.host}, which is away at the moment.")
    return lines


def explain_state(message: Message) -> str:
    agent = f"@{message.agent}"
    match message.state:
        case State.CLAIMED:
            return f"{agent} works on it since {iso(message.claimed_at or message.updated_at)}."
        case State.PENDING:
            return f"{agent} has not begun; it waits in line."
        case State.DELAYED:
            return f"{agent} waits {_explain_delay(message)}."
        case State.COMPLETED:
            return f"{agent} is done since {iso(message.finished_at or message.updated_at)}."
        case _:
            return f"{agent}: {message.state}. {message.failure_reason or ''}".rstrip()


def _explain_delay(message: Message) -> str:
    reason = message.failure_reason or ""
    if reason.startswith(f"{budgets.OFFICE}:"):
        return "with everybody: the office is paused"
    for account, words in _HELD.items():
        if reason.startswith(account):
            return words
    until = f"until {iso(message.visible_at)}: " if message.visible_at else ""
    return f"{until}{reason.rstrip('.') or 'for its turn'}"
