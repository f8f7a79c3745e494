"""Discord's users, servers, channels and threads, and their shapes on the wire."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from postroom.clock import iso
from postroom.testing.held_clock import HeldClock
from postroom.testing.platforms.base import Person

EPOCH_MS = 1_420_070_400_000
TEXT, PRIVATE, THREAD = 0, 1, 11
ALL_PERMISSIONS = str((1 << 50) - 1)


class SnowflakeMint:
    """Ids that grow with the held time, as Discord's do; several of one millisecond count on."""

    def __init__(self, clock: HeldClock) -> None:
        self._clock = clock
        self._counter = count(1)

    def mint(self) -> str:
        return str((self._clock.now() // 1000 - EPOCH_MS << 22) + next(self._counter))


@dataclass
class DiscordServer:
    id: str
    name: str
    members: dict[str, Person] = field(default_factory=dict)


@dataclass
class DiscordChannel:
    id: str
    type: int
    name: str
    server: DiscordServer | None = None
    recipient: Person | None = None
    parent: str | None = None
    # A person who takes no messages from the bot.
    closed: bool = False

    def render(self, owner_id: str, now: int) -> dict[str, Any]:
        shape: dict[str, Any] = {"id": self.id, "type": self.type, "last_message_id": None}
        if self.recipient is not None:
            return shape | {"recipients": [render_user(self.recipient)]}
        assert self.server is not None
        shape |= {"guild_id": self.server.id, "name": self.name, "parent_id": self.parent}
        if self.type == TEXT:
            return shape | {"position": 0, "permission_overwrites": [], "nsfw": False, "topic": None}
        metadata = {
            "archived": False,
            "auto_archive_duration": 1440,
            "archive_timestamp": iso(now),
            "locked": False,
        }
        return shape | {
            "owner_id": owner_id,
            "message_count": 0,
            "member_count": 1,
            "thread_metadata": metadata,
            "rate_limit_per_user": 0,
        }


def render_user(person: Person) -> dict[str, Any]:
    return {
        "id": person.id,
        "username": person.username or person.name.lower().replace(" ", "."),
        "global_name": person.name,
        "discriminator": "0",
        "avatar": None,
        "bot": False,
    }


def render_member(user: dict[str, Any], now: int) -> dict[str, Any]:
    return {
        "user": user,
        "nick": None,
        "roles": [],
        "joined_at": iso(now),
        "deaf": False,
        "mute": False,
        "flags": 0,
        "permissions": ALL_PERMISSIONS,
    }


def render_server(
    server: DiscordServer, channels: list[DiscordChannel], bot: dict[str, Any], now: int
) -> dict[str, Any]:
    everyone = {
        "id": server.id,
        "name": "@everyone",
        "color": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None},
        "hoist": False,
        "position": 0,
        "permissions": ALL_PERMISSIONS,
        "managed": False,
        "mentionable": False,
        "flags": 0,
    }
    return {
        "id": server.id,
        "name": server.name,
        "owner_id": bot["id"],
        "roles": [everyone],
        "emojis": [],
        "features": [],
        "verification_level": 0,
        "default_message_notifications": 0,
        "premium_tier": 0,
        "member_count": len(server.members) + 1,
        "members": [render_member(bot, now)],
        "channels": [channel.render(bot["id"], now) for channel in channels if channel.type == TEXT],
        "threads": [channel.render(bot["id"], now) for channel in channels if channel.type == THREAD],
        "joined_at": iso(now),
        "large": False,
        "unavailable": False,
    }
