"""The queues of the office: every agent has an inbox, every channel an outbox, every team a room."""

from collections.abc import Iterable

from postroom.kernel import commands as c
from postroom.office.routing import Directory

SCOPE = "office"
# Channels on which nobody waits for an answer.
SILENT = frozenset({"chatroom", "heartbeat"})

TURN_LEASE_S = 60.0


def inbox(agent: str) -> str:
    return f"{SCOPE}/inbox/{agent}"


def outbox(channel: str) -> str:
    return f"{SCOPE}/outbox/{channel}"


def room_of(team: str) -> str:
    return f"{SCOPE}/room/{team}"


def furnish(directory: Directory, channels: Iterable[str], *, attempts: int, depth: int) -> list[c.Command]:
    """Everything that must be there before mail can move; what is there already stays as it is."""
    commands: list[c.Command] = [c.CreateScope(slug=SCOPE, display_name="Office", exist_ok=True)]
    for agent in directory.agents:
        settings = {"max_retries": attempts, "max_depth": depth, "visibility_timeout_s": TURN_LEASE_S}
        commands.append(c.CreateQueue(queue=inbox(agent), settings=settings, exist_ok=True))
    for channel in channels:
        commands.append(open_outbox(channel))
    for team in directory.teams:
        settings = {
            "consumer_mode": "broadcast",
            "max_retries": attempts,
            "visibility_timeout_s": TURN_LEASE_S,
        }
        commands.append(c.CreateQueue(queue=room_of(team), settings=settings, exist_ok=True))
        commands += [c.Subscribe(queue=room_of(team), name=member) for member in directory.members(team)]
    return commands


def open_outbox(channel: str) -> c.Command:
    return c.CreateQueue(queue=outbox(channel), settings={"max_retries": 20}, exist_ok=True)
