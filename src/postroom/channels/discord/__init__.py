"""Discord, by its gateway; what was missed while nobody listened is fetched."""

from collections.abc import Mapping
from typing import Any

from postroom.channels.channel import Channel
from postroom.channels.discord.markup import CAPABILITIES
from postroom.channels.kinds import ChannelKind
from postroom.channels.missing_library import load_channel


def build(name: str, options: Mapping[str, Any]) -> Channel:
    module = load_channel(name, "discord", "discord", "postroom.channels.discord.channel")
    return module.DiscordBotChannel(name, options)


KIND = ChannelKind(platform="discord", label="Discord", capabilities=CAPABILITIES, build=build)
