"""The queues of the office: every agent has an inbox, every channel an outbox, every team a room."""

from collections.abc import Iterable

from postroom.kernel import commands as c
from postroom.office.intake.routing import OfficeDirectory

SCOPE = "office"
# One delayed message for each conversation that gets one answer in common: it comes due at the time-out.
GATHER = f"{SCOPE}/gather"
# What was said in an office that this one took over.
HISTORY = f"{SCOPE}/history"
# Channels on which nobody waits for an answer.
SILENT = frozenset({"chatroom", "heartbeat"})

TURN_LEASE_S = 60.0
OUTBOX_TTL_S = 30 * 24 * 3600.0
# A death of the process counts against all that stood in line for a chat, so they are allowed many.
CHAT_ATTEMPTS = 100


def inbox(agent: str) -> str:
    return f"{SCOPE}/inbox/{agent}"


def outbox(channel: str) -> str:
    return f"{SCOPE}/outbox/{channel}"


def room_of(team: str) -> str:
    return f"{SCOPE}/room/{team}"


def past_of(team: str) -> str:
    """What was posted in the team's room before this office was there."""
    return f"{HISTORY}/{team}"


def furnish(
    directory: OfficeDirectory, channels: Iterable[str], *, attempts: int, depth: int
) -> list[c.Command]:
    """Everything that must be there before mail can move; what is there already stays as it is."""
    commands: list[c.Command] = [c.CreateScope(slug=SCOPE, display_name="Office", exist_ok=True)]
    for agent in directory.agents:
        settings = {"max_retries": attempts, "max_depth": depth, "visibility_timeout_s": TURN_LEASE_S}
        commands.append(c.CreateQueue(queue=inbox(agent), settings=settings, exist_ok=True))
    commands.append(c.CreateQueue(queue=GATHER, settings={"max_retries": 20}, exist_ok=True))
    for channel in channels:
        commands.append(open_outbox(channel))
    for team in directory.teams:
        settings = {
            "consumer_mode": "broadcast",
            "max_retries": attempts,
            "visibility_timeout_s": TURN_LEASE_S,
        }
        commands.append(c.CreateQueue(queue=room_of(team), settings=settings, exist_ok=True))
        # Whoever joins reads what was posted before; a lane makes no more than the last posts of it.
        commands += [
            c.Subscribe(queue=room_of(team), name=member, earliest=True) for member in directory.members(team)
        ]
    return commands


def is_inbox(queue: str | None) -> bool:
    return queue is not None and queue.startswith("inbox/")


def is_outbox(queue: str | None) -> bool:
    return queue is not None and queue.startswith("outbox/")


def is_among_agents(path: str) -> bool:
    """Whether a queue is an inbox or a room, by its whole name."""
    return path.startswith((inbox(""), room_of("")))


def open_outbox(channel: str) -> c.Command:
    """Where nobody fetches the replies of a channel, they do not pile up for ever."""
    settings = {"max_retries": CHAT_ATTEMPTS, "default_ttl_s": OUTBOX_TTL_S}
    return c.CreateQueue(queue=outbox(channel), settings=settings, exist_ok=True)
