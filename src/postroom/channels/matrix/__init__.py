"""Matrix, by syncing with the bot's homeserver; rooms without encryption."""

from collections.abc import Mapping
from typing import Any

from postroom.channels.channel import Channel
from postroom.channels.kinds import ChannelKind
from postroom.channels.matrix.markup import CAPABILITIES
from postroom.channels.missing_library import load_channel


def build(name: str, options: Mapping[str, Any]) -> Channel:
    module = load_channel(name, "matrix", "nio", "postroom.channels.matrix.channel")
    return module.MatrixChannel(name, options)


KIND = ChannelKind(platform="matrix", label="Matrix", capabilities=CAPABILITIES, build=build)
